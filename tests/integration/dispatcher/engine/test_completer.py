"""The completer: every result is written, once, whatever stands in the way of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from taskexecutor_common.model.execution import Claim
from taskexecutor_common.model.state import ExecutionStatus
from taskexecutor_common.observability.metrics import CLAIMS_LOST, EXECUTIONS_ENDED
from taskexecutor_common.store.database import Database
from taskexecutor_dispatcher.completer import Completer
from tests.support.engine import LOST, Engine, Worker, retrying, succeeded
from tests.support.faulty_database import Fault, Faults, FaultyDatabase
from tests.support.line import Line
from tests.support.waiting import wait_until

SUCCEEDED = EXECUTIONS_ENDED.labels(status=ExecutionStatus.SUCCESS.value)
NUL = {"body": "\0"}  # what PostgreSQL's jsonb cannot hold


async def claimed(engine: Engine, count: int, db: Database | None = None) -> tuple[Worker, list[Claim]]:
    endpoint = await engine.endpoint(max_attempts=2)
    await engine.create(endpoint, count)
    worker = await engine.worker(db)
    return worker, await worker.queue.claim({endpoint.endpoint_id: count})


async def written(engine: Engine, claims: Sequence[Claim]) -> bool:
    ids = [claim.execution_id for claim in claims]
    return await engine.value("SELECT count(*) FROM attempts WHERE execution_id = ANY (%s)", ids) == len(claims)


def a_completer(worker: Worker, wake_at: Callable[[datetime], None] = lambda _: None) -> Completer:
    return Completer(worker.queue, wake_at, make_room=lambda _: None, rest=lambda _, __: None)


async def test_results_are_written_as_they_come(engine: Engine) -> None:
    worker, claims = await claimed(engine, 250)
    completer = a_completer(worker)
    await completer.start()
    for claim in claims:
        completer.put(succeeded(claim))
    await wait_until(lambda: written(engine, claims))
    await completer.stop()
    assert completer.backlog == 0
    assert set(await engine.statuses([claim.execution_id for claim in claims[:10]])) == {ExecutionStatus.SUCCESS}


async def test_a_stop_writes_what_is_left(engine: Engine) -> None:
    worker, claims = await claimed(engine, 450)
    completer = a_completer(worker)
    for claim in claims:
        completer.put(succeeded(claim))
    await completer.start()
    await completer.stop()
    assert await written(engine, claims)


async def test_a_result_that_cannot_be_stored_does_not_take_its_neighbours_with_it(engine: Engine) -> None:
    worker, claims = await claimed(engine, 5)
    completer = a_completer(worker)
    bad, *good = claims
    for claim in good[:2]:
        completer.put(succeeded(claim))
    completer.put(replace(succeeded(bad), output=NUL))
    for claim in good[2:]:
        completer.put(succeeded(claim))
    await completer.start()
    await completer.stop()
    for claim in good:
        assert (await engine.execution(claim.execution_id)).output == {"status_code": 200}
    kept = await engine.execution(bad.execution_id)
    assert (kept.status, kept.output) == (ExecutionStatus.SUCCESS, None)
    assert kept.error is not None
    assert kept.error["type"] == "INTERNAL_ERROR"


async def test_results_outlast_an_outage(engine: Engine, far_db: Database, line: Line) -> None:
    worker, claims = await claimed(engine, 10, far_db)
    completer = a_completer(worker)
    await completer.start()
    line.cut()
    for claim in claims:
        completer.put(succeeded(claim))
    await wait_until(completer.problem, what="the outage is noticed")
    assert completer.backlog == 10
    line.mend()
    await wait_until(lambda: written(engine, claims))
    await wait_until(lambda: completer.problem() is None)
    await completer.stop()


async def test_the_scheduler_is_told_when_the_earliest_retry_is_due(engine: Engine) -> None:
    worker, claims = await claimed(engine, 3)
    told: list[datetime] = []
    completer = a_completer(worker, told.append)
    for claim, delay_ms in zip(claims, (60_000, 20_000, 40_000), strict=True):
        completer.put(retrying(claim, delay_ms))
    await completer.start()
    await completer.stop()
    assert told == [await engine.value("SELECT min(fire_at) FROM timers")]


async def test_results_whose_answers_are_lost_again_and_again_are_not_taken_for_lost_claims(
    engine: Engine, database_url: str, isolation: str
) -> None:
    lost = Faults(1, 1.0, {Fault.LOST_AFTER}, only=["finalise_executions", "find_recorded_attempts"])
    db = FaultyDatabase(database_url, lost, pool_size=2, application_name="faulty", isolation=isolation)
    await db.open()
    worker, claims = await claimed(engine, 5, db)
    claims_lost, succeeded_before = CLAIMS_LOST._value.get(), SUCCEEDED._value.get()
    completer = a_completer(worker)
    for claim in claims:
        completer.put(succeeded(claim))
    await completer.start()
    await wait_until(completer.problem)
    db.faults = Faults(1, 0.0)
    await wait_until(lambda: not completer.backlog)
    await completer.stop()
    await db.close()
    assert await written(engine, claims)
    assert CLAIMS_LOST._value.get() == claims_lost
    assert SUCCEEDED._value.get() == succeeded_before + 5


async def test_a_result_whose_claim_was_lost_is_dropped(engine: Engine) -> None:
    worker, claims = await claimed(engine, 2)
    lost, kept = claims
    await engine.rows(
        "UPDATE leases SET expires_at = now() - interval '1 hour' WHERE execution_id = %s", lost.execution_id
    )
    await engine.instances.reclaim(LOST)
    completer = a_completer(worker)
    for claim in claims:
        completer.put(succeeded(claim))
    await completer.start()
    await completer.stop()
    assert await engine.status(lost.execution_id) is ExecutionStatus.RETRYING
    assert await engine.status(kept.execution_id) is ExecutionStatus.SUCCESS


async def test_what_waits_to_be_written_is_known(engine: Engine) -> None:
    worker, (claim,) = await claimed(engine, 1)
    completer = a_completer(worker)
    completer.put(succeeded(claim))
    assert completer.unwritten() == {(claim.execution_id, 1)}
    await completer.start()
    await completer.stop()
    assert completer.unwritten() == set()
