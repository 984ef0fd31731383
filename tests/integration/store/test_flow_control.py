"""Flow control as the statements hold it, whatever dispatchers believe: limits of an endpoint are limits of all workers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import orjson
import psycopg
import pytest

from taskexecutor_api.operations.pause_endpoint import pause_endpoint
from taskexecutor_common.errors import EndpointNotFound
from taskexecutor_common.model.endpoint import Circuit, CircuitBreaker, ClosedBy, EndpointType, FlowControl, RateLimit
from taskexecutor_common.model.execution import AttemptResult, Claim, QueueState
from taskexecutor_common.model.state import ExecutionStatus
from taskexecutor_common.store.database import Database
from taskexecutor_common.store.statements import POSTGRES_STATEMENTS
from tests.support.engine import LOST, Engine, MadeEndpoint, Worker, failed, retrying, succeeded
from tests.support.waiting import wait_until

REST_MS = 60_000
BREAKER = FlowControl(circuit_breaker=CircuitBreaker(failure_rate=0.5, minimum_attempts=4))


async def claim(worker: Worker, endpoint: MadeEndpoint, quota: int = 100) -> list[Claim]:
    return await worker.queue.claim({endpoint.endpoint_id: quota})


def at_fault(claims: Iterable[Claim]) -> list[AttemptResult]:
    return [replace(retrying(each), is_receivers_fault=True) for each in claims]


async def state(worker: Worker, endpoint: MadeEndpoint) -> QueueState:
    (found,) = await worker.queue.look_at_queues([endpoint.endpoint_id])
    return found


async def limited(engine: Engine, count: int, control: FlowControl) -> tuple[MadeEndpoint, Worker]:
    """An endpoint with limits, work for it, and a worker."""
    endpoint = await engine.endpoint(max_attempts=9, flow_control=control)
    await engine.create(endpoint, count)
    return endpoint, await engine.worker()


# --- max_in_flight ---


async def test_no_more_are_in_flight_than_allowed(engine: Engine) -> None:
    endpoint, worker = await limited(engine, 10, FlowControl(max_in_flight=3))
    assert len(await claim(worker, endpoint)) == 3
    assert await claim(worker, endpoint) == []
    assert (await engine.flow(endpoint)).in_flight == 3
    assert (await state(worker, endpoint)).opens_in_ms is None


async def test_what_has_ended_makes_room(engine: Engine) -> None:
    endpoint, worker = await limited(engine, 10, FlowControl(max_in_flight=3))
    first, second, _ = await claim(worker, endpoint)
    ended = await worker.queue.finalise([succeeded(first), retrying(second)])
    assert {each.counted_for for each in ended} == {endpoint.endpoint_id}
    assert len(await claim(worker, endpoint)) == 2


async def test_what_its_worker_lost_makes_room(engine: Engine) -> None:
    endpoint, worker = await limited(engine, 10, FlowControl(max_in_flight=3))
    await claim(worker, endpoint)
    await engine.leases_run_out()
    assert len(await engine.instances.reclaim(LOST)) == 3
    assert (await engine.flow(endpoint)).in_flight == 0


async def test_a_lost_result_makes_no_room_twice(engine: Engine) -> None:
    endpoint, worker = await limited(engine, 10, FlowControl(max_in_flight=3))
    (first, *_) = await claim(worker, endpoint)
    await worker.queue.finalise([succeeded(first)])
    (again,) = await worker.queue.finalise([succeeded(first)])
    assert again.counted_for is None
    assert (await engine.flow(endpoint)).in_flight == 2


async def test_many_workers_together_keep_the_limit(engine: Engine, isolation: str, database_url: str) -> None:
    endpoint, _ = await limited(engine, 60, FlowControl(max_in_flight=7))
    db = Database(database_url, pool_size=8, application_name="test", isolation=isolation)
    await db.open()
    workers = [await engine.worker(db) for _ in range(8)]
    for _ in range(5):
        rounds = await asyncio.gather(*(claim(worker, endpoint, 5) for worker in workers))
        held = [(worker, each) for worker, claims in zip(workers, rounds, strict=True) for each in claims]
        assert 1 <= len(held) <= 7
        assert (await engine.flow(endpoint)).in_flight == len(held) == await engine.count("leases")
        await asyncio.gather(*(worker.queue.finalise([succeeded(each)]) for worker, each in held))
    assert (await engine.flow(endpoint)).in_flight == 0
    await db.close()


async def test_a_limit_does_not_hold_up_the_neighbour(engine: Engine) -> None:
    endpoint, worker = await limited(engine, 10, FlowControl(max_in_flight=1))
    neighbour = await engine.endpoint()
    await engine.create(neighbour, 10)
    claims = await worker.queue.claim({endpoint.endpoint_id: 5, neighbour.endpoint_id: 5})
    assert [each.queue for each in claims].count(neighbour.endpoint_id) == 5


async def test_deliveries_begun_without_limits_are_not_counted(engine: Engine) -> None:
    endpoint, worker = await limited(engine, 10, FlowControl())
    before = await claim(worker, endpoint, 2)
    settings = engine.settings(flow_control=FlowControl(max_in_flight=3))
    assert await engine.endpoints.update("default", endpoint.name, EndpointType.HTTP, settings)
    assert len(await claim(worker, endpoint)) == 3
    await worker.queue.finalise([succeeded(each) for each in before])
    assert (await engine.flow(endpoint)).in_flight == 3


async def test_limits_that_are_taken_away_hold_nothing_back(engine: Engine) -> None:
    endpoint, worker = await limited(engine, 10, FlowControl(max_in_flight=1, rate_limit=RateLimit(0.001, 1)))
    (held,) = await claim(worker, endpoint)
    assert await engine.endpoints.update("default", endpoint.name, EndpointType.HTTP, engine.settings())
    assert len(await claim(worker, endpoint)) == 9
    await worker.queue.finalise([succeeded(held)])
    assert (await engine.flow(endpoint)).in_flight == 0


# --- rate_limit ---


async def test_a_rested_endpoint_sends_its_burst_and_then_waits_for_tokens(engine: Engine) -> None:
    endpoint, worker = await limited(engine, 20, FlowControl(rate_limit=RateLimit(per_sec=0.5, burst=4)))
    assert len(await claim(worker, endpoint)) == 4
    assert await claim(worker, endpoint) == []
    opens_in_ms = (await state(worker, endpoint)).opens_in_ms
    assert opens_in_ms is not None
    assert 0 < opens_in_ms <= 2000


async def test_tokens_grow_with_time_up_to_the_burst(engine: Engine) -> None:
    endpoint, worker = await limited(engine, 20, FlowControl(rate_limit=RateLimit(per_sec=0.5, burst=4)))
    await claim(worker, endpoint)
    await engine.tokens_grow(endpoint, 4)
    assert len(await claim(worker, endpoint)) == 2
    await engine.tokens_grow(endpoint, 1000)
    assert len(await claim(worker, endpoint)) == 4


async def test_a_claim_that_finds_nothing_spends_no_token(engine: Engine) -> None:
    endpoint, worker = await limited(engine, 1, FlowControl(rate_limit=RateLimit(per_sec=0.001, burst=2)))
    assert len(await claim(worker, endpoint)) == 1
    assert await claim(worker, endpoint) == []
    await engine.create(endpoint)
    assert len(await claim(worker, endpoint)) == 1


# --- pauses ---


@pytest.mark.parametrize("control", [FlowControl(), FlowControl(max_in_flight=5)], ids=["plain", "limited"])
async def test_a_paused_endpoint_gets_nothing_and_loses_nothing(engine: Engine, control: FlowControl) -> None:
    endpoint, worker = await limited(engine, 3, control)
    await engine.flows.pause(endpoint.endpoint_id)
    assert await claim(worker, endpoint) == []
    assert (await state(worker, endpoint)).opens_in_ms is None
    await engine.flows.resume(endpoint.endpoint_id)
    assert (await state(worker, endpoint)).opens_in_ms == 0
    assert len(await claim(worker, endpoint)) == 3


async def test_pausing_twice_keeps_the_first_time(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    await engine.flows.pause(endpoint.endpoint_id)
    first = (await engine.flow(endpoint)).paused_at
    await engine.flows.pause(endpoint.endpoint_id)
    assert (await engine.flow(endpoint)).paused_at == first is not None


async def test_what_runs_when_its_endpoint_is_paused_is_recorded(engine: Engine) -> None:
    endpoint, worker = await limited(engine, 1, FlowControl())
    (held,) = await claim(worker, endpoint)
    await engine.flows.pause(endpoint.endpoint_id)
    await worker.queue.finalise([succeeded(held)])
    assert await engine.status(held.execution_id) is ExecutionStatus.SUCCESS


async def test_an_endpoint_without_a_row_can_be_paused_and_limited(engine: Engine) -> None:
    paused, worker = await limited(engine, 2, FlowControl())
    bounded, _ = await limited(engine, 2, FlowControl())
    await engine.rows("DELETE FROM endpoint_flow")
    await engine.flows.pause(paused.endpoint_id)
    settings = engine.settings(flow_control=FlowControl(max_in_flight=1))
    assert await engine.endpoints.update("default", bounded.name, EndpointType.HTTP, settings)
    claims = await worker.queue.claim({paused.endpoint_id: 5, bounded.endpoint_id: 5})
    assert [each.queue for each in claims] == [bounded.endpoint_id]


async def test_a_pause_ends_with_its_endpoint_so_that_nothing_is_left_in_its_queue(engine: Engine) -> None:
    endpoint, worker = await limited(engine, 0, FlowControl())
    await engine.flows.pause(endpoint.endpoint_id)
    execution_id = await engine.create_one(endpoint, run_at=await engine.now() + timedelta(hours=1))
    await engine.timers_come_due()
    await engine.promote()
    assert await engine.executions.cancel("default", execution_id)  # which leaves what was promoted late
    assert await engine.endpoints.delete("default", endpoint.name) == (True, [])
    assert [queue.opens_in_ms for queue in await worker.queue.find_waiting_queues()] == [0]
    assert await claim(worker, endpoint) == []
    assert await engine.waiting() == []


async def test_a_job_that_was_created_beside_the_deletion_of_its_paused_endpoint_fires(
    engine: Engine, database_url: str
) -> None:
    endpoint, worker = await limited(engine, 0, FlowControl())
    await engine.flows.pause(endpoint.endpoint_id)
    new = engine.job(endpoint)
    parameters = {"region": "default", "jobs": orjson.dumps([new], default=bytes.hex).decode()}
    # At READ COMMITTED whatever the mode: a serializable creation would be run again, and find no endpoint.
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as creator, creator.transaction():
        await creator.execute(POSTGRES_STATEMENTS["create_jobs"].encode(), parameters)
        assert await engine.endpoints.delete("default", endpoint.name) == (True, [])
    assert [each.execution_id for each in await claim(worker, endpoint)] == [new.job_id]


async def test_an_endpoint_that_is_deleted_is_not_paused(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    assert await engine.endpoints.delete("default", endpoint.name) == (True, [])
    assert not await engine.flows.pause(endpoint.endpoint_id)
    assert (await engine.flow(endpoint)).paused_at is None


async def test_a_pause_beside_a_deletion_waits_and_finds_nothing(engine: Engine, database_url: str) -> None:
    endpoint = await engine.endpoint()
    blocked = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as other:
        async with other.transaction():
            await other.execute("UPDATE endpoints SET deleted_at = now()")
            pausing = asyncio.create_task(engine.flows.pause(endpoint.endpoint_id))

            async def waits() -> bool:
                return pausing.done() or await engine.value(blocked) > 0

            await wait_until(waits, what="the pause to wait")
        assert not await pausing
    assert (await engine.flow(endpoint)).paused_at is None


async def test_whoever_pauses_what_is_deleted_meanwhile_is_told(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = await engine.endpoint()
    pause = engine.flows.pause

    async def after_a_deletion(endpoint_id: UUID) -> bool:
        await engine.endpoints.delete("default", endpoint.name)
        return await pause(endpoint_id)

    monkeypatch.setattr(engine.flows, "pause", after_a_deletion)
    with pytest.raises(EndpointNotFound):
        await pause_endpoint(engine.endpoints, engine.flows, "default", endpoint.name)


# --- circuit breaker ---


async def test_the_circuit_opens_when_enough_attempts_have_failed(engine: Engine) -> None:
    endpoint, worker = await limited(engine, 20, BREAKER)
    claims = await claim(worker, endpoint, 4)
    await worker.queue.finalise([succeeded(claims[0]), *at_fault(claims[1:3])])
    assert (await engine.flow(endpoint)).circuit is Circuit.CLOSED
    await worker.queue.finalise(at_fault(claims[3:]))
    flow = await engine.flow(endpoint)
    assert (flow.circuit, flow.closed_by) == (Circuit.OPEN, ClosedBy.CIRCUIT)
    assert await claim(worker, endpoint) == []


async def test_successes_keep_the_circuit_closed(engine: Engine) -> None:
    endpoint, worker = await limited(engine, 20, BREAKER)
    claims = await claim(worker, endpoint, 20)
    await worker.queue.finalise([succeeded(each) for each in claims[:11]])
    await worker.queue.finalise(at_fault(claims[11:]))
    assert (await engine.flow(endpoint)).circuit is Circuit.CLOSED


async def test_failures_of_our_own_do_not_open_the_circuit(engine: Engine) -> None:
    endpoint, worker = await limited(engine, 20, BREAKER)
    await worker.queue.finalise([failed(each) for each in await claim(worker, endpoint)])
    assert (await engine.flow(endpoint)).circuit is Circuit.CLOSED


async def test_failures_of_a_window_that_is_over_do_not_count(engine: Engine) -> None:
    endpoint, worker = await limited(engine, 20, BREAKER)
    claims = await claim(worker, endpoint, 4)
    await worker.queue.finalise(at_fault(claims[:3]))
    await engine.rows("UPDATE endpoint_flow SET window_started_at = now() - interval '1 hour'")
    await worker.queue.finalise(at_fault(claims[3:]))
    assert (await engine.flow(endpoint)).circuit is Circuit.CLOSED


async def opened(engine: Engine) -> tuple[MadeEndpoint, Worker]:
    """An endpoint whose circuit has just opened, with work left."""
    endpoint, worker = await limited(engine, 20, BREAKER)
    await worker.queue.finalise(at_fault(await claim(worker, endpoint, 4)))
    return endpoint, worker


async def test_an_open_circuit_lets_a_single_probe_out_when_its_time_is_over(engine: Engine) -> None:
    endpoint, worker = await opened(engine)
    await engine.closed_for_long_enough(endpoint)
    assert (await engine.flow(endpoint)).circuit is Circuit.HALF_OPEN
    assert len(await claim(worker, endpoint)) == 1
    assert await claim(worker, endpoint) == []


async def test_a_probe_that_arrives_closes_the_circuit(engine: Engine) -> None:
    endpoint, worker = await opened(engine)
    await engine.closed_for_long_enough(endpoint)
    await worker.queue.finalise([succeeded(each) for each in await claim(worker, endpoint)])
    assert (await engine.flow(endpoint)).circuit is Circuit.CLOSED
    claims = await claim(worker, endpoint)
    assert len(claims) == 15
    await worker.queue.finalise(at_fault(claims[:3]))
    assert (await engine.flow(endpoint)).circuit is Circuit.CLOSED, "the count begins anew"


async def test_a_probe_that_fails_opens_the_circuit_again(engine: Engine) -> None:
    endpoint, worker = await opened(engine)
    await engine.closed_for_long_enough(endpoint)
    await worker.queue.finalise(at_fault(await claim(worker, endpoint)))
    assert (await engine.flow(endpoint)).circuit is Circuit.OPEN
    assert await claim(worker, endpoint) == []


async def test_a_probe_that_its_worker_lost_is_followed_by_another(engine: Engine) -> None:
    endpoint, worker = await opened(engine)
    await engine.closed_for_long_enough(endpoint)
    await claim(worker, endpoint)
    await engine.leases_run_out()
    await engine.instances.reclaim(LOST)
    assert len(await claim(worker, endpoint)) == 1


async def test_what_was_sent_before_the_circuit_opened_does_not_close_it(engine: Engine) -> None:
    endpoint, worker = await limited(engine, 20, BREAKER)
    claims = await claim(worker, endpoint, 8)
    await worker.queue.finalise(at_fault(claims[:4]))
    await worker.queue.finalise([succeeded(each) for each in claims[4:]])
    assert (await engine.flow(endpoint)).circuit is Circuit.OPEN


@pytest.mark.parametrize("late", [retrying, succeeded])
async def test_what_was_sent_before_the_circuit_opened_does_not_decide_for_the_probe(engine: Engine, late) -> None:
    endpoint, worker = await limited(engine, 20, BREAKER)
    *failing, held = await claim(worker, endpoint, 5)
    await worker.queue.finalise(at_fault(failing))
    await engine.closed_for_long_enough(endpoint)
    assert await claim(worker, endpoint) == [], "the probe waits for what was sent before"
    result = late(held)
    await worker.queue.finalise([replace(result, is_receivers_fault=result.error is not None)])
    assert (await engine.flow(endpoint)).circuit is Circuit.HALF_OPEN
    (probe,) = await claim(worker, endpoint)
    await worker.queue.finalise([succeeded(probe)])
    assert (await engine.flow(endpoint)).circuit is Circuit.CLOSED


async def test_what_was_sent_before_the_circuit_opened_does_not_outvote_the_probe_of_its_batch(engine: Engine) -> None:
    """Deliveries that were begun before the endpoint had limits are not counted: the probe goes out beside them."""
    endpoint, worker = await limited(engine, 20, FlowControl())
    (held,) = await claim(worker, endpoint, 1)
    assert await engine.endpoints.update(
        "default", endpoint.name, EndpointType.HTTP, engine.settings(flow_control=BREAKER)
    )
    await worker.queue.finalise(at_fault(await claim(worker, endpoint, 4)))
    await engine.closed_for_long_enough(endpoint)
    (probe,) = await claim(worker, endpoint)
    await worker.queue.finalise([*at_fault([held]), succeeded(probe)])
    assert (await engine.flow(endpoint)).circuit is Circuit.CLOSED


async def test_a_resumed_endpoint_sends_through_what_was_an_open_circuit(engine: Engine) -> None:
    endpoint, worker = await opened(engine)
    await engine.flows.resume(endpoint.endpoint_id)
    assert (await engine.flow(endpoint)).circuit is Circuit.CLOSED
    assert len(await claim(worker, endpoint)) == 16


# --- a receiver that asks for a rest ---


async def test_a_receiver_that_asks_for_a_rest_gets_it_from_all_and_loses_no_attempt(engine: Engine) -> None:
    endpoint = await engine.endpoint(max_attempts=1)
    await engine.create(endpoint, 2)
    worker = await engine.worker()
    (held,) = await claim(worker, endpoint, 1)
    await worker.queue.finalise([replace(retrying(held), close_ms=REST_MS, is_counted=False)])
    flow = await engine.flow(endpoint)
    assert (flow.closed_by, flow.circuit) == (ClosedBy.RETRY_AFTER, Circuit.CLOSED)
    assert await claim(await engine.worker(), endpoint) == []
    opens_in_ms = (await state(worker, endpoint)).opens_in_ms
    assert opens_in_ms is not None
    assert 0 < opens_in_ms <= REST_MS
    execution = await engine.execution(held.execution_id)
    assert (execution.status, execution.attempt_count, execution.max_attempts) == (ExecutionStatus.RETRYING, 1, 2)
    await engine.closed_for_long_enough(endpoint)
    assert len(await claim(worker, endpoint)) == 1


async def test_a_shorter_rest_does_not_cut_a_longer_one_short(engine: Engine) -> None:
    endpoint, worker = await limited(engine, 3, FlowControl())
    first, second, _ = await claim(worker, endpoint)
    await worker.queue.finalise([replace(retrying(first), close_ms=REST_MS)])
    until = (await engine.flow(endpoint)).closed_until
    await worker.queue.finalise([replace(retrying(second), close_ms=1)])
    assert (await engine.flow(endpoint)).closed_until == until


DAY_MS = 86_400_000


async def test_a_short_rest_does_not_take_an_open_circuits_time_for_its_own(engine: Engine) -> None:
    breaker = replace(BREAKER, circuit_breaker=CircuitBreaker(failure_rate=0.5, minimum_attempts=4, open_ms=DAY_MS))
    endpoint, worker = await limited(engine, 20, breaker)
    *failing, held = await claim(worker, endpoint, 5)
    await worker.queue.finalise(at_fault(failing))
    await worker.queue.finalise([replace(retrying(held), close_ms=1000, is_counted=False)])
    assert (await engine.flow(endpoint)).closed_by is ClosedBy.CIRCUIT
    assert await engine.endpoints.update("default", endpoint.name, EndpointType.HTTP, engine.settings())
    assert (await engine.flow(endpoint)).closed_until is None
    assert len(await claim(worker, endpoint)) == 15


@pytest.mark.parametrize("is_one_batch", [False, True], ids=["before", "together"])
async def test_a_circuit_that_opens_in_a_long_rest_does_not_take_its_time_for_its_own(
    engine: Engine, is_one_batch: bool
) -> None:
    endpoint, worker = await limited(engine, 20, BREAKER)
    *failing, held = await claim(worker, endpoint, 5)
    rest = [replace(retrying(held), close_ms=DAY_MS, is_counted=False)]
    for batch in [[*rest, *at_fault(failing)]] if is_one_batch else [rest, at_fault(failing)]:
        await worker.queue.finalise(batch)
    flow = await engine.flow(endpoint)
    assert (flow.circuit, flow.closed_by) == (Circuit.OPEN, ClosedBy.RETRY_AFTER)
    assert await engine.endpoints.update("default", endpoint.name, EndpointType.HTTP, engine.settings())
    assert (await engine.flow(endpoint)).closed_until == flow.closed_until
    assert await claim(worker, endpoint) == []


async def test_a_long_rest_outlasts_the_open_circuit_that_it_comes_to(engine: Engine) -> None:
    endpoint, worker = await limited(engine, 20, BREAKER)
    *failing, held = await claim(worker, endpoint, 5)
    await worker.queue.finalise(at_fault(failing))
    await worker.queue.finalise([replace(retrying(held), close_ms=DAY_MS, is_counted=False)])
    assert (await engine.flow(endpoint)).closed_by is ClosedBy.RETRY_AFTER


async def test_a_rest_does_not_count_against_the_circuit(engine: Engine) -> None:
    endpoint, worker = await limited(engine, 20, BREAKER)
    resting = [replace(retrying(each), close_ms=1) for each in await claim(worker, endpoint)]
    await worker.queue.finalise(resting)
    assert (await engine.flow(endpoint)).circuit is Circuit.CLOSED


# --- looking ---


async def test_a_look_at_all_queues_says_which_may_send(engine: Engine) -> None:
    plain, full = await engine.endpoint(), await engine.endpoint(flow_control=FlowControl(max_in_flight=1))
    paused = await engine.endpoint()
    for endpoint in (plain, full, paused):
        await engine.create(endpoint, 2)
    worker = await engine.worker()
    await claim(worker, full, 1)
    await engine.flows.pause(paused.endpoint_id)
    states = {each.queue: (each.is_limited, each.opens_in_ms) for each in await worker.queue.find_waiting_queues()}
    assert states == {
        plain.endpoint_id: (False, 0),
        full.endpoint_id: (True, None),
        paused.endpoint_id: (False, None),
    }


async def test_a_queue_of_unknown_flow_may_send(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    await engine.create(endpoint, 2)
    await engine.rows("DELETE FROM endpoint_flow")
    worker = await engine.worker()
    (found,) = await worker.queue.find_waiting_queues()
    assert found == QueueState(endpoint.endpoint_id, is_limited=False, opens_in_ms=0)
    assert len(await claim(worker, endpoint)) == 2
