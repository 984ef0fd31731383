"""CRON jobs from creation to cancellation: versions, pauses, missed ticks, status.

Where a test needs a tick of the past, it moves the stored schedule back: to the scheduler that is the same as having been away.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.e2e.rest import Json, Rest
from tests.e2e.system import System, instant, now, retries
from tests.support.receiver import Answer
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

Database = psycopg.AsyncConnection[Any]
DAILY = "0 0 * * *"
DAYS_AWAY = 3
FIRED: dict[str | None, list[int]] = {None: [3, 2, 1, 0], "ALL": [3, 2, 1, 0], "LATEST": [0], "NONE": []}
"""Of the midnights of the last days, by how long ago, those that fire; by catch_up, whose default is ALL."""
UPDATES_AT_ONCE = 8


def midnight(days_ago: int) -> datetime:
    today = now().replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=days_ago)


async def move_next_tick(database: Database, job: Json, to: datetime) -> None:
    """As if no scheduler had run since then."""
    job_id = UUID(hex=job["job_id"].removeprefix("job_"))
    await database.execute("UPDATE cron_jobs SET next_run_at = %s WHERE job_id = %s", (to, job_id))


async def wait_for_next_tick(system: System, job: Json, to: datetime) -> None:
    """Until the scheduler has dealt with everything before."""

    async def moved_on() -> bool:
        return instant((await system.rest.get(f"/jobs/{job['job_id']}"))["next_run_at"]) == to

    await wait_until(moved_on, what=f"the next tick at {to}")


async def fired(system: System, job: Json, count: int) -> list[Json]:
    """The job's executions, newest first, once there are so many and all have ended."""

    async def done() -> tuple[list[Json]] | None:
        executions = await system.rest.items(f"/jobs/{job['job_id']}/executions")
        ended = all(execution["status"] in ("SUCCESS", "FAILED") for execution in executions)
        return (executions,) if ended and len(executions) >= count else None

    (executions,) = await wait_until(done, what=f"{count} executions")
    assert len(executions) == count
    return executions


# --- creation and versions ---


async def test_an_update_makes_a_new_version_and_retires_the_old_one(system: System, rest: Rest) -> None:
    first = await system.cron(await system.endpoint(), cron=DAILY)
    second = await rest.put(
        f"/jobs/{first['job_id']}", {"cron": "0 10 * * MON", "timezone": "Asia/Kolkata", "input": {"charts": True}}
    )
    assert (second["version"], second["previous_version_id"], second["status"]) == (2, first["job_id"], "ACTIVE")
    assert second["job_id"] != first["job_id"]
    assert (second["cron"], second["timezone"], second["input"]) == ("0 10 * * MON", "Asia/Kolkata", {"charts": True})
    old = await rest.get(f"/jobs/{first['job_id']}")
    assert (old["status"], old["replaced_by_id"]) == ("RETIRED", second["job_id"])
    assert "next_run_at" not in old
    assert "retired_at" in old


async def test_an_update_keeps_what_it_does_not_name(system: System, rest: Rest) -> None:
    first = await system.cron(
        await system.endpoint(),
        cron=DAILY,
        timezone="Asia/Kolkata",
        input={"a": 1},
        ends_at="2099-01-01T00:00:00Z",
        catch_up="LATEST",
    )
    second = await rest.put(f"/jobs/{first['job_id']}", {"cron": "0 1 * * *"})
    kept = ("timezone", "input", "ends_at", "catch_up", "endpoint")
    assert {name: second[name] for name in kept} == {name: first[name] for name in kept}


async def test_of_several_updates_at_once_exactly_one_wins(system: System, rest: Rest) -> None:
    job = await system.cron(await system.endpoint())
    answers = await asyncio.gather(
        *(rest.call("PUT", f"/jobs/{job['job_id']}", {"cron": f"{n} 0 * * *"}) for n in range(UPDATES_AT_ONCE))
    )
    assert Counter(answer.status for answer in answers) == {200: 1, 409: UPDATES_AT_ONCE - 1}
    assert {answer.code for answer in answers if answer.status == 409} == {"JOB_NOT_UPDATABLE"}
    assert len(await rest.items(f"/jobs/{job['job_id']}/versions")) == 2


