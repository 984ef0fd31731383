"""What the outside sees of a fleet under load: memory, and how reads are answered."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import psutil

from tests.chaos.fleet import Fleet
from tests.chaos.load import client_of

_EVERY_SEC = 0.5


class Watch:
    """Samples of the time that it watched."""

    def __init__(self) -> None:
        self.memory_mb: dict[str, list[float]] = defaultdict(list)
        """Resident memory of each service, by name."""
        self.reads_sec: list[float] = []
        """How long reads took that were answered with 200."""
        self.read_answers: Counter[int] = Counter()
        """Statuses of all reads; 0: no answer."""

    def percentile_sec(self, percent: float) -> float:
        """Of the reads that were answered."""
        ordered = sorted(self.reads_sec)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]

    def most_mb(self) -> dict[str, float]:
        """The most that each service had."""
        return {name: max(samples) for name, samples in self.memory_mb.items()}


@asynccontextmanager
async def watching(fleet: Fleet, target: str) -> AsyncIterator[Watch]:
    """Reads `target` and looks at memory twice a second inside the block."""
    watch = Watch()
    async with client_of(fleet) as rest:

        async def look() -> None:
            while True:
                for name, pid in fleet.pids.items():
                    with contextlib.suppress(psutil.NoSuchProcess):
                        watch.memory_mb[name].append(psutil.Process(pid).memory_info().rss / 2**20)
                begin = time.monotonic()
                try:
                    answered = await rest.call("GET", target)
                except (aiohttp.ClientConnectionError, TimeoutError):
                    watch.read_answers[0] += 1
                else:
                    watch.read_answers[answered.status] += 1
                    if answered.status == 200:
                        watch.reads_sec.append(time.monotonic() - begin)
                await asyncio.sleep(_EVERY_SEC)

        looking = asyncio.create_task(look())
        try:
            yield watch
        finally:
            looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await looking
