"""The end of a run: what waits is let go, everything ends, and each execution is held against its attempts and requests."""

from __future__ import annotations

import json
import time
from datetime import datetime

from tests.fuzz.conversation import Json
from tests.fuzz.model import FINAL, Firing
from tests.fuzz.shown import find_firings, shows_execution, shows_jobs
from tests.fuzz.world import World
from tests.support.receiver import Received

_DEADLINE_SEC = 30.0
_POLL_SEC = 0.05


def settle(world: World) -> None:
    """Resumes all endpoints until every execution that is not far away has ended. AssertionError after the deadline."""
    end = time.monotonic() + _DEADLINE_SEC
    while True:
        for endpoint in world.model.endpoints.values():
            if endpoint.paused_at or endpoint.current.wish.limits == "a breaker":
                assert world.talk.call("POST", f"/endpoints/{endpoint.name}/resume").status == 200
                endpoint.resume()
        waiting = _waiting(world)
        if not waiting:
            return
        assert time.monotonic() < end, f"not ended: {waiting}"
        time.sleep(_POLL_SEC)


def _waiting(world: World) -> list[str]:
    """What has yet to happen."""
    _list_all(world)
    crons = world.model.crons.values()
    due = [cron.job_id for cron in crons if cron.is_behind]
    for cron in crons:
        find_firings(world, cron)
    return due + [f.execution_id for f in world.model.firings if f.status not in FINAL and not f.is_far]


def _list_all(world: World) -> None:
    shows_jobs(world, world.talk.items("/jobs"), [*world.model.shots.values(), *world.model.crons.values()])


def audit(world: World) -> None:
    """Everything has ended that can. AssertionError for what does not fit together."""
    for firing in world.model.firings:
        execution = world.talk.get(f"/executions/{firing.execution_id}")
        shows_execution(firing, execution)
        attempts = world.talk.items(f"/executions/{firing.execution_id}/attempts")
        _attempts_agree(firing, execution, attempts)
        _requests_agree(world, firing, attempts, world.requests(firing))
        failures = sum(attempt["status"] == "FAILED" for attempt in attempts)
        assert len(world.talk.items(f"/executions/{firing.execution_id}/logs")) == failures, "one log row per failure"
    _nothing_else_was_sent(world)
    _nothing_was_sent_early(world)


def _attempts_agree(firing: Firing, execution: Json, attempts: list[Json]) -> None:
    """They are numbered without gaps, and each ended as the receiver's plan says."""
    assert [attempt["attempt_number"] for attempt in attempts] == [*range(1, execution["attempt_count"] + 1)]
    errors = [attempt["error"]["type"] if "error" in attempt else None for attempt in attempts]
    assert [error is None for error in errors] == [attempt["status"] == "SUCCESS" for attempt in attempts]
    assert None not in errors[:-1]
    assert (execution["status"] == "SUCCESS") == (errors[-1:] == [None])
    expected = [*firing.expected.errors]
    surprise = next((n for n, (is_, should) in enumerate(zip(errors, expected, strict=False)) if is_ != should), None)
    if surprise is not None:  # on a busy machine a timeout of 300 ms hits what was to be answered in time
        assert (errors[surprise], firing.revision.wish.patient) == ("TIMEOUT", False), (errors, expected)
    elif execution["status"] in ("SUCCESS", "FAILED"):
        assert (execution["status"], errors) == (firing.expected.status, expected)
        assert execution["max_attempts"] == firing.expected.max_attempts
    else:
        assert len(errors) < len(expected), "what is cancelled had not ended"


def _requests_agree(world: World, firing: Firing, attempts: list[Json], requests: list[Received]) -> None:
    """One request per attempt that could be sent, all under one key, with the content of their revision."""
    unsent = sum(attempt.get("error", {}).get("type") == "TEMPLATE_RESOLUTION_FAILED" for attempt in attempts)
    if firing.revision.wish.patient:
        assert [int(request.headers["Task-Executor-Attempt"]) for request in requests] == [
            *range(1, len(attempts) - unsent + 1)
        ]
    else:
        assert len(requests) <= len(attempts)
    if firing.sent_when_cancelled is not None and firing.revision.wish.patient:
        assert len(requests) == firing.sent_when_cancelled, "sent after its cancellation was answered"
    contents = {json.dumps(request.json) for request in requests}
    assert len(contents) <= 1, "its attempts differ"
    for request in requests:
        _content_is_right(world, firing, request)


def _content_is_right(world: World, firing: Firing, request: Received) -> None:
    wish = firing.revision.wish
    content = request.json
    assert content.pop("revision") == firing.revision.number
    if wish.names_n:
        assert (content.pop("n"), content.pop("text")) == (firing.n, f"n is {firing.n}")
    if wish.names_v:
        assert content.pop("v") in world.model.v_history[wish.config or ""][firing.v_since :]
    assert content == {}
    secret = request.headers.get("X-Secret")
    assert secret in world.model.secret_history[wish.secret] if wish.secret else secret is None


def _nothing_else_was_sent(world: World) -> None:
    """Each request belongs to an execution that the API told of."""
    known = {firing.execution_id for firing in world.model.firings}
    paths = {firing.path for firing in world.model.firings}
    sent = {request.key for path in paths for request in world.receiver.requests(f"{world.root}/{path}")}
    assert sent <= known


def _nothing_was_sent_early(world: World) -> None:
    """No request came in before its time."""
    for shot in world.model.shots.values():
        if "run_at" in shot.body:
            run_at = datetime.fromisoformat(shot.body["run_at"])
            assert all(request.at >= run_at for request in world.requests(shot.firing))
