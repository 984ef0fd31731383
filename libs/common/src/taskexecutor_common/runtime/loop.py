"""A background loop that sleeps until something is due, and no longer than its interval."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

from taskexecutor_common.observability import metrics
from taskexecutor_common.observability.logging import get_logger

_STALE_AFTER_INTERVALS = 3
_STALE_AFTER_SEC = 10.0  # long batches of work are no fault

RunOnce = Callable[[], Awaitable[float | None]]
"""One round of work. Answers the seconds until there is more to do; None: nothing is in sight."""


class Loop:
    """Calls `run_once` again and again as a Service: survives any exception, ends promptly when stopped.

    `wake()` ends the current sleep: it is what a hint does. The interval bounds every sleep, so that a lost hint costs no
    more than that; a failed round is followed by a whole interval.
    """

    def __init__(self, name: str, run_once: RunOnce, *, interval_sec: float, jitter: float = 0.0) -> None:
        self.name = name
        self.run_once = run_once
        self._interval_sec = interval_sec
        self._jitter = jitter
        self._woken = asyncio.Event()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None
        self._log = get_logger(name)
        self.last_run: float | None = None
        """Monotonic time at which the last good round ended."""
        self._started_at = time.monotonic()

    async def start(self) -> None:
        """Starts the loop; returns at once."""
        self._stopping = False
        self._started_at = time.monotonic()
        self._task = asyncio.create_task(self._run(), name=self.name)

    async def stop(self) -> None:
        """Lets the round that is under way end, then returns."""
        self._stopping = True
        self._woken.set()
        if self._task is not None:
            await self._task
            self._task = None

    def problem(self) -> str | None:
        """What a health check says: None while rounds end in good time."""
        reference = self.last_run or self._started_at
        age = time.monotonic() - reference
        allowed = _STALE_AFTER_INTERVALS * self._interval_sec + _STALE_AFTER_SEC
        return None if age < allowed else f"no good round for {age:.0f} s"

    def wake(self) -> None:
        """Ends the sleep."""
        self._woken.set()

    async def _run(self) -> None:
        self._log.debug("loop started")
        metrics.LOOP_INTERVAL.labels(loop=self.name).set(self._interval_sec)
        # Its start counts as a run, or a loop that only ever fails would show none.
        metrics.LOOP_LAST_RUN.labels(loop=self.name).set_to_current_time()
        while not self._stopping:
            self._woken.clear()
            await self._sleep(await self._round())
        metrics.LOOP_LAST_RUN.remove(self.name)  # it is not late while the rest of its process drains
        self._log.debug("loop ended")

    async def _round(self) -> float:
        try:
            due_in = await self.run_once()
        except Exception:
            metrics.LOOP_RUNS.labels(loop=self.name, result="failed").inc()
            self._log.exception("round failed")
            return self._interval_sec
        metrics.LOOP_RUNS.labels(loop=self.name, result="done").inc()
        metrics.LOOP_LAST_RUN.labels(loop=self.name).set_to_current_time()
        self.last_run = time.monotonic()
        longest = self._interval_sec * (1 - self._jitter * random.random())
        return longest if due_in is None else max(0.0, min(due_in, longest))

    async def _sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            pass
