"""What a delivery costs the database, as counts: statements are shared by batches, however much or little waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from taskexecutor_common.store.database import Database
from tests.integration.dispatcher.engine.dispatchers import Target, a_dispatcher, running
from tests.support.engine import Engine
from tests.support.waiting import wait_until

DELIVERIES = 2000
SLOTS = 100


class CountingDatabase(Database):
    """Counts the statements that are sent, by name."""

    sent: Counter[str]

    async def _retry_on_connection(self, name: str, work: Callable[..., Awaitable[Any]], **options: Any) -> Any:
        self.sent[name] += 1
        return await super()._retry_on_connection(name, work, **options)


@pytest.fixture
async def counted(database_url: str) -> AsyncIterator[CountingDatabase]:
    database = CountingDatabase(database_url, pool_size=4, application_name="counted")
    database.sent = Counter()
    await database.open()
    yield database
    await database.close()


@pytest.mark.parametrize("endpoints", [1, 50], ids=lambda count: f"{count}_endpoints")
async def test_a_backlog_costs_a_twentieth_of_a_statement_a_delivery(
    engine: Engine, counted: CountingDatabase, endpoints: int
) -> None:
    made = [await engine.endpoint() for _ in range(endpoints)]
    for endpoint in made:
        await engine.create(endpoint, DELIVERIES // endpoints)
    dispatcher = await a_dispatcher(engine, Target(), db=counted, slots=SLOTS)
    counted.sent.clear()
    async with running(dispatcher):
        dispatcher.claimer.wake([endpoint.endpoint_id for endpoint in made])
        await wait_until(lambda: len(dispatcher.target.delivered) == DELIVERIES and not dispatcher.completer.backlog)
    each = {"claim_executions", "finalise_executions"}
    assert sum(counted.sent[name] for name in each) <= DELIVERIES / 20
    others = {name: count for name, count in counted.sent.items() if name not in each}
    assert others == {"find_waiting_queues": 1, "get_endpoint_revision": endpoints}


async def test_a_dispatcher_with_nothing_to_do_only_looks(engine: Engine, counted: CountingDatabase) -> None:
    dispatcher = await a_dispatcher(engine, Target(), db=counted, poll_interval_sec=0.01)
    counted.sent.clear()
    async with running(dispatcher):
        await wait_until(lambda: counted.sent["find_waiting_queues"] >= 10)
    assert counted.sent.keys() == {"find_waiting_queues"}


async def test_a_queue_that_is_held_back_costs_no_claims(engine: Engine, counted: CountingDatabase) -> None:
    endpoint = await engine.endpoint()
    await engine.create(endpoint, 10)
    await engine.flows.pause(endpoint.endpoint_id)
    dispatcher = await a_dispatcher(engine, Target(), db=counted, poll_interval_sec=0.01)
    counted.sent.clear()
    async with running(dispatcher):
        await wait_until(lambda: counted.sent["find_waiting_queues"] >= 10)
    assert counted.sent.keys() == {"find_waiting_queues"}
