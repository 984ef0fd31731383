"""What is drawn: few names, so that calls meet, and few values, so that each decides something."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.conversation import Json
from tests.fuzz.plans import Plan, Policy, Reaction

PAYLOAD_SPECS, CONFIGS, SECRETS = ("ps-0", "ps-1"), ("cf-0", "cf-1"), ("sc-0", "sc-1")
ENDPOINTS = ("ep-0", "ep-1", "ep-2")
KEYS = ("key-0", "key-1", "key-2", "key-3")
HOUR_MS = 3_600_000
MAYBE_MISSING = 15
NEW_YEAR, NEVER = "0 0 1 1 *", "0 0 30 2 *"

SCHEMAS: dict[str, Json] = {
    "anything": {},
    "needs n": {"type": "object", "required": ["n"]},
    "n is whole": {"type": "object", "properties": {"n": {"type": "integer"}}},
}
NOTHING = "no n"
LIMITS: dict[str, Json | None] = {
    "none": None,
    "one at a time": {"max_in_flight": 1},
    "a rate": {"max_in_flight": 2, "rate_limit": {"per_second": 100, "burst": 3}},
    "a breaker": {"circuit_breaker": {"failure_rate": 0.5, "minimum_attempts": 2, "window_sec": 60, "open_sec": 1}},
}


def fits(schema: str, n: Any) -> bool:
    """Whether an input with this `n` matches one of SCHEMAS."""
    return schema == "anything" or (n != NOTHING if schema == "needs n" else n == NOTHING or isinstance(n, int))


def name_of(pick: int, there: Iterable[str], names: Sequence[str]) -> str:
    """The name of something that is there, or, now and then, of something that may be missing."""
    found = sorted(there)
    return found[pick % len(found)] if found and pick != MAYBE_MISSING else names[pick % len(names)]


@dataclass(frozen=True)
class Reference:
    """To one of the things of a kind."""

    pick: int


@dataclass(frozen=True)
class EndpointWish:
    """Settings of an endpoint. A patient one gives the receiver 10 seconds, so that only what hangs is cut off."""

    payload_spec: Reference | str | None
    config: Reference | str | None
    secret: Reference | str | None
    names_v: bool  # {{config.v}}
    names_n: bool  # {{input.n}}
    policy: Policy
    limits: str
    patient: bool

    def resolved(self, setup: dict[str, dict[str, Any]]) -> EndpointWish:
        """With names for the references, and a `v` to name if there is one."""
        names = {}
        for field, kind, known in (
            ("payload_spec", "payload-specs", PAYLOAD_SPECS),
            ("config", "configs", CONFIGS),
            ("secret", "secrets", SECRETS),
        ):
            reference = getattr(self, field)
            names[field] = name_of(reference.pick, setup[kind], known) if reference else None
        has_v = "v" in setup["configs"].get(names["config"], {})
        may_fail = self.config is not None and self.config.pick == MAYBE_MISSING
        return replace(self, **names, names_v=self.names_v and (has_v or may_fail))

    def body(self, url: str, revision: int) -> Json:
        """As the contract writes it; what is sent says by which revision."""
        template: Json = {"revision": revision, "text": "n is {{input.n}}"} if self.names_n else {"revision": revision}
        template |= {"n": "{{input.n}}"} if self.names_n else {}
        template |= {"v": "{{config.v}}"} if self.names_v else {}
        spec: Json = {
            "url": url + "/{{input.path}}",
            "method": "POST",
            "body_template": template,
            "timeout_ms": 10_000 if self.patient else 300,
        }
        if self.secret:
            spec["headers"] = {"X-Secret": f"{{{{secret.{self.secret}}}}}"}
        body: Json = {"spec": spec, "retry_policy": self.policy.body()}
        if LIMITS[self.limits]:
            body["flow_control"] = LIMITS[self.limits]
        references = {"payload_spec": self.payload_spec, "config": self.config}
        return body | {name: value for name, value in references.items() if value}


@dataclass(frozen=True)
class JobWish:
    """A one-shot job. `delay_ms` None: IMMEDIATE."""

    endpoint: Reference
    key: str
    delay_ms: int | None
    n: Any
    plan: Plan
    fault: str = ""
    """A field that is left out or does not belong there."""


@dataclass(frozen=True)
class CronWish:
    """A job that fires each New Year; time is turned for it."""

    endpoint: Reference
    catch_up: str | None
    n: Any
    reaction: Reaction
    cron: str
    missed: int | None
    """How many years ago time is turned back to at once; None: not at all."""


picks = st.integers(0, MAYBE_MISSING)
"""Which of the things that there are: taken modulo their number, because what is drawn must not depend on answers."""

references = st.builds(Reference, picks)


def _with_end(drawn: tuple[Plan, Reaction]) -> Plan:
    return (*drawn[0], drawn[1])


_prefixes = st.lists(st.sampled_from(Reaction), max_size=2).map(tuple)
_ends = st.sampled_from([reaction for reaction in Reaction if reaction is not Reaction.WANTS_REST])
plans = st.tuples(_prefixes, _ends).map(_with_end)
values_of_n = st.sampled_from([0, 1, 1, NOTHING, "one"])

policies = st.builds(
    Policy,
    max_attempts=st.integers(1, 3),
    delay_ms=st.sampled_from([0, 20, 100]),
    gives_up_at_404=st.booleans(),
)
endpoint_wishes = st.builds(
    EndpointWish,
    payload_spec=st.none() | references,
    config=st.none() | references,
    secret=st.none() | references,
    names_v=st.booleans(),
    names_n=st.booleans(),
    policy=policies,
    limits=st.sampled_from(list(LIMITS)),
    patient=st.sampled_from([True, True, False]),
)
job_wishes = st.builds(
    JobWish,
    endpoint=references,
    key=st.sampled_from(KEYS),
    delay_ms=st.sampled_from([None, None, -1000, 50, 300, HOUR_MS]),
    n=values_of_n,
    plan=plans,
    fault=st.sampled_from([""] * 12 + ["idempotency_key", "run_at", "cron"]),
)
cron_wishes = st.builds(
    CronWish,
    endpoint=references,
    catch_up=st.sampled_from([None, "ALL", "LATEST", "NONE"]),
    n=values_of_n,
    reaction=st.sampled_from([Reaction.TAKES, Reaction.FAILS]),
    cron=st.sampled_from([NEW_YEAR] * 6 + [NEVER, "soon"]),
    missed=st.sampled_from([None, 0, 0, 1, 2]),
)
