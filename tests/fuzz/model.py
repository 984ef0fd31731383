"""What one namespace holds, as the brief and docs/states.md say it must: no network here, only what may be true.

A caller cannot know everything: whether an execution runs at this moment, say. Where that decides, an answer here is None,
and the caller accepts either way.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.fuzz.conversation import Json
from tests.fuzz.plans import Outcome
from tests.fuzz.wishes import EndpointWish

FINAL = frozenset({"SUCCESS", "FAILED", "CANCELLED"})
_LATER: dict[str, frozenset[str]] = {
    "PENDING": frozenset({"PENDING", "QUEUED", "RUNNING", "RETRYING"}) | FINAL,
    "QUEUED": frozenset({"QUEUED", "RUNNING", "RETRYING"}) | FINAL,
    "RUNNING": frozenset({"RUNNING", "RETRYING"}) | FINAL,
    "RETRYING": frozenset({"RUNNING", "RETRYING"}) | FINAL,
    **{status: frozenset({status}) for status in FINAL},
}
"""By status: those that may be seen after it."""


def any_known(truths: Iterable[bool | None]) -> bool | None:
    """True when one is true, False when all are false, else None."""
    seen = set(truths)
    return True if True in seen else (None if None in seen else False)


@dataclass(frozen=True)
class Revision:
    """One state of an endpoint; what was created with it is delivered by it."""

    number: int
    wish: EndpointWish

    def refers_to(self, kind: str, name: str) -> bool:
        """Whether a payload spec, config or secret is needed by it."""
        return {"payload-specs": self.wish.payload_spec, "configs": self.wish.config, "secrets": self.wish.secret}[
            kind
        ] == name


@dataclass(eq=False)
class Endpoint:
    """An endpoint; one that is deleted keeps its jobs, and its name may be that of another."""

    name: str
    revisions: list[Revision]
    paused_at: str | None = None
    is_deleted: bool = False
    shots: dict[str, Shot] = field(default_factory=dict)
    """One-shot jobs by idempotency key."""
    crons: list[Cron] = field(default_factory=list)

    @property
    def current(self) -> Revision:
        """What new jobs get."""
        return self.revisions[-1]

    @property
    def firings(self) -> Iterator[Firing]:
        """All executions that are known."""
        yield from (shot.firing for shot in self.shots.values())
        yield from (firing for cron in self.crons for firing in cron.firings.values())

    def resume(self) -> None:
        """Lets what was held go."""
        self.paused_at = None
        for firing in self.firings:
            firing.is_held = False

    def is_live(self, revision: Revision | None = None) -> bool | None:
        """Whether a job, of that revision if one is given, can still cause deliveries."""
        jobs = [*self.shots.values(), *self.crons]
        return any_known(job.is_live for job in jobs if revision in (None, job.revision))

    def needs(self, is_meant: Callable[[Revision], bool]) -> bool | None:
        """Whether it holds on to what `is_meant` tells of a revision."""
        if self.is_deleted:
            return False
        return any_known(
            True if revision is self.current else self.is_live(revision)
            for revision in self.revisions
            if is_meant(revision)
        )


@dataclass(eq=False)
class Firing:
    """An execution."""

    execution_id: str
    endpoint: Endpoint
    revision: Revision
    path: str
    """Of the receiver; all firings of a cron job share theirs."""
    n: Any
    expected: Outcome
    status: str
    v_since: int
    """How many values of `v` had been replaced when it was created."""
    is_far: bool = False
    """Due when all this is long over."""
    is_held: bool = False
    """Its endpoint was paused before it was created, and is so still: nobody can have begun it."""
    sent_when_cancelled: int | None = None

    @property
    def is_live(self) -> bool | None:
        """Whether it can still cause deliveries."""
        if self.status in FINAL:
            return False
        return True if self.is_far or self.is_held else None

    def see(self, status: str) -> None:
        """An answer showed this status. AssertionError if that cannot be."""
        assert status in _LATER[self.status], f"{self.execution_id} went from {self.status} to {status}"
        assert (status == "CANCELLED") == (self.sent_when_cancelled is not None), f"{self.execution_id} is {status}"
        if status not in FINAL:
            assert not self.endpoint.is_deleted, f"{self.execution_id} is {status}, its endpoint deleted"
            assert not self.is_far or status == "PENDING", f"{self.execution_id} is {status} before its time"
            assert not self.is_held or status in ("PENDING", "QUEUED"), f"{self.execution_id} passed a pause"
        elif status != "CANCELLED":
            assert self.is_live is not True, f"{self.execution_id} is {status} although it had to wait"
            if self.revision.wish.patient:
                assert status == self.expected.status, f"{self.execution_id}: {status} instead of {self.expected}"
        self.status = status


@dataclass(eq=False)
class Shot:
    """A one-shot job."""

    job_id: str
    endpoint: Endpoint
    revision: Revision
    body: Json
    """What created it."""
    firing: Firing

    @property
    def is_live(self) -> bool | None:
        """As of its execution."""
        return self.firing.is_live


@dataclass(eq=False)
class Cron:
    """One version of a cron job. Its ticks are New Years, known by their number."""

    job_id: str
    endpoint: Endpoint
    revision: Revision
    version: int
    previous: Cron | None
    path: str
    n: Any
    expected: Outcome
    catch_up: str
    """What it was created with."""
    resumed_with: str | None = None
    """What it was resumed with: that holds for ticks before the resume."""
    is_retired: bool = False
    paused_at: str | None = None
    replaced_by: Cron | None = None
    due: set[int] = field(default_factory=set)
    """Ticks that must fire."""
    missed: set[int] = field(default_factory=set)
    """Ticks since the one that time was turned back to; `due` are those among them that `catch_up` lets fire."""
    unsure: set[int] = field(default_factory=set)
    """Ticks that had been missed when something else happened to the job: who caught up with which is not known."""
    fired: set[int] = field(default_factory=set)
    is_behind: bool = False
    """When it was last seen, the scheduler had ticks to deal with."""
    firings: dict[str, Firing] = field(default_factory=dict)

    @property
    def is_live(self) -> bool | None:
        """An active one is; else what it fired may be under way, not all of which is known."""
        if not self.is_retired:
            return True
        if len(self.firings) < len(self.due | self.unsure | self.fired):
            return None
        return any_known(firing.is_live for firing in self.firings.values())

    @property
    def versions(self) -> list[Cron]:
        """All versions, newest first."""
        newest = self
        while newest.replaced_by:
            newest = newest.replaced_by
        versions: list[Cron] = []
        version: Cron | None = newest
        while version:
            versions.append(version)
            version = version.previous
        return versions

    def turn_back(self, missed: list[int]) -> None:
        """Nobody was there for these ticks."""
        self.see_next_run_ahead()
        self.missed = set(missed)
        self.due = {"ALL": set(missed), "LATEST": set(missed[-1:]), "NONE": set()}[self.resumed_with or self.catch_up]

    def interrupt(self) -> None:
        """Something ends or suspends the schedule."""
        self.unsure |= self.missed
        self.missed, self.due = set(), set()

    def see_next_run_ahead(self) -> None:
        """The scheduler has dealt with all ticks so far."""
        self.fired |= self.due
        self.missed, self.due = set(), set()


class Namespace:
    """All of it."""

    def __init__(self) -> None:
        self.setup: dict[str, dict[str, Any]] = {"payload-specs": {}, "configs": {}, "secrets": {}}
        """By kind and name: the name of the schema, the values, the value."""
        self.v_history: dict[str, list[Any]] = {}
        """By config: all that `v` has been."""
        self.secret_history: dict[str, list[str]] = {}
        self.endpoints: dict[str, Endpoint] = {}
        """Those that live."""
        self.gone: list[Endpoint] = []
        self.shots: dict[str, Shot] = {}
        """By job id."""
        self.crons: dict[str, Cron] = {}
        """By job id, all versions."""
        self._numbers = itertools.count()

    def fresh(self, what: str) -> str:
        """A word that was not used before."""
        return f"{what}{next(self._numbers)}"

    @property
    def all_endpoints(self) -> list[Endpoint]:
        """The deleted ones too."""
        return [*self.endpoints.values(), *self.gone]

    @property
    def firings(self) -> list[Firing]:
        """All executions that are known."""
        return [firing for endpoint in self.all_endpoints for firing in endpoint.firings]

    def is_referred_to(self, kind: str, name: str) -> bool | None:
        """Whether an endpoint, or a live job of an older revision, stands in the way of a deletion."""
        return any_known(e.needs(lambda revision: revision.refers_to(kind, name)) for e in self.endpoints.values())

    def names_v_of(self, config: str) -> bool | None:
        """The same for taking `v` out of a config."""
        return any_known(
            e.needs(lambda revision: revision.wish.names_v and revision.refers_to("configs", config))
            for e in self.endpoints.values()
        )

    def faults_of(self, wish: EndpointWish) -> set[str]:
        """The codes with which an endpoint may be refused; empty: it must be taken."""
        faults = set()
        if wish.payload_spec and wish.payload_spec not in self.setup["payload-specs"]:
            faults.add("INVALID_PAYLOAD_SPEC_REF")
        if wish.config and wish.config not in self.setup["configs"]:
            faults.add("INVALID_CONFIG_REF")
        if wish.secret and wish.secret not in self.setup["secrets"]:
            faults.add("TEMPLATE_RESOLUTION_FAILED")
        if wish.names_v and "v" not in self.setup["configs"].get(wish.config, {}):
            faults.add("TEMPLATE_RESOLUTION_FAILED")
        return faults
