"""Rounds of a loop, made by a test."""

from __future__ import annotations

from collections.abc import Awaitable, Callable


async def all_rounds(run_once: Callable[[], Awaitable[float | None]]) -> float | None:
    """As the loop does it: round after round, until one does not ask for the next at once. Answers what that one said."""
    while (seconds := await run_once()) == 0:
        pass
    return seconds
