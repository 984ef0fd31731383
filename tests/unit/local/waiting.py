"""Waits for states, with a deadline."""

import asyncio
import time
from collections.abc import Callable

import psutil

DEADLINE_SEC = 10.0
POLL_SEC = 0.02


async def until(condition: Callable[[], object], what: str) -> None:
    """Returns when `condition` holds."""
    end = time.monotonic() + DEADLINE_SEC
    while not condition():
        assert time.monotonic() < end, f"not within {DEADLINE_SEC} s: {what}"
        await asyncio.sleep(POLL_SEC)


def is_gone(pid: int) -> bool:
    """Whether the process ended; one that nobody reaped has ended, too."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
