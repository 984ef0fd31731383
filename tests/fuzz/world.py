"""What all rules work with: the conversation, the receiver, and the model that both are held against."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg
from hypothesis.stateful import RuleBasedStateMachine

from tests.fuzz import plans, wishes
from tests.fuzz.conversation import Conversation, Json
from tests.fuzz.model import Endpoint, Firing, Namespace, Revision
from tests.fuzz.plans import Outcome, Plan, Reaction
from tests.fuzz.wishes import Reference
from tests.support.receiver import Received, Receiver

T = TypeVar("T")


@dataclass
class World:
    """One namespace, seen from all sides."""

    talk: Conversation
    receiver: Receiver
    root: str
    """Of the receiver's paths."""
    database: psycopg.Connection[Any]
    """To turn time; nothing else is read or written there."""
    model: Namespace = field(default_factory=Namespace)

    @property
    def url(self) -> str:
        """Where all endpoints of the namespace send to, each job to a path of its own below it."""
        return self.receiver.url(self.root)

    def endpoint_name(self, reference: Reference) -> str:
        """Of an endpoint that is there, or now and then of one that may not be."""
        return wishes.name_of(reference.pick, self.model.endpoints, wishes.ENDPOINTS)

    def script(self, endpoint: Endpoint | None, plan: Plan, path: str) -> None:
        """Tells the receiver, before the job is there, what to do with its deliveries."""
        patient = endpoint is not None and endpoint.current.wish.patient
        self.receiver.script(f"{self.root}/{path}", *plans.answers(_bearable(plan, patient=patient)))

    def expected(self, revision: Revision, n: Any, plan: Plan) -> Outcome:
        """What must become of an execution with this input."""
        policy = revision.wish.policy
        if revision.wish.names_n and n == wishes.NOTHING:
            return plans.unresolvable(policy)
        return plans.outcome(_bearable(plan, patient=revision.wish.patient), policy)

    def requests(self, firing: Firing) -> list[Received]:
        """What the receiver got of an execution."""
        requests = self.receiver.requests(f"{self.root}/{firing.path}")
        return [request for request in requests if request.key == firing.execution_id]

    def fits(self, endpoint: Endpoint, n: Any) -> bool:
        """Whether an endpoint's payload spec, if it has one, lets an input with this `n` pass."""
        spec = endpoint.current.wish.payload_spec
        return spec is None or wishes.fits(self.model.setup["payload-specs"][spec], n)

    def replaced_values(self, revision: Revision) -> int:
        """How many values of `v` a new execution can no longer see."""
        return max(0, len(self.model.v_history.get(revision.wish.config or "", [])) - 1)


def input_of(path: str, n: Any) -> Json:
    """A job's input: where its deliveries go, and an `n` or none."""
    return {"path": path} if n == wishes.NOTHING else {"path": path, "n": n}


def picked(things: list[T], pick: int) -> T | None:
    """One of them, the newest first, because what is new still moves; None when there is nothing."""
    return things[-1 - pick % len(things)] if things else None


def _bearable(plan: Plan, *, patient: bool) -> Plan:
    """A patient endpoint is spared what hangs: it would wait for 10 seconds."""
    return tuple(Reaction.FAILS if patient and reaction is Reaction.HANGS else reaction for reaction in plan)


class Rules(RuleBasedStateMachine):
    """Base of the rules, which are grouped by what they deal with."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.talk = world.talk
        self.model = world.model