async def test_a_retired_job_can_not_be_updated_paused_or_resumed(system: System, rest: Rest) -> None:
    job = await system.cron(await system.endpoint())
    await rest.post(f"/jobs/{job['job_id']}/cancel")
    for method, target, body in (("PUT", "", {"cron": DAILY}), ("POST", "/pause", None), ("POST", "/resume", {})):
        answered = await rest.call(method, f"/jobs/{job['job_id']}{target}", body)
        assert (answered.status, answered.code) == (409, "JOB_NOT_UPDATABLE"), target


async def test_any_versions_id_lists_all_versions_newest_first(system: System, rest: Rest) -> None:
    ids = [(await system.cron(await system.endpoint()))["job_id"]]
    for minute in range(2):
        ids.append((await rest.put(f"/jobs/{ids[-1]}", {"cron": f"{minute} 0 * * *"}))["job_id"])
    for job_id in ids:
        versions = await rest.items(f"/jobs/{job_id}/versions")
        assert [(version["version"], version["job_id"]) for version in versions] == list(
            zip([3, 2, 1], reversed(ids), strict=True)
        )
        assert [version["status"] for version in versions] == ["ACTIVE", "RETIRED", "RETIRED"]


async def test_a_one_shot_job_is_its_only_version(system: System, rest: Rest) -> None:
    job = await system.job(await system.endpoint())
    assert [version["job_id"] for version in await rest.items(f"/jobs/{job['job_id']}/versions")] == [job["job_id"]]


# --- ticks ---


@pytest.mark.parametrize("catch_up", [None, "ALL", "LATEST", "NONE"])
async def test_missed_ticks_fire_as_catch_up_says(system: System, database: Database, catch_up: str | None) -> None:
    said = {"catch_up": catch_up} if catch_up else {}
    job = await system.cron(await system.endpoint(), cron=DAILY, **said)
    await move_next_tick(database, job, midnight(DAYS_AWAY))
    await wait_for_next_tick(system, job, midnight(-1))
    executions = await fired(system, job, len(FIRED[catch_up]))
    assert [instant(e["run_at"]) for e in reversed(executions)] == [midnight(ago) for ago in FIRED[catch_up]]


async def test_a_firing_is_keyed_by_its_nominal_tick(system: System, database: Database) -> None:
    job = await system.cron(await system.endpoint(body_template={"at": "{{execution.scheduled_at}}"}), cron=DAILY)
    await move_next_tick(database, job, midnight(0))
    (execution,) = await fired(system, job, 1)
    assert execution["idempotency_key"] == f"cron_{job['job_id']}_{round(midnight(0).timestamp() * 1000)}"
    (request,) = system.receiver.requests(f"/{job['endpoint']}")
    assert instant(request.headers["Task-Executor-Scheduled-At"]) == instant(request.json["at"]) == midnight(0)
    assert instant((await system.rest.get(f"/jobs/{job['job_id']}"))["last_tick_at"]) == midnight(0)


async def test_executions_of_a_job_can_be_filtered_by_status(system: System, database: Database) -> None:
    job = await system.cron(await system.endpoint(), cron=DAILY)
    system.receiver.script(f"/{job['endpoint']}", Answer(500), Answer(200))
    await move_next_tick(database, job, midnight(1))
    executions = await fired(system, job, 2)
    for status in ("SUCCESS", "FAILED"):
        found = await system.rest.items(f"/jobs/{job['job_id']}/executions?status={status}")
        assert [e["execution_id"] for e in found] == [e["execution_id"] for e in executions if e["status"] == status]
        assert len(found) == 1


def test_a_job_with_an_end_ahead_is_active(last_minute_cron: Json) -> None:
    assert last_minute_cron["status"] == "ACTIVE"
    assert instant(last_minute_cron["next_run_at"]) < instant(last_minute_cron["ends_at"])


@pytest.mark.slow
async def test_a_job_without_a_tick_left_retires_itself(system: System, last_minute_cron: Json) -> None:
    async def retired() -> Json | None:
        job = await system.rest.get(f"/jobs/{last_minute_cron['job_id']}")
        return job if job["status"] == "RETIRED" else None

    job = await wait_until(retired, 65, "its end")
    assert "next_run_at" not in job
    assert instant(job["last_tick_at"]) == instant(last_minute_cron["next_run_at"])
    await fired(system, job, 1)


# --- pauses ---


