"""What an endpoint takes at a time, from outside: limits, pauses, circuit breakers, the rest that a receiver asks for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.e2e.conftest import system_in
from tests.e2e.rest import Json
from tests.e2e.system import System, fresh, instant, now, retries
from tests.support.receiver import Answer, Receiver
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

DISPATCHERS = 2
SLOTS = 2  # of each of them
REFUSED = Answer(500)
HOUR = 3600
TRICKLE: Json = {"per_second": 0.001, "burst": 1}  # one delivery, and the next in a quarter of an hour
BREAKER: Json = {"failure_rate": 0.5, "minimum_attempts": 4, "open_sec": 2}
OPEN_SEC = 2


@pytest.fixture(scope="module")
async def fleet(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> AsyncIterator[System]:
    """A system with two dispatchers, each with fewer slots than the limits of the tests."""
    folder = tmp_path_factory.mktemp("fleet") / "data"
    environment = {"TE_DISPATCHER_PROCESSES": str(DISPATCHERS), "TE_WORKER_MAX_CONCURRENT": str(SLOTS)}
    async with system_in(folder, receiver, **environment) as system:
        yield system


@pytest.fixture(scope="module")
async def unhurried(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> AsyncIterator[System]:
    """A system whose dispatcher looks for work once a minute: what happens sooner was told to it, or known by it."""
    folder = tmp_path_factory.mktemp("unhurried") / "data"
    async with system_in(folder, receiver, TE_WORKER_POLL_INTERVAL_MS="60000") as system:
        yield system


async def create_jobs(system: System, endpoint: str, count: int) -> list[str]:
    """Creates jobs in one call; their executions."""
    jobs = [{"endpoint": endpoint, "trigger": "IMMEDIATE", "idempotency_key": fresh("key")} for _ in range(count)]
    items = (await system.rest.post("/jobs/batch", {"jobs": jobs}))["items"]
    return [item["job"]["execution"]["execution_id"] for item in items]


async def all_ended(system: System, executions: list[str], deadline: float = 20) -> list[Json]:
    """The executions at their end."""
    return [await system.ended(execution, deadline) for execution in executions]


def arrivals(system: System, endpoint: str) -> list[datetime]:
    """When requests came in, in order."""
    return [request.at for request in system.receiver.requests(f"/{endpoint}")]


async def arrived(system: System, endpoint: str, count: int) -> list[datetime]:
    """The same, once there are so many."""

    def enough() -> bool:
        return len(arrivals(system, endpoint)) >= count

    await wait_until(enough, what=f"{count} requests")
    return arrivals(system, endpoint)


async def flow_state(system: System, endpoint: str) -> Json:
    return dict((await system.rest.get(f"/endpoints/{endpoint}"))["flow_state"])


async def flow_state_with(system: System, endpoint: str, **wanted: Any) -> Json:
    """The state, once it has these values."""

    async def there() -> Json | None:
        state = await flow_state(system, endpoint)
        return state if state.items() >= wanted.items() else None

    return await wait_until(there, what=f"{endpoint} {wanted}")


async def others_are_served(system: System) -> None:
    """Several rounds of deliveries to somebody else: in these, what may be claimed would have been."""
    neighbour = await system.endpoint()
    for _ in range(5):
        assert (await system.run(neighbour))["status"] == "SUCCESS"


async def change(system: System, endpoint: str, **settings: Any) -> Json:
    """PUT with the endpoint's own spec and these settings."""
    spec = (await system.rest.get(f"/endpoints/{endpoint}"))["spec"]
    return await system.rest.put(f"/endpoints/{endpoint}", {"spec": spec, **settings})


async def open_circuit(system: System, **settings: Any) -> str:
    """An endpoint whose receiver has just failed often enough; it answers 200 from now on."""
    endpoint = await system.endpoint(flow_control={"circuit_breaker": {**BREAKER, **settings}})
    system.receiver.script(f"/{endpoint}", REFUSED)
    failed = await all_ended(system, await create_jobs(system, endpoint, BREAKER["minimum_attempts"]))
    assert {execution["status"] for execution in failed} == {"FAILED"}
    system.receiver.script(f"/{endpoint}", Answer(200))
    return endpoint


