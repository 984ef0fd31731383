"""Flow control as a dispatcher lives with it: what is held back goes out as soon as it may, without waiting for a look."""

from __future__ import annotations

from uuid import UUID

import pytest
from prometheus_client import REGISTRY

from taskexecutor_common.model.endpoint import Circuit, CircuitBreaker, ClosedBy, FlowControl, RateLimit
from taskexecutor_dispatcher.endpoints.base import DeliveryError, Outcome
from tests.integration.dispatcher.engine.dispatchers import REFUSED, TAKEN, Gate, Target, a_dispatcher, running
from tests.support.engine import Engine, MadeEndpoint
from tests.support.waiting import wait_until

SOON_SEC = 0.05


async def come_to(engine: Engine, *wanted: str) -> None:
    """Waits until the statuses of all executions are these."""

    async def reached() -> bool:
        return {status for (status,) in await engine.rows("SELECT DISTINCT status FROM executions")} == set(wanted)

    await wait_until(reached)


async def with_work(engine: Engine, count: int, control: FlowControl | None = None) -> MadeEndpoint:
    endpoint = await engine.endpoint(flow_control=control)
    await engine.create(endpoint, count)
    return endpoint


async def test_each_delivery_that_ends_lets_the_next_one_out(engine: Engine) -> None:
    endpoint = await with_work(engine, 12, FlowControl(max_in_flight=2))
    async with running(await a_dispatcher(engine, Target())) as dispatcher:
        dispatcher.claimer.wake([endpoint.endpoint_id])
        await come_to(engine, "SUCCESS")
    assert dispatcher.target.most_at_once <= 2
    assert len(dispatcher.target.delivered) == 12


async def test_two_dispatchers_keep_one_limit(engine: Engine) -> None:
    endpoint = await with_work(engine, 40, FlowControl(max_in_flight=3))
    target = Target()
    async with (
        running(await a_dispatcher(engine, target, poll_interval_sec=SOON_SEC)) as one,
        running(await a_dispatcher(engine, target, poll_interval_sec=SOON_SEC)) as other,
    ):
        for dispatcher in (one, other):
            dispatcher.claimer.wake([endpoint.endpoint_id])
        await come_to(engine, "SUCCESS")
    assert target.most_at_once <= 3
    assert set(target.executions.values()) == {1}


async def test_a_rate_lets_the_next_one_out_when_its_token_is_there(engine: Engine) -> None:
    endpoint = await with_work(engine, 6, FlowControl(rate_limit=RateLimit(per_sec=100, burst=1)))
    async with running(await a_dispatcher(engine, Target())) as dispatcher:
        dispatcher.claimer.wake([endpoint.endpoint_id])
        await come_to(engine, "SUCCESS")
    ((seconds,),) = await engine.rows(
        "SELECT extract(epoch FROM max(started_at) - min(started_at))::double precision FROM executions"
    )
    assert seconds >= 0.05


async def test_an_endpoint_at_its_limit_does_not_hold_up_its_neighbour(engine: Engine) -> None:
    held = await with_work(engine, 5, FlowControl(rate_limit=RateLimit(per_sec=0.001, burst=1)))
    free = await with_work(engine, 30)
    async with running(await a_dispatcher(engine, Target(), poll_interval_sec=SOON_SEC)) as dispatcher:
        dispatcher.claimer.wake([held.endpoint_id, free.endpoint_id])
        await wait_until(lambda: len(dispatcher.target.delivered) == 31)
    assert len(await engine.waiting()) == 4


async def test_failing_deliveries_open_the_circuit_and_the_rest_waits(engine: Engine) -> None:
    breaker = CircuitBreaker(failure_rate=0.5, minimum_attempts=4)
    endpoint = await with_work(engine, 30, FlowControl(circuit_breaker=breaker))

    async def refuse(_: UUID, __: int) -> Outcome:
        return REFUSED

    async with running(await a_dispatcher(engine, Target(refuse), slots=4, poll_interval_sec=SOON_SEC)) as dispatcher:

        async def opened() -> bool:
            return (await engine.flow(endpoint)).circuit is Circuit.OPEN and await engine.count("leases") == 0

        await wait_until(opened)
        asked = len(dispatcher.target.delivered)
        looked = dispatcher.rounds
        await wait_until(lambda: dispatcher.rounds > looked + 3)
        assert len(dispatcher.target.delivered) == asked < 30
        assert len(await engine.waiting()) == 30 - asked


def resting(status: int, ms: int) -> Outcome:
    return Outcome(error=DeliveryError("HTTP_ERROR", f"answered {status}", status), retry_after_ms=ms)


