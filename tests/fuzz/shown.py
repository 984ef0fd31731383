"""Holds what an answer shows against the model. What is seen is known from then on, so some of it is written down there."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.fuzz import wishes
from tests.fuzz.conversation import Json
from tests.fuzz.model import FINAL, Cron, Endpoint, Firing, Shot
from tests.fuzz.world import World, input_of

YEAR = datetime.now(UTC).year


def shows_setup(kind: str, name: str, content: Any, shown: Json) -> None:
    """A payload spec, a config, or a secret without its value."""
    wanted = {
        "payload-specs": lambda: {"schema": wishes.SCHEMAS[content]},
        "configs": lambda: {"values": content, "revision": shown["revision"]},
        "secrets": dict,
    }[kind]()
    times = {time: shown[time] for time in ("created_at", "updated_at")}
    assert shown == {"name": name, **wanted, **times}


def shows_endpoint(world: World, endpoint: Endpoint, shown: Json) -> None:
    """An endpoint in its current revision."""
    wish = endpoint.current.wish
    assert (shown["name"], shown["type"], shown["revision"]) == (endpoint.name, "HTTP", endpoint.current.number)
    assert (shown.get("payload_spec"), shown.get("config")) == (wish.payload_spec, wish.config)
    assert shown["spec"] == wish.body(world.url, endpoint.current.number)["spec"]
    assert shown["retry_policy"] == wish.policy.body()
    assert ("flow_control" in shown) == (wish.limits != "none")
    assert shown["flow_state"].get("paused_at") == endpoint.paused_at


def shows_shot(shot: Shot, shown: Json) -> None:
    """A one-shot job."""
    shot.firing.see(shown["execution"]["status"])
    for name in ("endpoint", "trigger", "idempotency_key", "input"):
        assert shown[name] == shot.body[name], name
    assert (shown["job_id"], shown["execution"]["execution_id"]) == (shot.job_id, shot.firing.execution_id)
    assert (shown["endpoint_type"], shown["version"]) == ("HTTP", 1)
    assert shown["endpoint_revision"] == shot.revision.number
    assert ("run_at" in shown) == ("run_at" in shot.body)
    assert shown["status"] == ("RETIRED" if shown["execution"]["status"] in FINAL else "ACTIVE")
    assert ("retired_at" in shown) == (shown["status"] == "RETIRED")


def shows_cron(cron: Cron, shown: Json) -> None:
    """A version of a cron job."""
    assert (shown["job_id"], shown["endpoint"], shown["trigger"]) == (cron.job_id, cron.endpoint.name, "CRON")
    assert (shown["version"], shown["status"]) == (cron.version, "RETIRED" if cron.is_retired else "ACTIVE")
    assert (shown["endpoint_revision"], shown["catch_up"]) == (cron.revision.number, cron.catch_up)
    assert shown["input"] == input_of(cron.path, cron.n)
    assert shown.get("previous_version_id") == (cron.previous.job_id if cron.previous else None)
    assert shown.get("replaced_by_id") == (cron.replaced_by.job_id if cron.replaced_by else None)
    assert ("next_run_at" in shown) == (not cron.is_retired and cron.paused_at is None)
    assert ("retired_at" in shown) == cron.is_retired
    if not cron.is_retired:
        assert shown.get("paused_at") == cron.paused_at
    cron.is_behind = "next_run_at" in shown and datetime.fromisoformat(shown["next_run_at"]) <= datetime.now(UTC)
    if "next_run_at" in shown and not cron.is_behind:
        cron.see_next_run_ahead()


def shows_execution(firing: Firing, shown: Json) -> None:
    """An execution, whatever fired it."""
    firing.see(shown["status"])
    assert (shown["endpoint"], shown["endpoint_type"]) == (firing.endpoint.name, "HTTP")
    assert shown["input"] == input_of(firing.path, firing.n)
    assert ("completed_at" in shown) == (shown["status"] in FINAL)
    assert 0 <= shown["attempt_count"] <= shown["max_attempts"]
    assert shown["attempt_count"] > 0 or shown["status"] in ("PENDING", "QUEUED", "CANCELLED")


def shows_figures(cron: Cron, shown: Json) -> None:
    """How a cron job fares."""
    active, day = shown["active_executions"], shown["stats"]["last_24h"]
    assert (shown["job_id"], shown["version"], shown["trigger"]) == (cron.job_id, cron.version, "CRON")
    assert active["total"] == active["pending"] + active["running"]
    assert day["total"] == day["succeeded"] + day["failed"]
    assert (shown["health"] == "IDLE") == (day["total"] == 0)


def find_firings(world: World, cron: Cron) -> None:
    """Lists the executions of a cron job: one for each tick that was due, and all are known from then on."""
    ticks = {_tick_key(cron, year): year for year in range(YEAR - 2, YEAR + 1)}
    listed = world.talk.items(f"/jobs/{cron.job_id}/executions", limit=2)
    found = [ticks[shown["idempotency_key"]] for shown in listed]
    assert found == sorted(set(found), reverse=True), "each tick once, newest first"
    assert cron.fired <= set(found) <= cron.fired | cron.due | cron.unsure
    for shown in listed:
        execution_id = shown["execution_id"]
        if execution_id not in cron.firings:
            cron.firings[execution_id] = Firing(
                execution_id,
                cron.endpoint,
                cron.revision,
                cron.path,
                cron.n,
                cron.expected,
                status="QUEUED",
                v_since=0,
            )
        shows_execution(cron.firings[execution_id], shown)


def _tick_key(cron: Cron, year: int) -> str:
    return f"cron_{cron.job_id}_{round(datetime(year, 1, 1, tzinfo=UTC).timestamp() * 1000)}"


def shows_jobs(world: World, shown: list[Json], wanted: list[Shot | Cron], status: str | None = None) -> None:
    """A whole list of jobs: those that are `wanted`, once each, newest first, and of this status."""
    ids = [job["job_id"] for job in shown]
    assert len(ids) == len(set(ids)), "a job is listed twice"
    times = [datetime.fromisoformat(job["created_at"]) for job in shown]
    assert times == sorted(times, reverse=True)
    active = {
        job.job_id: not job.is_retired if isinstance(job, Cron) else job.is_live for job in wanted
    }  # None: who knows
    certain = {job_id for job_id, is_active in active.items() if status is None or is_active is (status == "ACTIVE")}
    possible = {
        job_id for job_id, is_active in active.items() if status is None or is_active is not (status != "ACTIVE")
    }
    assert certain <= set(ids) <= possible
    for job in shown:
        if job["job_id"] in world.model.crons:
            shows_cron(world.model.crons[job["job_id"]], job)
        else:
            shows_shot(world.model.shots[job["job_id"]], job)
