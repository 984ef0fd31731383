"""The engine of a dispatcher as main.py wires it, on a test's database, with a target that does what the test says."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from taskexecutor_common.clock import Clock
from taskexecutor_common.crypto import KeyRing, generate_entry
from taskexecutor_common.endpoint_types.base import DeliveryIdentity
from taskexecutor_common.ids import parse_id
from taskexecutor_common.model.endpoint import EndpointType
from taskexecutor_common.store.database import Database
from taskexecutor_common.store.endpoints import EndpointStore
from taskexecutor_common.store.setup import SetupStore
from taskexecutor_dispatcher.claimer import Claimer
from taskexecutor_dispatcher.completer import Completer
from taskexecutor_dispatcher.endpoints.base import DeliveryError, Outcome
from taskexecutor_dispatcher.executor import Executor
from taskexecutor_dispatcher.queues import QueueSet
from taskexecutor_dispatcher.revisions import Revisions
from tests.support.engine import Engine, Worker

TAKEN = Outcome(output={"status_code": 200})
REFUSED = Outcome(error=DeliveryError("HTTP_ERROR", "answered 500", 500))
LONG_SEC = 60.0  # a poll interval that no test waits for

Answer = Callable[[UUID, int], Awaitable[Outcome]]
"""Answers the delivery of (execution id, attempt)."""


async def take(_: UUID, __: int) -> Outcome:
    """A target that takes everything."""
    return TAKEN


@dataclass
class Target:
    """What deliveries go to: a Transport that notes each and answers as it is told."""

    answer: Answer = take
    delivered: list[tuple[UUID, int]] = field(default_factory=list)
    requests: list[Any] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    async def deliver(self, request: Any, identity: DeliveryIdentity, timeout_ms: int) -> Outcome:
        """See Transport."""
        execution_id = parse_id(identity.execution_id, "exec")
        assert execution_id is not None
        self.delivered.append((execution_id, identity.attempt))
        self.requests.append(request)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self.answer(execution_id, identity.attempt)
        finally:
            self.at_once -= 1

    async def close(self) -> None:
        """See Transport."""

    @property
    def executions(self) -> Counter[UUID]:
        """How often each execution was delivered."""
        return Counter(execution_id for execution_id, _ in self.delivered)


class Gate:
    """A target's answer that comes when the test opens the gate."""

    def __init__(self, outcome: Outcome = TAKEN) -> None:
        self._outcome = outcome
        self._opened = asyncio.Event()

    def open(self) -> None:
        """Lets all answers out, and all later ones."""
        self._opened.set()

    async def __call__(self, _: UUID, __: int) -> Outcome:
        await self._opened.wait()
        return self._outcome


@dataclass
class Dispatcher:
    """A dispatcher's parts; `claimer` runs once `dispatch` has started it."""

    worker: Worker
    target: Target
    claimer: Claimer
    completer: Completer
    executor: Executor
    rounds: int = 0
    """How often the claimer has looked."""


async def a_dispatcher(
    engine: Engine,
    target: Target,
    *,
    db: Database | None = None,
    slots: int = 16,
    poll_interval_sec: float = LONG_SEC,
    is_fenced: Callable[[], bool] = lambda: False,
    keys: KeyRing | None = None,
) -> Dispatcher:
    """A dispatcher that does not run yet. `db`: its connections, if not those of all."""
    connections = db or engine.db
    worker = await engine.worker(connections)
    revisions = Revisions(
        EndpointStore(connections),
        SetupStore(connections),
        keys or KeyRing.parse(generate_entry()),
        revision_ttl_sec=LONG_SEC,
        secret_ttl_sec=LONG_SEC,
    )
    completer = Completer(
        worker.queue,
        lambda _: None,
        lambda queues: claimer.make_room(queues),
        lambda queue, ms: claimer.rest(queue, ms),
    )
    executor = Executor(revisions, {EndpointType.HTTP: target}, completer.put, is_fenced, Clock())

    def may_claim() -> bool:
        dispatcher.rounds += 1
        return not is_fenced() and completer.keeps_up()

    claimer = Claimer(
        worker.queue,
        QueueSet(time.monotonic, lanes=len(engine.lanes)),
        executor.deliver,
        slots=slots,
        poll_interval_sec=poll_interval_sec,
        may_claim=may_claim,
        unwritten=completer.unwritten,
    )
    dispatcher = Dispatcher(worker, target, claimer, completer, executor)
    return dispatcher


@asynccontextmanager
async def running(dispatcher: Dispatcher) -> AsyncIterator[Dispatcher]:
    """Runs it, and stops it as Delivery does."""
    await dispatcher.completer.start()
    await dispatcher.claimer.start()
    try:
        yield dispatcher
    finally:
        await dispatcher.claimer.stop()
        await dispatcher.claimer.drain(0)
        await dispatcher.completer.stop()
