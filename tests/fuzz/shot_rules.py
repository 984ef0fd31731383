"""Rules about one-shot jobs and their executions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.fuzz import wishes
from tests.fuzz.conversation import Answered, Json, expect, expect_by
from tests.fuzz.model import Endpoint, Firing, Shot
from tests.fuzz.plans import Plan, Reaction
from tests.fuzz.shown import shows_execution, shows_shot
from tests.fuzz.wishes import JobWish, picks
from tests.fuzz.world import Rules, input_of, picked

_STATUS = {"INVALID_REQUEST": 400, "ENDPOINT_NOT_FOUND": 404, "INPUT_VALIDATION_FAILED": 422}
_FAR = timedelta(minutes=1)


class ShotRules(Rules):
    """Jobs that fire once."""

    @rule(wish=wishes.job_wishes)
    def create_job(self, wish: JobWish) -> None:
        """With an input of its own, under a key that may be taken."""
        body, path = self._shot_body(wish)
        self._create(body, wish.plan, path)

    @rule(pick=picks, same=st.booleans(), n=wishes.values_of_n)
    def create_again(self, pick: int, same: bool, n: Any) -> None:
        """The same creation once more, or another one under its key."""
        shot = picked(list(self.model.shots.values()), pick)
        if shot is None:
            return
        body, path, plan = shot.body, shot.firing.path, (Reaction.TAKES,)
        if not same:
            path = self.model.fresh("path")
            body = {**body, "input": input_of(path, n)}
        if not same or shot.endpoint.is_deleted:  # else the first one's deliveries go on as planned
            self._script(body, plan, path)
        self._create(body, plan, path)

    @rule(drawn=st.lists(wishes.job_wishes, min_size=1, max_size=5))
    def create_batch(self, drawn: list[JobWish]) -> None:
        """Several at once; each is answered for itself."""
        made = [(wish, *self._shot_body(wish)) for wish in drawn]
        answered = self.talk.call("POST", "/jobs/batch", {"jobs": [body for _, body, _ in made]})
        expect(answered, (200, ""))
        for (wish, body, path), item in zip(made, answered.json["items"], strict=True):
            assert len(item) == 1
            self._creation_answered(body, wish.plan, path, item.get("job"), item.get("error", {}).get("code", ""))

    @rule(pick=picks, by_job=st.booleans())
    def cancel(self, pick: int, by_job: bool) -> None:
        """By either route."""
        shot = picked(list(self.model.shots.values()), pick)
        if shot is None:
            return
        target = f"/jobs/{shot.job_id}" if by_job else f"/executions/{shot.firing.execution_id}"
        answered = self.talk.call("POST", f"{target}/cancel")
        self._cancellation_answered(shot.firing, answered)
        if answered.is_success and by_job:
            shows_shot(shot, answered.json)
        elif answered.is_success:
            shows_execution(shot.firing, answered.json)

    @rule(pick=picks)
    def cancel_firing(self, pick: int) -> None:
        """The same for what a cron job fired."""
        firing = picked([firing for cron in self.model.crons.values() for firing in cron.firings.values()], pick)
        if firing is not None:
            self._cancellation_answered(firing, self.talk.call("POST", f"/executions/{firing.execution_id}/cancel"))

    @rule(pick=picks)
    def look(self, pick: int) -> None:
        """Reads an execution."""
        firing = picked(self.model.firings, pick)
        if firing is not None:
            shows_execution(firing, self.talk.get(f"/executions/{firing.execution_id}"))

    def _shot_body(self, wish: JobWish) -> tuple[Json, str]:
        """A creation, and the path that its deliveries go to; the receiver knows what to do there."""
        path = self.model.fresh("path")
        body: Json = {
            "endpoint": self.world.endpoint_name(wish.endpoint),
            "trigger": "IMMEDIATE" if wish.delay_ms is None else "DELAYED",
            "idempotency_key": wish.key,
            "input": input_of(path, wish.n),
        }
        if wish.delay_ms is not None:
            body["run_at"] = (datetime.now(UTC) + timedelta(milliseconds=wish.delay_ms)).isoformat()
        if wish.fault in body:
            del body[wish.fault]
        elif wish.fault:
            body[wish.fault] = "2199-01-01T00:00:00Z"
        self._script(body, wish.plan, path)
        return body, path

    def _script(self, body: Json, plan: Plan, path: str) -> None:
        self.world.script(self.model.endpoints.get(body["endpoint"]), plan, path)

    def _create(self, body: Json, plan: Plan, path: str) -> None:
        answered = self.talk.call("POST", "/jobs", body)
        self._creation_answered(body, plan, path, answered.json if answered.is_success else None, answered.code)
        if answered.is_success:
            assert answered.status == (200 if "deduplicated" in answered.json else 201)
        else:
            assert answered.status == _STATUS[answered.code]

    def _creation_answered(self, body: Json, plan: Plan, path: str, job: Json | None, code: str) -> None:
        """Holds a job, or the code of a refusal, against what was asked; keeps a job that is new."""
        endpoint = self.model.endpoints.get(body["endpoint"])
        known = endpoint.shots.get(body.get("idempotency_key", "")) if endpoint else None
        refusal = self._refusal(body, endpoint)
        if job is None:
            assert code == refusal, f"refused with {code}, right was {refusal or 'no refusal'}"
            return
        # Whoever repeats a creation may learn that its input would not pass any more, or find the job.
        assert endpoint is not None
        assert not refusal or (known and refusal == "INPUT_VALIDATION_FAILED"), f"taken, right was {refusal}"
        assert job.get("deduplicated", False) is (known is not None)
        if known is None:
            assert job["status"] == "ACTIVE"
            known = self._remember_shot(endpoint, body, plan, path, job)
        shows_shot(known, job)

    def _refusal(self, body: Json, endpoint: Endpoint | None) -> str:
        """The code with which a creation is to be refused."""
        is_delayed = body["trigger"] == "DELAYED"
        if "idempotency_key" not in body or "cron" in body or ("run_at" in body) != is_delayed:
            return "INVALID_REQUEST"
        if endpoint is None:
            return "ENDPOINT_NOT_FOUND"
        return "" if self.world.fits(endpoint, body["input"].get("n", wishes.NOTHING)) else "INPUT_VALIDATION_FAILED"

    def _remember_shot(self, endpoint: Endpoint, body: Json, plan: Plan, path: str, job: Json) -> Shot:
        run_at = datetime.fromisoformat(body["run_at"]) if "run_at" in body else self.talk.asked_at
        status = job["execution"]["status"]
        if run_at <= self.talk.asked_at:
            assert status == "QUEUED"
        elif run_at > datetime.now(UTC):
            assert status == "PENDING"
        n = body["input"].get("n", wishes.NOTHING)
        firing = Firing(
            job["execution"]["execution_id"],
            endpoint,
            endpoint.current,
            path,
            n,
            self.world.expected(endpoint.current, n, plan),
            status,
            v_since=self.world.replaced_values(endpoint.current),
            is_far=run_at > self.talk.asked_at + _FAR,
            is_held=endpoint.paused_at is not None,
        )
        shot = Shot(job["job_id"], endpoint, endpoint.current, body, firing)
        endpoint.shots[body["idempotency_key"]] = self.model.shots[shot.job_id] = shot
        return shot

    def _cancellation_answered(self, firing: Firing, answered: Answered) -> None:
        """What waits is cancelled, what is cancelled is so again; for all else it is too late."""
        may = True if firing.status == "CANCELLED" else firing.is_live
        expect_by(may, answered, (200, ""), (409, "EXECUTION_NOT_CANCELLABLE"))
        if answered.is_success and firing.sent_when_cancelled is None:
            firing.sent_when_cancelled = len(self.world.requests(firing))
            firing.see("CANCELLED")
