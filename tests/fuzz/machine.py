"""The public API as a state machine: each rule makes a call, says what must be answered, and what is true from then on.

What is drawn must not depend on answers, which differ from run to run with the speed of the machine. So things are drawn by
number or by a name that may not exist; a rule whose thing is missing asks for it all the same, or does nothing.
"""

from __future__ import annotations

import sys
import time

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from tests.fuzz import wishes
from tests.fuzz.audit import audit, settle
from tests.fuzz.cron_rules import CronRules
from tests.fuzz.endpoint_rules import EndpointRules
from tests.fuzz.model import Cron
from tests.fuzz.plans import Policy
from tests.fuzz.setup_rules import KINDS, SetupRules
from tests.fuzz.shot_rules import ShotRules
from tests.fuzz.shown import shows_jobs
from tests.fuzz.wishes import CronWish, EndpointWish, JobWish, Reference

_NEEDS_NOTHING = EndpointWish(None, None, None, False, False, Policy(2, 20, False), "none", True)


class ApiMachine(SetupRules, EndpointRules, ShotRules, CronRules):
    """One namespace, from empty to audited."""

    def teardown(self) -> None:
        """When nothing was wrong so far, everything must come to its end."""
        if sys.exc_info()[0] is None:
            settle(self.world)
            audit(self.world)

    @initialize(
        wish=wishes.endpoint_wishes,
        is_paused=st.booleans(),
        jobs=st.lists(wishes.job_wishes, min_size=1, max_size=4),
        cron=wishes.cron_wishes,
    )
    def begin(self, wish: EndpointWish, is_paused: bool, jobs: list[JobWish], cron: CronWish) -> None:
        """One thing of each kind, an endpoint that needs nothing, one that may need anything, and some jobs."""
        for kind in KINDS:
            self.create(kind, which=0, pick=0)
        self.register("ep-0", _NEEDS_NOTHING)
        self.register("ep-1", wish)
        self.hold(Reference(1), "pause" if is_paused else "")
        self.create_batch(jobs)
        self.create_cron(cron)

    @rule(ms=st.sampled_from([10, 50, 150, 300]))
    def let_time_pass(self, ms: int) -> None:
        """What comes next finds things a little further on."""
        time.sleep(ms / 1000)

    @rule(
        limit=st.integers(1, 5),
        endpoint=st.sampled_from([None, *wishes.ENDPOINTS]),
        trigger=st.sampled_from([None, "IMMEDIATE", "DELAYED", "CRON"]),
        status=st.sampled_from([None, "ACTIVE", "RETIRED"]),
    )
    def list_jobs(self, limit: int, endpoint: str | None, trigger: str | None, status: str | None) -> None:
        """Page by page, filtered."""
        filters = {"endpoint": endpoint, "trigger": trigger, "status": status}
        query = "&".join(f"{name}={value}" for name, value in filters.items() if value)
        shown = self.talk.items(f"/jobs?{query}", limit)
        assert all(job[name] == value for job in shown for name, value in filters.items() if value)
        wanted = [
            job
            for job in (*self.model.shots.values(), *self.model.crons.values())
            if endpoint in (None, job.endpoint.name)
            and trigger in (None, "CRON" if isinstance(job, Cron) else job.body["trigger"])
        ]
        shows_jobs(self.world, shown, wanted, status)

    @invariant()
    def every_job_is_listed_once(self) -> None:
        """In a state that it may be in."""
        shows_jobs(self.world, self.talk.items("/jobs"), [*self.model.shots.values(), *self.model.crons.values()])
