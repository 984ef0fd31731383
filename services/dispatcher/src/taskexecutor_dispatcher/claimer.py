"""Claims executions in batches for the free slots of this process, and starts their delivery."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable
from typing import Any
from uuid import UUID

from taskexecutor_common.errors import AmbiguousResult, TaskExecutorError
from taskexecutor_common.ids import execution_id_text
from taskexecutor_common.model.execution import Claim, QueueState
from taskexecutor_common.observability import metrics
from taskexecutor_common.observability.logging import get_logger
from taskexecutor_common.store.database import SMALL_BATCH
from taskexecutor_common.store.queue import QueueStore
from taskexecutor_dispatcher.database_clock import DatabaseClock
from taskexecutor_dispatcher.queues import QueueSet

_GATHER_SEC = 0.002  # with slots scarce, a moment for more of them to come free makes claims larger
_FAILURE_PAUSE_SEC = 0.5
_STATEMENT_SEC = 30.0  # so long may a statement take before it is given up
_STALE_SEC = 45.0

_log = get_logger("claimer")

Deliver = Callable[[Claim, float | None], Coroutine[Any, Any, None]]
"""Called with a claim and when it may be sent, by the monotonic clock; None: now."""


class Claimer:
    """One per process: asks for as many executions as there are free slots, and sleeps when there is nothing to do.

    `may_claim` is asked before each claim: it says no while the instance is fenced or results do not get written.
    `unwritten` names the (execution, attempt) pairs that were delivered and are not recorded yet.
    """

    def __init__(
        self,
        store: QueueStore,
        queues: QueueSet,
        deliver: Deliver,
        *,
        slots: int,
        poll_interval_sec: float,
        may_claim: Callable[[], bool],
        unwritten: Callable[[], Collection[tuple[UUID, int]]],
    ) -> None:
        self._store = store
        self._queues = queues
        self._deliver = deliver
        self._slots = slots
        self._poll_interval_sec = poll_interval_sec
        self._may_claim = may_claim
        self._unwritten = unwritten
        # By task: an attempt that outlived its lease may run beside its successor, each in a slot of its own.
        self._running: dict[asyncio.Task[None], Claim] = {}
        self._held: Counter[UUID] = Counter()
        self._changed = asyncio.Event()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None
        self._looked_at = float("-inf")
        self._unsure = False
        self._unsure_until = float("-inf")
        self._is_shallow = True
        self._round_at = time.monotonic()
        self._clock = DatabaseClock()
        metrics.SLOTS.set(slots)
        metrics.IN_FLIGHT.set_function(lambda: len(self._running))

    async def start(self) -> None:
        """Begins to claim."""
        self._task = asyncio.create_task(self._run(), name="claimer")

    async def stop(self) -> None:
        """Claims no more; what runs, runs on (see `drain`)."""
        self._stopping = True
        self._changed.set()
        if self._task is not None:
            await self._task
            self._task = None
        # What it saw last is not what waits: other dispatchers claim that while this one drains.
        metrics.QUEUES_WAITING.set(0)
        metrics.QUEUES_HELD_BACK.set(0)

    async def drain(self, timeout_sec: float) -> None:
        """Waits for the deliveries that run, then cancels those that are left and waits for their end."""
        if self._running:
            _log.info("waiting for deliveries", in_flight=len(self._running))
            await asyncio.wait(self._running, timeout=timeout_sec)
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

    def problem(self) -> str | None:
        """What a health check says: None while claiming goes on."""
        age = time.monotonic() - self._round_at
        return None if age < _STALE_SEC or self._stopping else f"no round for {age:.0f} s"

    def wake(self, queues: Iterable[UUID]) -> None:
        """These queues have work."""
        self._queues.add(queues)
        self._changed.set()

    def make_room(self, queues: Iterable[UUID]) -> None:
        """Deliveries of these endpoints with limits have ended: others may begin."""
        self._queues.add_limited(queues)
        self._changed.set()

    def rest(self, queue: UUID, rest_ms: int) -> None:
        """Nothing of this queue is sent for so long; then it may have work."""
        self._queues.close(queue, rest_ms / 1000)
        self._changed.set()

    async def _run(self) -> None:
        while not self._stopping:
            self._changed.clear()
            self._round_at = time.monotonic()
            try:
                progressed = await self._round()
            except TaskExecutorError as error:
                _log.warning("cannot claim", error=error.message)
                await self._sleep(_FAILURE_PAUSE_SEC)
            except Exception:
                _log.exception("claim failed")
                await self._sleep(_FAILURE_PAUSE_SEC)
            else:
                if not progressed:
                    await self._sleep(min(self._poll_interval_sec, self._queues.next_opening_sec()))

    async def _round(self) -> bool:
        """One look or claim. False: nothing to do until something changes."""
        if not self._may_claim():
            return False
        now = time.monotonic()
        is_time_to_look = now - self._looked_at >= self._poll_interval_sec
        if self._unsure or (is_time_to_look and now < self._unsure_until):
            await self._adopt()
        if is_time_to_look:
            self._looked_at = time.monotonic()
            self._note_all(await self._store.find_waiting_queues())
        self._queues.open_due()
        if not self._queues:
            return False
        quotas = self._share_out()
        if 0 < sum(quotas.values()) < self._slots // 8:
            await asyncio.sleep(_GATHER_SEC)
            quotas = self._share_out()
        if not quotas or not self._may_claim():  # the look may have hung until this instance was fenced
            return False
        await self._claim(quotas)
        return True

    def _share_out(self) -> dict[UUID, int]:
        return self._queues.share_out(self._slots - len(self._running), self._held)

    async def _claim(self, quotas: dict[UUID, int]) -> None:
        self._queues.take(quotas)
        asked_at = time.monotonic()
        try:
            first_lanes = {queue: self._queues.first_lane(queue) for queue in quotas}
            claims = await self._store.claim(quotas, first_lanes=first_lanes, small=self._is_shallow)
        except BaseException as error:
            # An ambiguous one may have been committed, or may be yet: then executions are RUNNING in this worker's name that
            # it does not know of.
            if isinstance(error, AmbiguousResult):
                self._unsure = True
                self._unsure_until = time.monotonic() + _STATEMENT_SEC
            self._queues.add(quotas)
            raise
        self._is_shallow = len(claims) <= SMALL_BATCH and len(claims) < sum(quotas.values())
        short = self._queues.give_back(quotas, Counter(claim.queue for claim in claims))
        self._begin_all(claims, asked_at)
        if short:
            self._queues.note(await self._store.look_at_queues(short), gave_nothing=True)

    def _note_all(self, states: list[QueueState]) -> None:
        metrics.QUEUES_WAITING.set(len(states))
        metrics.QUEUES_HELD_BACK.set(sum(state.opens_in_ms != 0 for state in states))
        self._queues.note(states)

    async def _adopt(self) -> None:
        """Delivers what a claim with a lost answer had taken."""
        # Known before the look, because what is delivered and recorded meanwhile was not to be adopted either.
        running = {(claim.execution_id, claim.attempt_count) for claim in self._running.values()}
        known = running | set(self._unwritten())
        asked_at = time.monotonic()
        held = await self._store.find_held([execution_id for execution_id, _ in running])
        self._unsure = False
        adopted = [claim for claim in held if (claim.execution_id, claim.attempt_count) not in known]
        for claim in adopted:
            _log.info("adopted", execution_id=execution_id_text(claim.execution_id), attempt=claim.attempt_count)
        self._begin_all(adopted, asked_at)

    def _begin_all(self, claims: list[Claim], asked_at: float) -> None:
        if not claims:
            return
        ahead_of_database = self._clock.difference(claims[-1].claimed_at_ms, asked_at)
        metrics.observe_all(metrics.QUEUE_WAIT, [max(0.0, -claim.ahead_ms / 1000) for claim in claims])
        late = [max(0.0, claim.late_ms / 1000) for claim in claims if claim.attempt_count == 1 and claim.ahead_ms <= 0]
        metrics.observe_all(metrics.LATENESS, late)
        for claim in claims:
            self._begin(claim, claim.ready_at_ms / 1000 + ahead_of_database if claim.ahead_ms > 0 else None)

    def _begin(self, claim: Claim, send_at: float | None) -> None:
        task = asyncio.create_task(self._deliver(claim, send_at))
        self._running[task] = claim
        self._held[claim.queue] += 1
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        queue = self._running.pop(task).queue
        self._held[queue] -= 1
        if not self._held[queue]:
            del self._held[queue]
        if self._queues:
            self._changed.set()

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            pass