async def closed_tap(system: System, seconds: int, status: int = 429, **settings: Any) -> tuple[str, str]:
    """An endpoint whose receiver has just asked for a rest, and the execution that it told so."""
    endpoint = await system.endpoint(**settings)
    system.receiver.script(
        f"/{endpoint}", Answer(status, headers={"Retry-After": str(seconds)}), Answer(200, b"rested")
    )
    execution = (await system.job(endpoint))["execution"]["execution_id"]

    async def told() -> bool:
        return bool(await system.attempts(execution))

    await wait_until(told, what="the first attempt's end")
    return endpoint, execution


# --- what callers set and see ---


async def test_without_limits_an_endpoint_shows_none_and_an_empty_state(system: System) -> None:
    for settings in ({}, {"flow_control": {}}, {"flow_control": None}):
        shown = await system.rest.get(f"/endpoints/{await system.endpoint(**settings)}")
        assert "flow_control" not in shown
        assert shown["flow_state"] == {}


async def test_defaults_are_filled_in_and_shown(system: System) -> None:
    endpoint = await system.endpoint(flow_control={"rate_limit": {"per_second": 2.5}, "circuit_breaker": {}})
    shown = await system.rest.get(f"/endpoints/{endpoint}")
    assert shown["flow_control"] == {
        "rate_limit": {"per_second": 2.5, "burst": 3},
        "circuit_breaker": {"failure_rate": 0.5, "minimum_attempts": 20, "window_sec": 60, "open_sec": 30},
    }
    assert shown["flow_state"] == {"in_flight": 0, "circuit": "CLOSED"}


async def test_a_limit_alone_comes_with_no_other_and_no_circuit(system: System) -> None:
    shown = await system.rest.get(f"/endpoints/{await system.endpoint(flow_control={'max_in_flight': 7})}")
    assert shown["flow_control"] == {"max_in_flight": 7}
    assert shown["flow_state"] == {"in_flight": 0}


async def test_a_list_shows_limits_and_state_of_each(system: System) -> None:
    limited, free = await system.endpoint(flow_control={"max_in_flight": 7}), await system.endpoint()
    await system.rest.post(f"/endpoints/{free}/pause")
    items = {item["name"]: item for item in await system.rest.items("/endpoints?limit=2")}
    assert items[limited]["flow_control"] == {"max_in_flight": 7}
    assert items[limited]["flow_state"] == {"in_flight": 0}
    assert "flow_control" not in items[free]
    assert list(items[free]["flow_state"]) == ["paused_at"]


async def test_a_put_without_limits_takes_them_away(system: System) -> None:
    endpoint = await system.endpoint(flow_control={"max_in_flight": 7, "circuit_breaker": {}})
    changed = await change(system, endpoint, flow_control={"max_in_flight": 8})
    assert changed["flow_control"] == {"max_in_flight": 8}
    assert changed["flow_state"] == {"in_flight": 0}
    assert "flow_control" not in await change(system, endpoint)


async def test_limits_are_no_part_of_a_revision(system: System) -> None:
    endpoint = await system.endpoint(flow_control={"max_in_flight": 7})
    assert all("flow_control" not in item for item in await system.rest.items(f"/endpoints/{endpoint}/revisions"))


async def test_what_is_under_way_is_counted_and_shown(system: System) -> None:
    endpoint = await system.endpoint(flow_control={"max_in_flight": 3})
    system.receiver.script(f"/{endpoint}", Answer(delay_sec=1))
    executions = await create_jobs(system, endpoint, 5)
    await flow_state_with(system, endpoint, in_flight=3)
    await all_ended(system, executions)
    assert (await flow_state(system, endpoint))["in_flight"] == 0


# --- pause and resume ---


async def test_a_paused_endpoint_takes_jobs_and_sends_nothing_until_it_is_resumed(system: System) -> None:
    endpoint = await system.endpoint()
    paused = await system.rest.post(f"/endpoints/{endpoint}/pause")
    assert abs(now() - instant(paused["flow_state"]["paused_at"])) < timedelta(seconds=10)
    executions = await create_jobs(system, endpoint, 5)
    await others_are_served(system)
    assert arrivals(system, endpoint) == []
    statuses = {(await system.rest.get(f"/executions/{execution}"))["status"] for execution in executions}
    assert statuses == {"QUEUED"}

    resumed = await system.rest.post(f"/endpoints/{endpoint}/resume")
    assert resumed["flow_state"] == {}
    ended = await all_ended(system, executions)
    assert [(e["status"], e["attempt_count"]) for e in ended] == [("SUCCESS", 1)] * 5


