"""The time limits of the deliveries in flight, which end all at once when their transport closes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Deadlines:
    """Gives each delivery its limit, and `end_all` brings every limit forward to now."""

    def __init__(self) -> None:
        self._running: set[asyncio.Timeout] = set()
        self._none_left = asyncio.Event()
        self.are_over = False
        """True once `end_all` was called: nothing may begin any more, and whoever runs out of time is not late."""

    @asynccontextmanager
    async def within(self, seconds: float) -> AsyncIterator[None]:
        """Raises TimeoutError when the body takes longer, or is in the middle of something when all is ended."""
        async with asyncio.timeout(seconds) as limit:
            self._running.add(limit)
            try:
                yield
            finally:
                self._running.discard(limit)
                if not self._running:
                    self._none_left.set()

    async def end_all(self) -> None:
        """Ends what runs, and waits until it has cleaned up."""
        self.are_over = True
        self._none_left.clear()
        for limit in self._running:
            if not limit.expired():
                limit.reschedule(0)
        if self._running:
            await self._none_left.wait()
