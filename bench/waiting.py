"""Waits for states, with a deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

PAUSE_SEC = 0.02


class NotInTime(Exception):
    """What was waited for did not come."""


async def until(
    condition: Callable[[], Awaitable[bool]], seconds: float, what: str, pause_sec: float = PAUSE_SEC
) -> None:
    """Asks again and again until the answer is true. Raises NotInTime."""
    deadline = time.perf_counter() + seconds
    while not await condition():
        if time.perf_counter() > deadline:
            raise NotInTime(f"{what}: not within {seconds:.0f} s")
        await asyncio.sleep(pause_sec)