async def test_what_was_begun_before_a_pause_is_finished(system: System) -> None:
    endpoint = await system.endpoint()
    system.receiver.script(f"/{endpoint}", Answer(delay_sec=0.5))
    begun = (await system.job(endpoint))["execution"]["execution_id"]
    await arrived(system, endpoint, 1)
    await system.rest.post(f"/endpoints/{endpoint}/pause")
    waiting = (await system.job(endpoint))["execution"]["execution_id"]
    assert (await system.ended(begun))["status"] == "SUCCESS"
    assert (await system.rest.get(f"/executions/{waiting}"))["status"] == "QUEUED"
    assert len(arrivals(system, endpoint)) == 1


async def test_pausing_twice_keeps_the_first_time_and_resuming_twice_does_no_harm(system: System) -> None:
    endpoint = await system.endpoint()
    first = await system.rest.post(f"/endpoints/{endpoint}/pause")
    assert (await system.rest.post(f"/endpoints/{endpoint}/pause"))["flow_state"] == first["flow_state"]
    for _ in range(2):
        assert (await system.rest.post(f"/endpoints/{endpoint}/resume"))["flow_state"] == {}


async def test_a_put_does_not_end_a_pause(system: System) -> None:
    endpoint = await system.endpoint()
    paused = await system.rest.post(f"/endpoints/{endpoint}/pause")
    changed = await change(system, endpoint, flow_control={"max_in_flight": 5})
    assert changed["flow_state"] == {**paused["flow_state"], "in_flight": 0}


async def test_a_test_delivery_passes_by_a_pause_and_is_not_counted(system: System) -> None:
    endpoint = await system.endpoint(flow_control={"rate_limit": TRICKLE})
    await system.rest.post(f"/endpoints/{endpoint}/pause")
    for _ in range(3):
        assert (await system.rest.post(f"/endpoints/{endpoint}/test", {"input": {}}))["status"] == "SUCCESS"
    await system.rest.post(f"/endpoints/{endpoint}/resume")
    assert (await system.run(endpoint))["status"] == "SUCCESS"


# --- limits ---


async def test_two_dispatchers_together_never_have_more_under_way_than_the_limit(fleet: System) -> None:
    limit = SLOTS + 1  # more than one of them can hold, less than both
    endpoint = await fleet.endpoint(flow_control={"max_in_flight": limit})
    fleet.receiver.script(f"/{endpoint}", Answer(delay_sec=0.2))
    ended = await all_ended(fleet, await create_jobs(fleet, endpoint, 30), deadline=30)
    assert {execution["status"] for execution in ended} == {"SUCCESS"}
    assert fleet.receiver.most_at_once(f"/{endpoint}") == limit
    assert (await flow_state(fleet, endpoint))["in_flight"] == 0


async def test_without_a_limit_two_dispatchers_use_all_their_slots(fleet: System) -> None:
    endpoint = await fleet.endpoint()
    fleet.receiver.script(f"/{endpoint}", Answer(delay_sec=0.2))
    await all_ended(fleet, await create_jobs(fleet, endpoint, 30), deadline=30)
    assert fleet.receiver.most_at_once(f"/{endpoint}") == DISPATCHERS * SLOTS


async def test_two_dispatchers_together_keep_a_rate(fleet: System) -> None:
    rate, burst, jobs = 20, 5, 30
    endpoint = await fleet.endpoint(flow_control={"rate_limit": {"per_second": rate, "burst": burst}})
    start = now()
    await create_jobs(fleet, endpoint, jobs)
    times = await arrived(fleet, endpoint, jobs)
    for number, at in enumerate(times, start=1):
        earliest = start + timedelta(seconds=(number - burst) / rate)
        assert at >= earliest, f"delivery {number} came {earliest - at} early"


