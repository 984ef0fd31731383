"""One attempt: what is sent, what follows from the answer, and when nothing may be sent."""

from __future__ import annotations

import asyncio
import errno
import time
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from taskexecutor_common.crypto import KeyRing, generate_entry
from taskexecutor_common.model.state import ExecutionStatus
from taskexecutor_dispatcher.endpoints.base import DeliveryError, Outcome, own_shortage
from tests.integration.dispatcher.engine.dispatchers import REFUSED, Dispatcher, Target, a_dispatcher, running
from tests.support.engine import NAMESPACE, Engine, MadeEndpoint
from tests.support.faulty_database import OVERLOAD, Faults, FaultyDatabase
from tests.support.waiting import wait_until

URL = "http://127.0.0.1:9/"


async def attempt(engine: Engine, dispatcher: Dispatcher, endpoint: MadeEndpoint) -> UUID:
    """One attempt of the next execution, recorded."""
    claim = await engine.claim_one(endpoint, dispatcher.worker)
    await dispatcher.executor.deliver(claim)
    await dispatcher.completer.start()
    await dispatcher.completer.stop()
    return claim.execution_id


async def test_a_target_that_took_it_makes_a_success(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    await engine.create(endpoint)
    execution_id = await attempt(engine, await a_dispatcher(engine, Target()), endpoint)
    execution = await engine.execution(execution_id)
    assert (execution.status, execution.output) == (ExecutionStatus.SUCCESS, {"status_code": 200})


async def refuse(_: UUID, __: int) -> Outcome:
    return REFUSED


async def test_a_target_that_refused_it_makes_another_attempt_and_a_log_row(engine: Engine) -> None:
    endpoint = await engine.endpoint(max_attempts=2)
    await engine.create(endpoint)
    execution_id = await attempt(engine, await a_dispatcher(engine, Target(refuse)), endpoint)
    assert await engine.status(execution_id) is ExecutionStatus.RETRYING
    (log,) = await engine.executions.list_logs(execution_id, (0, 0), 10)
    assert log.level.value == "WARN"
    assert "HTTP_ERROR 500" in log.message


async def test_the_last_attempt_makes_a_failure(engine: Engine) -> None:
    endpoint = await engine.endpoint(max_attempts=2)
    await engine.create(endpoint)
    dispatcher = await a_dispatcher(engine, Target(refuse))
    await attempt(engine, dispatcher, endpoint)
    await engine.timers_come_due()
    await engine.promote()
    execution_id = await attempt(engine, await a_dispatcher(engine, Target(refuse)), endpoint)
    assert await engine.status(execution_id) is ExecutionStatus.FAILED
    assert await engine.attempts(execution_id) == [(1, "FAILED", "HTTP_ERROR"), (2, "FAILED", "HTTP_ERROR")]


async def test_what_will_not_get_better_is_not_tried_again(engine: Engine) -> None:
    async def never(_: UUID, __: int) -> Outcome:
        return Outcome(error=DeliveryError("ADDRESS_REFUSED", "no"), retryable=False)

    endpoint = await engine.endpoint(max_attempts=5)
    await engine.create(endpoint)
    execution_id = await attempt(engine, await a_dispatcher(engine, Target(never)), endpoint)
    assert await engine.status(execution_id) is ExecutionStatus.FAILED


async def test_attempts_that_did_not_count_make_no_pause_longer(engine: Engine) -> None:
    endpoint = await engine.endpoint(max_attempts=2)  # with pauses that double, from 1 ms
    execution_id = await engine.create_one(endpoint)
    await engine.rows(
        "UPDATE executions SET attempt_count = 8, max_attempts = 10 WHERE execution_id = %s RETURNING 1", execution_id
    )
    await attempt(engine, await a_dispatcher(engine, Target(refuse)), endpoint)
    (log,) = await engine.executions.list_logs(execution_id, (0, 0), 10)
    assert "attempt 9 of 10" in log.message
    assert "0.001 s" in log.message


async def test_a_placeholder_without_a_value_fails_at_once_and_is_named(engine: Engine) -> None:
    endpoint = await engine.endpoint(max_attempts=5, spec={"url": URL + "{{input.missing}}", "method": "GET"})
    await engine.create(endpoint)
    dispatcher = await a_dispatcher(engine, Target())
    execution = await engine.execution(await attempt(engine, dispatcher, endpoint))
    assert dispatcher.target.delivered == []
    assert execution.status is ExecutionStatus.FAILED
    assert execution.error is not None
    assert execution.error["type"] == "TEMPLATE_RESOLUTION_FAILED"
    assert "input.missing" in execution.error["message"]


async def test_a_fenced_instance_sends_nothing_and_hands_its_claim_on(engine: Engine) -> None:
    """It may be found to live after all; then nobody else would take over before the lease ends."""
    endpoint = await engine.endpoint(max_attempts=1)
    await engine.create(endpoint)
    dispatcher = await a_dispatcher(engine, Target(), is_fenced=lambda: True)
    execution_id = await attempt(engine, dispatcher, endpoint)
    assert dispatcher.target.delivered == []
    execution = await engine.execution(execution_id)
    assert (execution.status, execution.attempt_count, execution.max_attempts) == (ExecutionStatus.RETRYING, 1, 2)


async def test_what_a_leaving_dispatcher_has_not_sent_costs_no_attempt(engine: Engine) -> None:
    endpoint = await engine.endpoint(max_attempts=1)
    execution_id = await engine.create_one(endpoint)
    dispatcher = await a_dispatcher(engine, Target())
    claim = await engine.claim_one(endpoint, dispatcher.worker)
    holding = asyncio.create_task(dispatcher.executor.deliver(claim, send_at=time.monotonic() + 3600))
    await asyncio.sleep(0)
    holding.cancel()
    await holding
    await dispatcher.completer.start()
    await dispatcher.completer.stop()
    assert dispatcher.target.delivered == []
    execution = await engine.execution(execution_id)
    assert (execution.status, execution.attempt_count, execution.max_attempts) == (ExecutionStatus.RETRYING, 1, 2)


async def test_a_connection_that_our_own_machine_cannot_open_costs_no_attempt(engine: Engine) -> None:
    async def shortage(_: UUID, __: int) -> Outcome:
        outcome = own_shortage(OSError(errno.EMFILE, "Too many open files"))
        assert outcome is not None
        return outcome

    endpoint = await engine.endpoint(max_attempts=1)
    await engine.create(endpoint)
    execution_id = await attempt(engine, await a_dispatcher(engine, Target(shortage)), endpoint)
    execution = await engine.execution(execution_id)
    assert (execution.status, execution.attempt_count, execution.max_attempts) == (ExecutionStatus.RETRYING, 1, 2)
    (log,) = await engine.executions.list_logs(execution_id, (0, 0), 10)
    assert "Too many open files; nothing was sent, this attempt does not count" in log.message


async def test_all_attempts_see_the_config_of_the_first(engine: Engine) -> None:
    await engine.setup.create_config(NAMESPACE, "settings", {"path": "first"})
    spec = {"url": URL + "{{config.path}}", "method": "GET"}
    endpoint = await engine.endpoint(max_attempts=2, config="settings", spec=spec)
    await engine.create(endpoint)
    target = Target(refuse)
    await attempt(engine, await a_dispatcher(engine, target), endpoint)
    await engine.setup.update_config(NAMESPACE, "settings", {"path": "second"}, lambda path: False)
    await engine.timers_come_due()
    await engine.promote()
    await attempt(engine, await a_dispatcher(engine, target), endpoint)
    assert [request.url for request in target.requests] == [URL + "first"] * 2


async def with_a_secret(engine: Engine, **settings: Any) -> tuple[KeyRing, MadeEndpoint]:
    """An endpoint that sends the secret `hunter2-hunter2`, and the keys to read it."""
    keys = KeyRing.parse(generate_entry())
    key_id, encrypted = keys.encrypt("hunter2-hunter2", namespace=NAMESPACE, name="token")
    await engine.setup.create_secret(NAMESPACE, "token", key_id, encrypted)
    spec = {"url": URL, "method": "GET", "headers": {"Authorization": "Bearer {{secret.token}}"}}
    return keys, await engine.endpoint(spec=spec, **settings)


async def test_a_secret_is_sent_and_masked_where_it_is_answered(engine: Engine) -> None:
    keys, endpoint = await with_a_secret(engine)
    await engine.create(endpoint)
    target = Target()

    async def echo(_: UUID, __: int) -> Outcome:
        return Outcome(output={"body": dict(target.requests[0].headers)["Authorization"]})

    target.answer = echo
    execution_id = await attempt(engine, await a_dispatcher(engine, target, keys=keys), endpoint)
    assert ("Authorization", "Bearer hunter2-hunter2") in target.requests[0].headers
    output: dict[str, Any] = (await engine.execution(execution_id)).output or {}
    assert "hunter2" not in output["body"]


async def test_the_beginning_of_a_secret_is_not_shown_where_an_answer_was_cut(engine: Engine) -> None:
    keys, endpoint = await with_a_secret(engine)
    await engine.create(endpoint)

    async def cut(_: UUID, __: int) -> Outcome:
        error = DeliveryError("STREAM_ERROR", "Redis answered: ERR Bearer hunter2-hunt…")
        return Outcome(output={"body": "you said: Bearer hunter2-hunter", "truncated": True}, error=error)

    execution_id = await attempt(engine, await a_dispatcher(engine, Target(cut), keys=keys), endpoint)
    execution = await engine.execution(execution_id)
    assert execution.output == {"body": "you said: Bearer ", "truncated": True}
    assert execution.error is not None
    assert execution.error["message"] == "Redis answered: ERR Bearer …"


async def test_an_error_of_our_own_ends_in_a_result_too(engine: Engine) -> None:
    async def stumble(_: UUID, __: int) -> Outcome:
        raise ZeroDivisionError

    endpoint = await engine.endpoint(max_attempts=2)
    await engine.create(endpoint)
    execution_id = await attempt(engine, await a_dispatcher(engine, Target(stumble)), endpoint)
    assert await engine.status(execution_id) is ExecutionStatus.RETRYING
    assert await engine.attempts(execution_id) == [(1, "FAILED", "INTERNAL_ERROR")]


@pytest.mark.parametrize("unreadable", ["get_endpoint_revision", "get_encrypted_secret"])
async def test_a_database_that_is_away_costs_no_attempt(engine: Engine, database_url: str, unreadable: str) -> None:
    """Nothing was sent, and nobody but us is to blame: a job with a single attempt survives it."""
    keys, endpoint = await with_a_secret(engine, max_attempts=1)
    await engine.create(endpoint)
    faults = Faults(seed=1, rate=1.0, kinds=OVERLOAD, only=[unreadable])
    faulty = FaultyDatabase(database_url, faults, pool_size=2, application_name="faulty")
    await faulty.open()
    target = Target()
    execution_id = await attempt(engine, await a_dispatcher(engine, target, db=faulty, keys=keys), endpoint)
    await faulty.close()
    assert target.delivered == []
    execution = await engine.execution(execution_id)
    assert (execution.status, execution.attempt_count, execution.max_attempts) == (ExecutionStatus.RETRYING, 1, 2)
    (log,) = await engine.executions.list_logs(execution_id, (0, 0), 10)
    assert "this attempt does not count" in log.message


@pytest.mark.parametrize(("asked_ms", "least_sec", "most_sec"), [(30_000, 30, 31), (3_600_000, 60, 61)])
async def test_a_target_may_put_off_the_next_attempt_up_to_the_longest_delay(
    engine: Engine, asked_ms: int, least_sec: int, most_sec: int
) -> None:
    async def later(_: UUID, __: int) -> Outcome:
        return Outcome(error=DeliveryError("HTTP_ERROR", "answered 503", 503), retry_after_ms=asked_ms)

    endpoint = await engine.endpoint(max_attempts=2)
    await engine.create(endpoint)
    dispatcher = await a_dispatcher(engine, Target(later))
    execution_id = await attempt(engine, dispatcher, endpoint)
    delay = (await engine.execution(execution_id)).run_at - await engine.value(
        "SELECT completed_at FROM attempts WHERE execution_id = %s", execution_id
    )
    assert timedelta(seconds=least_sec) <= delay <= timedelta(seconds=most_sec)


async def test_what_a_dead_dispatcher_held_is_delivered_by_another_and_its_own_result_is_void(engine: Engine) -> None:
    """Invariants 2, 5 and the history that explains the second delivery."""
    endpoint = await engine.endpoint(max_attempts=2)
    execution_id = await engine.create_one(endpoint)
    dead = await a_dispatcher(engine, Target())
    claim = await engine.claim_one(endpoint, dead.worker)
    await dead.executor.deliver(claim)  # delivered, and not recorded: it hangs
    await engine.falls_silent(dead.worker)
    await engine.instances.bury_silent()
    await engine.instances.reclaim({"type": "WORKER_LOST", "message": "silent"})
    async with running(await a_dispatcher(engine, Target())) as successor:
        await wait_until(lambda: successor.target.delivered)
    await dead.completer.start()
    await dead.completer.stop()
    assert successor.target.delivered == [(execution_id, 2)]
    assert await engine.attempts(execution_id) == [(1, "FAILED", "WORKER_LOST"), (2, "SUCCESS", None)]
    assert (await engine.execution(execution_id)).attempt_count == 2