@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_closes_the_tap_and_costs_no_attempt(engine: Engine, status: int) -> None:
    count = 2_000  # far more than can be claimed before the first answer is recorded
    endpoint = await with_work(engine, count)

    async def ask_for_rest(_: UUID, __: int) -> Outcome:
        return resting(status, 30_000)

    async with running(await a_dispatcher(engine, Target(ask_for_rest), slots=1, poll_interval_sec=SOON_SEC)) as one:
        await come_to(engine, "QUEUED", "RETRYING")
        asked, looked = len(one.target.delivered), one.rounds
        await wait_until(lambda: one.rounds > looked + 3)
        assert len(one.target.delivered) == asked < count, (
            "what was claimed before it was closed goes out, nothing else"
        )
    assert (await engine.flow(endpoint)).closed_by is ClosedBy.RETRY_AFTER
    ((attempts, most, message),) = await engine.rows(
        "SELECT DISTINCT e.attempt_count, e.max_attempts, l.message"
        " FROM executions AS e JOIN execution_logs AS l USING (execution_id)"
    )
    assert (attempts, most) == (1, 2)
    assert message.endswith("the receiver asks for a rest of 30.000 s, and this attempt does not count")


async def test_retry_after_of_another_status_speaks_of_its_own_delivery_only(engine: Engine) -> None:
    endpoint = await with_work(engine, 2)

    async def not_yet(_: UUID, __: int) -> Outcome:
        return resting(404, 30_000)

    async with running(await a_dispatcher(engine, Target(not_yet))) as dispatcher:
        dispatcher.claimer.wake([endpoint.endpoint_id])
        await come_to(engine, "FAILED")
    assert (await engine.flow(endpoint)).closed_until is None


async def test_what_comes_while_a_receiver_rests_is_sent_when_it_has_rested(engine: Engine) -> None:
    """Without a poll or a hint: whoever heard the receiver knows when to look again."""
    endpoint = await with_work(engine, 1)
    asked = False

    async def ask_once(_: UUID, __: int) -> Outcome:
        nonlocal asked
        asked, asked_before = True, asked
        return TAKEN if asked_before else resting(503, 500)

    async with running(await a_dispatcher(engine, Target(ask_once))) as dispatcher:
        dispatcher.claimer.wake([endpoint.endpoint_id])
        await come_to(engine, "RETRYING")
        await engine.create(endpoint, 2)
        await engine.promote(ahead_ms=10_000)
        dispatcher.claimer.wake([endpoint.endpoint_id])  # too early, like that of a timer handed over ahead
        await come_to(engine, "SUCCESS")


async def test_a_receiver_that_asks_for_ever_is_given_up(engine: Engine) -> None:
    endpoint = await with_work(engine, 1)
    await engine.rows("UPDATE executions SET attempt_count = 100, max_attempts = 101")

    async def ask_for_rest(_: UUID, __: int) -> Outcome:
        return resting(503, 30_000)

    async with running(await a_dispatcher(engine, Target(ask_for_rest))) as dispatcher:
        dispatcher.claimer.wake([endpoint.endpoint_id])
        await come_to(engine, "FAILED")
    assert (await engine.flow(endpoint)).closed_until is None


def shown() -> tuple[float | None, float | None]:
    """Queues that wait, and those of them that are held back, as alerts see them."""
    sample = REGISTRY.get_sample_value
    return sample("taskexecutor_queues_waiting"), sample("taskexecutor_queues_held_back")


async def test_what_waits_is_seen_while_all_slots_are_held_and_nothing_is_claimed(engine: Engine) -> None:
    for _ in range(2):
        await with_work(engine, 10)
    paused = await with_work(engine, 1)
    await engine.flows.pause(paused.endpoint_id)
    gate = Gate()
    async with running(await a_dispatcher(engine, Target(gate), slots=4, poll_interval_sec=SOON_SEC)) as dispatcher:
        await wait_until(lambda: dispatcher.target.at_once == 4)
        rounds = dispatcher.rounds
        await wait_until(lambda: dispatcher.rounds >= rounds + 2)
        assert shown() == (3, 1)
        gate.open()
        await wait_until(lambda: shown() == (1, 1))


async def test_what_a_dispatcher_saw_last_is_forgotten_when_it_claims_no_more(engine: Engine) -> None:
    """Or alerts would believe in work that the others have claimed, for as long as this one drains."""
    endpoint = await with_work(engine, 3)
    await engine.flows.pause(endpoint.endpoint_id)
    dispatcher = await a_dispatcher(engine, Target(), poll_interval_sec=SOON_SEC)
    async with running(dispatcher):
        await wait_until(lambda: shown() == (1, 1))
        await dispatcher.claimer.stop()
        assert shown() == (0, 0)