async def test_a_retry_counts_against_the_rate_like_a_first_attempt(system: System) -> None:
    rate, burst = 4, 1
    endpoint = await system.endpoint(
        retry_policy=retries(4, 10), flow_control={"rate_limit": {"per_second": rate, "burst": burst}}
    )
    system.receiver.script(f"/{endpoint}", REFUSED, REFUSED, REFUSED, Answer(200))
    start = now()
    assert (await system.run(endpoint))["attempt_count"] == 4
    for number, at in enumerate(arrivals(system, endpoint), start=1):
        assert at >= start + timedelta(seconds=(number - burst) / rate)


async def test_a_limited_endpoint_does_not_hold_up_its_neighbour(system: System) -> None:
    limited, neighbour = await system.endpoint(flow_control={"rate_limit": TRICKLE}), await system.endpoint()
    await create_jobs(system, limited, 500)
    ended = await all_ended(system, await create_jobs(system, neighbour, 100))
    assert {execution["status"] for execution in ended} == {"SUCCESS"}
    assert len(arrivals(system, limited)) == 1


async def test_a_put_lets_go_what_narrower_limits_held_back(system: System) -> None:
    endpoint = await system.endpoint(flow_control={"rate_limit": TRICKLE})
    executions = await create_jobs(system, endpoint, 10)
    await arrived(system, endpoint, 1)
    await others_are_served(system)
    assert len(arrivals(system, endpoint)) == 1
    await change(system, endpoint, flow_control={"max_in_flight": 10})
    assert {execution["status"] for execution in await all_ended(system, executions)} == {"SUCCESS"}


async def test_a_put_limits_what_waits_already(system: System) -> None:
    endpoint = await system.endpoint()
    system.receiver.script(f"/{endpoint}", Answer(delay_sec=0.1))
    await system.rest.post(f"/endpoints/{endpoint}/pause")
    executions = await create_jobs(system, endpoint, 12)
    await change(system, endpoint, flow_control={"max_in_flight": 2})
    await system.rest.post(f"/endpoints/{endpoint}/resume")
    await all_ended(system, executions)
    assert system.receiver.most_at_once(f"/{endpoint}") == 2


# --- circuit breakers ---


async def test_a_circuit_opens_after_failures_and_says_until_when(system: System) -> None:
    started = now()
    state = await flow_state(system, await open_circuit(system, open_sec=HOUR))
    assert (state["circuit"], state["closed_by"], state["in_flight"]) == ("OPEN", "CIRCUIT", 0)
    assert instant(state["closed_until"]) >= started + timedelta(seconds=HOUR)


async def test_while_a_circuit_is_open_nothing_is_sent_and_no_attempt_is_spent(system: System) -> None:
    endpoint = await open_circuit(system, open_sec=HOUR)
    before = len(arrivals(system, endpoint))
    executions = await create_jobs(system, endpoint, 5)
    await others_are_served(system)
    assert len(arrivals(system, endpoint)) == before
    waiting = [await system.rest.get(f"/executions/{execution}") for execution in executions]
    assert [(e["status"], e["attempt_count"]) for e in waiting] == [("QUEUED", 0)] * 5


async def test_one_probe_goes_alone_and_its_success_closes_the_circuit(system: System) -> None:
    endpoint = await open_circuit(system)
    failures = arrivals(system, endpoint)
    probe_sec = 0.5
    system.receiver.script(f"/{endpoint}", Answer(delay_sec=probe_sec), Answer(200))
    ended = await all_ended(system, await create_jobs(system, endpoint, 10))
    assert {execution["status"] for execution in ended} == {"SUCCESS"}
    probe, *rest = arrivals(system, endpoint)[len(failures) :]
    assert probe >= failures[-1] + timedelta(seconds=OPEN_SEC)
    assert min(rest) >= probe + timedelta(seconds=probe_sec)
    assert await flow_state(system, endpoint) == {"in_flight": 0, "circuit": "CLOSED"}


async def test_a_probe_that_fails_opens_the_circuit_again(system: System) -> None:
    endpoint = await open_circuit(system)
    await flow_state_with(system, endpoint, circuit="HALF_OPEN")
    before = len(arrivals(system, endpoint))
    system.receiver.script(f"/{endpoint}", REFUSED, Answer(200))
    ended = await all_ended(system, await create_jobs(system, endpoint, 3))
    assert sorted(execution["status"] for execution in ended) == ["FAILED", "SUCCESS", "SUCCESS"]
    failed, probe, _ = arrivals(system, endpoint)[before:]
    assert probe >= failed + timedelta(seconds=OPEN_SEC)


