"""Rules about cron jobs. They fire each New Year, and time is turned back for them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.fuzz import wishes
from tests.fuzz.conversation import Json, expect
from tests.fuzz.model import Cron, Endpoint, Shot
from tests.fuzz.plans import Reaction
from tests.fuzz.shown import YEAR, find_firings, shows_cron, shows_figures
from tests.fuzz.wishes import CronWish, picks
from tests.fuzz.world import Rules, input_of, picked


class CronRules(Rules):
    """Jobs that fire again and again."""

    @rule(wish=wishes.cron_wishes)
    def create_cron(self, wish: CronWish) -> None:
        """Makes a first version."""
        path, name = self.model.fresh("path"), self.world.endpoint_name(wish.endpoint)
        body: Json = {"endpoint": name, "trigger": "CRON", "cron": wish.cron, "timezone": "UTC"}
        body |= {"input": input_of(path, wish.n)} | ({"catch_up": wish.catch_up} if wish.catch_up else {})
        endpoint = self.model.endpoints.get(name)
        self.world.script(endpoint, (wish.reaction,), path)
        answered = self.talk.call("POST", "/jobs", body)
        if endpoint is None:
            expect(answered, (404, "ENDPOINT_NOT_FOUND"))
            return
        expect(answered, *(self._faults(endpoint, wish.n, wish.cron) or [(201, "")]))
        if answered.is_success:
            cron = Cron(
                answered.json["job_id"],
                endpoint,
                endpoint.current,
                version=1,
                previous=None,
                path=path,
                n=wish.n,
                expected=self.world.expected(endpoint.current, wish.n, (wish.reaction,)),
                catch_up=wish.catch_up or "ALL",
            )
            self._remember_cron(cron, answered.json)
            if wish.missed is not None:
                self._turn_back(cron, wish.missed)

    @rule(pick=picks, n=wishes.values_of_n, cron=st.sampled_from([None, wishes.NEW_YEAR, wishes.NEVER]))
    def update(self, pick: int, n: Any, cron: str | None) -> None:
        """Replaces a job by a new version, if it is a cron job that is active."""
        job = picked([*self.model.shots.values(), *self.model.crons.values()], pick)
        if job is None:
            return
        path = self.model.fresh("path")
        self.world.script(job.endpoint, (Reaction.TAKES,), path)
        body = {"input": input_of(path, n)} | ({"cron": cron} if cron else {})
        answered = self.talk.call("PUT", f"/jobs/{job.job_id}", body)
        if isinstance(job, Shot) or job.is_retired:
            expect(answered, (409, "JOB_NOT_UPDATABLE"))
            return
        expect(answered, *(self._faults(job.endpoint, n, cron or wishes.NEW_YEAR) or [(200, "")]))
        if answered.is_success:
            self._remember_cron(self._successor(job, answered.json["job_id"], path, n), answered.json)

    def _faults(self, endpoint: Endpoint, n: Any, cron: str) -> list[tuple[int, str]]:
        """How an input and an expression may be refused; of two faults, either may be told."""
        faults = [] if self.world.fits(endpoint, n) else [(422, "INPUT_VALIDATION_FAILED")]
        return faults if cron == wishes.NEW_YEAR else [*faults, (422, "INVALID_CRON")]

    def _successor(self, old: Cron, job_id: str, path: str, n: Any) -> Cron:
        revision = old.endpoint.current
        old.interrupt()
        new = Cron(
            job_id,
            old.endpoint,
            revision,
            version=old.version + 1,
            previous=old,
            path=path,
            n=n,
            expected=self.world.expected(revision, n, (Reaction.TAKES,)),
            catch_up=old.catch_up,
            paused_at=old.paused_at,
            unsure=set(old.unsure),
        )
        old.is_retired, old.replaced_by = True, new
        return new

    def _remember_cron(self, cron: Cron, shown: Json) -> None:
        self.model.crons[cron.job_id] = cron
        cron.endpoint.crons.append(cron)
        shows_cron(cron, shown)

    @rule(verb=st.sampled_from(["cancel", "pause", "resume"]), pick=picks, catch_up=st.sampled_from([None, "ALL"]))
    def steer(self, verb: str, pick: int, catch_up: str | None) -> None:
        """Cancels, pauses or resumes; one-shot jobs can be cancelled only, which is another rule's."""
        shots = [] if verb == "cancel" else list(self.model.shots.values())
        job = picked([*shots, *self.model.crons.values()], pick)
        if job is None:
            return
        body = ({"catch_up": catch_up} if catch_up else {}) if verb == "resume" else None
        answered = self.talk.call("POST", f"/jobs/{job.job_id}/{verb}", body)
        if isinstance(job, Shot) or (job.is_retired and verb != "cancel"):
            expect(answered, (409, "JOB_NOT_UPDATABLE"))
            return
        expect(answered, (200, ""))
        if verb == "cancel":
            job.interrupt()
            job.is_retired = True
        elif verb == "pause":
            job.interrupt()
            job.paused_at = job.paused_at or answered.json["paused_at"]
        elif job.paused_at:
            job.paused_at, job.resumed_with = None, catch_up or "NONE"
        shows_cron(job, answered.json)

    @rule(pick=picks, years=st.integers(0, 2))
    def turn_time(self, pick: int, years: int) -> None:
        """Makes a job due: to the scheduler it is as if nobody had been there since New Year, some years ago."""
        cron = picked(list(self.model.crons.values()), pick)
        if cron is not None:
            self._turn_back(cron, years)

    def _turn_back(self, cron: Cron, years: int) -> None:
        moved = self.world.database.execute(
            "UPDATE cron_jobs SET next_run_at = %s WHERE job_id = %s AND next_run_at > now()",
            (datetime(YEAR - years, 1, 1, tzinfo=UTC), UUID(hex=cron.job_id.removeprefix("job_"))),
        )
        if moved.rowcount:  # else it is paused, retired, or due already
            cron.turn_back([*range(YEAR - years, YEAR + 1)])

    @rule(pick=picks, what=st.sampled_from(["versions", "executions", "status"]))
    def inspect(self, pick: int, what: str) -> None:
        """Reads what belongs to a job."""
        cron = picked(list(self.model.crons.values()), pick)
        if cron is None:
            return
        if what == "executions":
            find_firings(self.world, cron)
        elif what == "status":
            shows_figures(cron, self.talk.get(f"/jobs/{cron.job_id}/status"))
        else:
            shown = self.talk.items(f"/jobs/{cron.job_id}/versions", limit=2)
            for job, version in zip(shown, cron.versions, strict=True):
                shows_cron(version, job)
