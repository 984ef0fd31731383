"""When deliveries of jobs with a due time arrived."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from bench.arena import Arena

LOOK_SEC = 0.5
FIRST_LOOK_SEC = 0.2  # after the last due time: looking costs the receiver something


async def arrivals_of(arena: Arena, due: Mapping[str, float], patience_sec: float) -> dict[str, float]:
    """Waits for the last due time, then until all have arrived or patience is over. Answers arrivals by execution id."""
    await asyncio.sleep(max(due.values()) - time.time() + FIRST_LOOK_SEC)
    arrived = await arena.receiver.arrivals()
    deadline = time.monotonic() + patience_sec
    while due.keys() - arrived.keys() and time.monotonic() < deadline:
        await asyncio.sleep(LOOK_SEC)
        arrived |= await arena.receiver.arrivals()
    return arrived