async def test_successes_keep_a_circuit_closed(system: System) -> None:
    endpoint = await system.endpoint(flow_control={"circuit_breaker": BREAKER})
    system.receiver.script(f"/{endpoint}", REFUSED, *[Answer(200)] * 3)
    await system.run(endpoint)
    await all_ended(system, await create_jobs(system, endpoint, 3))
    assert (await flow_state(system, endpoint))["circuit"] == "CLOSED"


async def test_failures_of_a_delivery_s_own_making_do_not_open_a_circuit(system: System) -> None:
    endpoint = await system.endpoint(body_template={"who": "{{input.who}}"}, flow_control={"circuit_breaker": BREAKER})
    failed = await all_ended(system, await create_jobs(system, endpoint, 8))
    assert {execution["error"]["type"] for execution in failed} == {"TEMPLATE_RESOLUTION_FAILED"}
    assert (await flow_state(system, endpoint))["circuit"] == "CLOSED"


async def test_without_a_breaker_failures_hold_nothing_back(system: System) -> None:
    endpoint = await system.endpoint()
    system.receiver.script(f"/{endpoint}", REFUSED)
    await all_ended(system, await create_jobs(system, endpoint, 40))
    assert len(arrivals(system, endpoint)) == 40
    assert await flow_state(system, endpoint) == {}


async def test_resume_closes_a_circuit_at_once(system: System) -> None:
    endpoint = await open_circuit(system, open_sec=HOUR)
    execution = (await system.job(endpoint))["execution"]["execution_id"]
    resumed = await system.rest.post(f"/endpoints/{endpoint}/resume")
    assert resumed["flow_state"]["circuit"] == "CLOSED"
    assert "closed_until" not in resumed["flow_state"]
    assert (await system.ended(execution))["status"] == "SUCCESS"


async def test_a_put_leaves_an_open_circuit_unless_it_takes_the_breaker_away(system: System) -> None:
    endpoint = await open_circuit(system, open_sec=HOUR)
    state = await flow_state(system, endpoint)
    execution = (await system.job(endpoint))["execution"]["execution_id"]
    changed = await change(system, endpoint, flow_control={"max_in_flight": 9, "circuit_breaker": {}})
    assert changed["flow_state"] == state
    changed = await change(system, endpoint, flow_control={"max_in_flight": 9})
    assert changed["flow_state"].keys() == {"in_flight"}
    assert (await system.ended(execution))["status"] == "SUCCESS"


# --- the rest that a receiver asks for ---


@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_closes_the_tap_for_all_and_costs_no_attempt(system: System, status: int) -> None:
    rest_sec = 2
    endpoint, first = await closed_tap(system, rest_sec, status)
    others = await create_jobs(system, endpoint, 10)
    ended = await all_ended(system, [first, *others])
    assert {execution["status"] for execution in ended} == {"SUCCESS"}

    told, *rest = arrivals(system, endpoint)
    assert len(rest) == 11
    assert min(rest) >= told + timedelta(seconds=rest_sec)
    assert (ended[0]["attempt_count"], ended[0]["max_attempts"]) == (2, 2)
    assert {(e["attempt_count"], e["max_attempts"]) for e in ended[1:]} == {(1, 1)}
    attempts = await system.attempts(first)
    assert [(a["status"], a["output"]["status_code"]) for a in attempts] == [("FAILED", status), ("SUCCESS", 200)]
    assert await flow_state(system, endpoint) == {}


async def test_the_rest_is_bounded_by_the_longest_delay(system: System) -> None:
    endpoint, execution = await closed_tap(system, HOUR, retry_policy={"max_delay_ms": 1000})
    assert (await system.ended(execution))["status"] == "SUCCESS"
    told, again = arrivals(system, endpoint)
    assert again >= told + timedelta(seconds=1)


async def test_a_closed_tap_does_not_open_a_circuit(system: System) -> None:
    breaker = {**BREAKER, "minimum_attempts": 1}
    endpoint, execution = await closed_tap(system, 1, flow_control={"circuit_breaker": breaker})
    assert (await flow_state(system, endpoint))["circuit"] == "CLOSED"
    assert (await system.ended(execution))["status"] == "SUCCESS"


