"""A call that computes for long does so in turns with all others: one event loop answers them all."""

from __future__ import annotations

import asyncio
import time

_TURN_SEC = 0.002


class Turn:
    """What a call may compute before others come; begins at once."""

    def __init__(self) -> None:
        self._ends_at = time.monotonic() + _TURN_SEC

    async def pass_on_when_over(self) -> None:
        """Lets others run if this turn is over, and begins the next. To be called after each piece of the work."""
        if time.monotonic() > self._ends_at:
            await asyncio.sleep(0)
            self._ends_at = time.monotonic() + _TURN_SEC
