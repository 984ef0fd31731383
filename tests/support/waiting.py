"""Waits for states, with a deadline; tests have no fixed sleeps."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

_FIRST_PAUSE_SEC = 0.001
_LONGEST_PAUSE_SEC = 0.05


async def wait_until(condition: Callable[[], T | Awaitable[T]], deadline: float = 10.0, what: str = "") -> T:
    """Asks `condition` again and again, a plain or a coroutine function, until its answer is true; returns that answer.

    Fails the test after `deadline` seconds, with the last answer and `what` was waited for.
    """
    end = time.monotonic() + deadline
    pause = _FIRST_PAUSE_SEC
    while True:
        answer = condition()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        if time.monotonic() >= end:
            raise AssertionError(f"not within {deadline:g} s: {what or condition.__qualname__} (last: {answer!r})")
        await asyncio.sleep(pause)
        pause = min(_LONGEST_PAUSE_SEC, pause * 2)