async def test_other_answers_with_retry_after_close_nothing(system: System) -> None:
    endpoint = await system.endpoint()
    system.receiver.script(f"/{endpoint}", Answer(500, headers={"Retry-After": "60"}), Answer(200))
    assert (await system.run(endpoint))["status"] == "FAILED"
    assert await flow_state(system, endpoint) == {}
    assert (await system.run(endpoint))["status"] == "SUCCESS"


async def test_a_status_that_the_policy_excludes_fails_at_once_and_closes_nothing(system: System) -> None:
    endpoint = await system.endpoint(retry_policy=retries(3, non_retryable_status_codes=[429]))
    system.receiver.script(f"/{endpoint}", Answer(429, headers={"Retry-After": "60"}))
    execution = await system.run(endpoint)
    assert (execution["status"], execution["attempt_count"]) == ("FAILED", 1)
    assert await flow_state(system, endpoint) == {}


async def test_a_put_leaves_the_tap_closed_and_resume_opens_it(system: System) -> None:
    endpoint, _ = await closed_tap(system, HOUR, retry_policy={"max_delay_ms": HOUR * 1000})
    waiting = (await system.job(endpoint))["execution"]["execution_id"]
    closed = await flow_state(system, endpoint)
    assert closed.keys() == {"closed_until", "closed_by"}
    assert closed["closed_by"] == "RETRY_AFTER"
    assert (await change(system, endpoint))["flow_state"] == closed
    await others_are_served(system)
    assert len(arrivals(system, endpoint)) == 1
    assert (await system.rest.post(f"/endpoints/{endpoint}/resume"))["flow_state"] == {}
    assert (await system.ended(waiting))["status"] == "SUCCESS"


async def test_one_endpoint_s_tap_is_not_another_s(system: System) -> None:
    closed, _ = await closed_tap(system, HOUR, retry_policy={"max_delay_ms": HOUR * 1000})
    neighbour = await system.endpoint(path=f"/{closed}")
    executions = await asyncio.gather(*(system.run(neighbour) for _ in range(3)))
    assert {execution["status"] for execution in executions} == {"SUCCESS"}


# --- at once, and not at the next look ---


async def test_resume_takes_effect_at_once(unhurried: System) -> None:
    endpoint = await unhurried.endpoint()
    await unhurried.rest.post(f"/endpoints/{endpoint}/pause")
    executions = await create_jobs(unhurried, endpoint, 5)
    await others_are_served(unhurried)
    await unhurried.rest.post(f"/endpoints/{endpoint}/resume")
    assert {execution["status"] for execution in await all_ended(unhurried, executions)} == {"SUCCESS"}


async def test_a_put_takes_effect_at_once(unhurried: System) -> None:
    endpoint = await unhurried.endpoint(flow_control={"rate_limit": TRICKLE})
    executions = await create_jobs(unhurried, endpoint, 5)
    await arrived(unhurried, endpoint, 1)
    await others_are_served(unhurried)
    await change(unhurried, endpoint)
    assert {execution["status"] for execution in await all_ended(unhurried, executions)} == {"SUCCESS"}


async def test_room_is_used_as_soon_as_there_is_some(unhurried: System) -> None:
    limits = {"max_in_flight": 2, "rate_limit": {"per_second": 20, "burst": 1}}
    endpoint = await unhurried.endpoint(flow_control=limits)
    executions = await create_jobs(unhurried, endpoint, 20)
    assert {execution["status"] for execution in await all_ended(unhurried, executions)} == {"SUCCESS"}


async def test_a_circuit_is_probed_as_soon_as_its_time_is_over(unhurried: System) -> None:
    endpoint = await open_circuit(unhurried)
    executions = await create_jobs(unhurried, endpoint, 5)
    assert {execution["status"] for execution in await all_ended(unhurried, executions)} == {"SUCCESS"}


async def test_a_tap_opens_as_soon_as_the_rest_is_over(unhurried: System) -> None:
    endpoint, told = await closed_tap(unhurried, 2)
    executions = [told, *await create_jobs(unhurried, endpoint, 5)]
    assert {execution["status"] for execution in await all_ended(unhurried, executions)} == {"SUCCESS"}