async def test_a_paused_job_has_no_next_firing(system: System, rest: Rest) -> None:
    job = await system.cron(await system.endpoint())
    paused = await rest.post(f"/jobs/{job['job_id']}/pause")
    assert (paused["job_id"], paused["status"]) == (job["job_id"], "ACTIVE")
    assert "paused_at" in paused
    assert "next_run_at" not in paused
    assert await rest.post(f"/jobs/{job['job_id']}/pause") == paused


@pytest.mark.parametrize("catch_up", [None, "NONE", "LATEST", "ALL"])
async def test_what_a_pause_swallowed_fires_as_the_resume_says(
    system: System, rest: Rest, database: Database, catch_up: str | None
) -> None:
    job = await system.cron(await system.endpoint(), cron=DAILY)
    await rest.post(f"/jobs/{job['job_id']}/pause")
    job_id = UUID(hex=job["job_id"].removeprefix("job_"))
    began = midnight(DAYS_AWAY) - timedelta(hours=1)
    await database.execute("UPDATE cron_jobs SET paused_at = %s WHERE job_id = %s", (began, job_id))

    resumed = await rest.post(f"/jobs/{job['job_id']}/resume", {"catch_up": catch_up} if catch_up else {})
    assert "paused_at" not in resumed
    swallowed = FIRED[catch_up or "NONE"]
    await wait_for_next_tick(system, job, midnight(-1))
    executions = await fired(system, job, len(swallowed))
    assert [instant(e["run_at"]) for e in reversed(executions)] == [midnight(ago) for ago in swallowed]


async def test_an_update_of_a_paused_job_stays_paused(system: System, rest: Rest) -> None:
    job = await system.cron(await system.endpoint())
    await rest.post(f"/jobs/{job['job_id']}/pause")
    updated = await rest.put(f"/jobs/{job['job_id']}", {"cron": DAILY})
    assert "paused_at" in updated
    assert "next_run_at" not in updated


# --- cancelling ---


async def test_cancelling_retires_a_job_as_often_as_asked(system: System, rest: Rest) -> None:
    job = await system.cron(await system.endpoint())
    cancelled = await rest.post(f"/jobs/{job['job_id']}/cancel")
    assert cancelled["status"] == "RETIRED"
    assert "next_run_at" not in cancelled
    assert await rest.post(f"/jobs/{job['job_id']}/cancel") == cancelled


async def test_what_is_in_flight_when_a_job_is_cancelled_runs_to_its_end(
    system: System, rest: Rest, database: Database
) -> None:
    job = await system.cron(await system.endpoint(retry_policy=retries(2, 10)), cron=DAILY)
    system.receiver.script(f"/{job['endpoint']}", Answer(503, delay_sec=0.3), Answer(200))
    await move_next_tick(database, job, midnight(0))
    await wait_until(lambda: system.receiver.requests(f"/{job['endpoint']}"), what="the delivery")
    await rest.post(f"/jobs/{job['job_id']}/cancel")
    (execution,) = await fired(system, job, 1)
    assert (execution["status"], execution["attempt_count"]) == ("SUCCESS", 2)


# --- status ---


async def test_a_job_that_has_not_fired_is_idle(system: System, rest: Rest) -> None:
    job = await system.cron(await system.endpoint(), cron=DAILY)
    status = await rest.get(f"/jobs/{job['job_id']}/status")
    assert status == {
        "job_id": job["job_id"],
        "endpoint": job["endpoint"],
        "endpoint_type": "HTTP",
        "trigger": "CRON",
        "health": "IDLE",
        "version": 1,
        "active_executions": {"pending": 0, "running": 0, "total": 0},
        "cron": {"expression": DAILY, "next_run_at": job["next_run_at"]},
        "stats": {"last_24h": {"total": 0, "succeeded": 0, "failed": 0, "avg_duration_ms": 0, "p99_duration_ms": 0}},
    }


