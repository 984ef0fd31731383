"""The heartbeat of an instance: what tells the others that it lives, and itself when it must no longer act."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any
from uuid import UUID

from taskexecutor_common.observability import metrics
from taskexecutor_common.observability.logging import get_logger
from taskexecutor_common.runtime.loop import Loop

Beat = Callable[[str, UUID, str | None, str, dict[str, Any]], Awaitable[datetime]]
"""Writes (component, instance id, address, status, metadata) and answers the database's time: InstanceStore.beat."""

_SKEW_WORTH_A_WORD_SEC = 2.0
_RETRY_SEC = 0.5
_SLOW_SEC = 1.0


class Heartbeat:
    """Beats every `interval_sec` while it runs, and says DEAD when it stops in good order.

    `fence_after_sec` is shorter than the silence that counts as death, so an instance that cannot reach the database
    stops acting before others take over its work. The time of a beat is taken before it is sent: the database's record
    can only be younger.
    """

    def __init__(
        self,
        beat: Beat,
        component: str,
        instance_id: UUID,
        *,
        address: Callable[[], str | None],
        metadata: dict[str, Any],
        interval_sec: float,
        fence_after_sec: float,
        now: Callable[[], datetime],
    ) -> None:
        self._beat = beat
        self._component = component
        self._instance_id = instance_id
        self._address = address
        self._metadata = metadata
        self._fence_after_sec = fence_after_sec
        self._now = now
        self._status = "ALIVE"
        self._last_beat = float("-inf")
        self._failing = False
        self._loop = Loop("heartbeat", self._run_once, interval_sec=interval_sec)

    @property
    def is_fenced(self) -> bool:
        """True when the others may believe this instance dead: nothing may be sent."""
        return time.monotonic() - self._last_beat > self._fence_after_sec

    def problem(self) -> str | None:
        """What a health check says: None while the database takes the beats."""
        return "the database does not answer" if self._failing else None

    async def start(self) -> None:
        """Beats once, so that the instance is known before it acts."""
        await self._write()
        await self._loop.start()

    async def drain(self) -> None:
        """Says that no more hints are wanted; what is held stays held."""
        self._status = "DRAINING"
        self._loop.wake()

    async def stop(self) -> None:
        """Says DEAD: what may be left is taken over at once."""
        await self._loop.stop()
        self._status = "DEAD"
        try:
            await self._write()
        except Exception:
            get_logger("heartbeat").warning("could not say goodbye; the others will notice by silence", exc_info=True)

    async def _run_once(self) -> float | None:
        began = time.monotonic()
        try:
            await self._write()
        except Exception as error:
            # Soon again: the instance is unwell until a beat gets through, and fenced before long.
            get_logger("heartbeat").warning("beat failed", error=str(error))
            return _RETRY_SEC
        # One that hung bears the time of its beginning, and looks old by the time that others see it.
        return 0.0 if time.monotonic() - began > _SLOW_SEC else None

    async def _write(self) -> None:
        sent = time.monotonic()
        try:
            db_now = await self._beat(self._component, self._instance_id, self._address(), self._status, self._metadata)
        except Exception:
            self._failing = True
            raise
        self._failing = False
        self._last_beat = sent
        self._note_skew((self._now() - db_now).total_seconds())

    def _note_skew(self, skew_sec: float) -> None:
        """Nothing here depends on this process's clock, but logs and signatures carry its time."""
        metrics.CLOCK_SKEW.set(skew_sec)
        if abs(skew_sec) > _SKEW_WORTH_A_WORD_SEC:
            get_logger("heartbeat").warning("this clock differs from the database's", skew_sec=round(skew_sec, 1))
