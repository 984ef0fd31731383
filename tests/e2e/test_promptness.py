"""How soon things happen. The figures are printed (`pytest -rP`); the bounds are generous, since machines are shared."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from tests.e2e.rest import Json
from tests.e2e.system import System, in_seconds, instant, now
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

JOBS = 20
SOON_SEC = 0.5  # the median of many; a single one may meet a moment in which the machine does something else
PUNCTUAL_SEC = 0.5
SINGLE_SEC = 3.0
MINUTE = timedelta(minutes=1)


def show(what: str, seconds: Sequence[float]) -> None:
    print(f"{what}: median {statistics.median(seconds) * 1000:.1f} ms, worst {max(seconds) * 1000:.1f} ms")


async def test_an_immediate_job_arrives_within_tens_of_milliseconds(system: System) -> None:
    endpoint = await system.endpoint()
    delays = []
    for number in range(1, JOBS + 1):
        sent = now()
        await system.job(endpoint)
        await wait_until(lambda: len(system.receiver.requests(f"/{endpoint}")) == number, what="the delivery")  # noqa: B023 - awaited in the same turn
        delays.append((system.receiver.requests(f"/{endpoint}")[-1].at - sent).total_seconds())
    show("from the call to the receiver", delays)
    assert statistics.median(delays) < SOON_SEC


async def test_a_delayed_job_fires_at_its_time_and_never_before(system: System) -> None:
    endpoint = await system.endpoint()
    due: dict[str, datetime] = {}
    for number in range(JOBS):
        job = await system.job(endpoint, trigger="DELAYED", run_at=in_seconds(1 + number * 0.05))
        due[job["execution"]["execution_id"]] = instant(job["run_at"])
    await wait_until(lambda: len(system.receiver.requests(f"/{endpoint}")) == JOBS, what="all deliveries")
    late = [(request.at - due[request.key]).total_seconds() for request in system.receiver.requests(f"/{endpoint}")]
    show("from run_at to the receiver", late)
    assert min(late) >= 0
    assert statistics.median(late) < PUNCTUAL_SEC


async def test_a_delayed_job_whose_time_has_passed_fires_at_once(system: System) -> None:
    endpoint = await system.endpoint()
    sent = now()
    await system.job(endpoint, trigger="DELAYED", run_at=in_seconds(-3600))
    await wait_until(lambda: system.receiver.requests(f"/{endpoint}"), what="the delivery")
    assert system.receiver.requests(f"/{endpoint}")[0].at - sent < timedelta(seconds=SINGLE_SEC)


async def test_a_delayed_job_created_behind_a_later_one_is_not_held_up_by_it(system: System) -> None:
    endpoint = await system.endpoint()
    await system.job(endpoint, trigger="DELAYED", run_at=in_seconds(3600))
    job = await system.job(endpoint, trigger="DELAYED", run_at=in_seconds(0.2))
    execution = await system.ended(job["execution"]["execution_id"])
    assert instant(execution["started_at"]) - instant(job["run_at"]) < timedelta(seconds=SINGLE_SEC)


def test_a_cron_of_every_minute_names_the_next_full_minute(minute_cron: Json) -> None:
    next_run = instant(minute_cron["next_run_at"])
    assert (next_run.second, next_run.microsecond) == (0, 0)
    assert timedelta(seconds=-1) < next_run - instant(minute_cron["created_at"]) <= MINUTE


@pytest.mark.slow
async def test_a_cron_of_every_minute_fires_at_the_minute_once(system: System, minute_cron: Json) -> None:
    first = instant(minute_cron["next_run_at"])
    path = f"/{minute_cron['endpoint']}"
    await wait_until(lambda: system.receiver.requests(path), deadline=65, what="the tick")
    requests = system.receiver.requests(path)
    late = [(request.at - first - number * MINUTE).total_seconds() for number, request in enumerate(requests)]
    show("from the tick to the receiver", late)
    assert all(0 <= seconds < SINGLE_SEC for seconds in late)

    executions = await system.rest.items(f"/jobs/{minute_cron['job_id']}/executions")
    oldest = executions[-1]
    assert requests[0].key == oldest["execution_id"]
    assert oldest["idempotency_key"] == f"cron_{minute_cron['job_id']}_{round(first.timestamp() * 1000)}"
    ended = await system.ended(oldest["execution_id"])
    assert (instant(ended["run_at"]), ended["status"]) == (first, "SUCCESS")
    assert len({execution["run_at"] for execution in executions}) == len(executions)