@pytest.mark.parametrize(("statuses", "health"), [((200, 200), "HEALTHY"), ((200, 500), "FAILING")])
async def test_health_follows_what_became_of_the_firings(
    system: System, rest: Rest, database: Database, statuses: tuple[int, ...], health: str
) -> None:
    job = await system.cron(await system.endpoint(), cron=DAILY)
    system.receiver.script(f"/{job['endpoint']}", *(Answer(status, delay_sec=0.05) for status in statuses))
    await move_next_tick(database, job, midnight(1))
    newest, _ = await fired(system, job, 2)
    status = await rest.get(f"/jobs/{job['job_id']}/status")
    day = status["stats"]["last_24h"]
    succeeded = statuses.count(200)
    assert status["health"] == health
    assert (day["total"], day["succeeded"], day["failed"]) == (2, succeeded, 2 - succeeded)
    assert 50 <= day["avg_duration_ms"] <= day["p99_duration_ms"] < 5000
    assert status["last_execution"] == {
        "execution_id": newest["execution_id"],
        "status": newest["status"],
        "started_at": newest["started_at"],
        "completed_at": newest["completed_at"],
        "attempt_number": 1,
    }
    assert instant(status["cron"]["last_tick_at"]) == midnight(0)


async def test_what_has_not_ended_is_counted(system: System, rest: Rest, database: Database) -> None:
    job = await system.cron(await system.endpoint(retry_policy=retries(2, 60_000), timeout_ms=5000), cron=DAILY)
    system.receiver.script(f"/{job['endpoint']}", Answer(503), Answer(hangs=True))
    await move_next_tick(database, job, midnight(1))

    async def active() -> bool:
        status = await rest.get(f"/jobs/{job['job_id']}/status")
        return bool(status["active_executions"] == {"pending": 1, "running": 1, "total": 2})

    await wait_until(active, what="one RETRYING, one RUNNING")


# --- previews ---


async def preview(rest: Rest, cron: str, timezone: str, **fields: Any) -> list[str]:
    answer = await rest.post("/cron/preview", {"cron": cron, "timezone": timezone, **fields})
    return [item["run_at"] for item in answer["items"]]


@pytest.mark.parametrize(
    ("cron", "timezone", "starts_at", "firings"),
    [
        # 02:30 does not exist on 29 March: once, right after the gap
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", ["28T01:30", "29T01:00", "30T00:30"]),
        # 02:30 exists twice on 25 October: at its first pass only
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T00:00:00Z", ["24T00:30", "25T00:30", "26T01:30"]),
        # every hour follows real time through the overlap
        ("0 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", ["25T00:00", "25T01:00", "25T02:00"]),
        # a gap of half an hour
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", ["03T15:30", "04T15:15", "05T15:15"]),
        # midnight itself is missing
        ("0 0 * * *", "Africa/Cairo", "2026-04-23T00:00:00Z", ["23T22:00", "24T21:00", "25T21:00"]),
    ],
    ids=["gap", "overlap", "hourly", "half-hour gap", "midnight gap"],
)
async def test_a_preview_knows_daylight_saving(
    rest: Rest, cron: str, timezone: str, starts_at: str, firings: list[str]
) -> None:
    shown = await preview(rest, cron, timezone, starts_at=starts_at, count=3)
    assert [text[8:16] for text in shown] == firings


async def test_a_preview_ends_with_its_window(rest: Rest) -> None:
    window = {"starts_at": "2099-01-01T00:00:00Z", "ends_at": "2099-01-03T00:00:00Z"}
    assert await preview(rest, "@daily", "UTC", **window) == ["2099-01-01T00:00:00Z", "2099-01-02T00:00:00Z"]


async def test_a_preview_shows_ten_firings_unless_told_otherwise(rest: Rest) -> None:
    assert len(await preview(rest, "* * * * *", "UTC")) == 10
    assert len(await preview(rest, "* * * * *", "UTC", count=1000)) == 1000


@pytest.mark.parametrize(
    ("one", "other"),
    [("0 0 * * 0", "0 0 * * 7"), ("0 0 * * SUN", "0 0 * * 0"), ("0 * * * *", "@hourly"), ("0 0 1 JAN *", "@yearly")],
)
async def test_two_spellings_of_a_schedule_fire_alike(rest: Rest, one: str, other: str) -> None:
    assert await preview(rest, one, "UTC") == await preview(rest, other, "UTC")


async def test_day_of_month_or_day_of_week_fires(rest: Rest) -> None:
    shown = await preview(rest, "0 0 13 * FRI", "UTC", starts_at="2026-03-01T00:00:00Z", count=5)
    days = [datetime.fromisoformat(text).astimezone(UTC) for text in shown]
    assert [day.day for day in days] == [6, 13, 20, 27, 3]
