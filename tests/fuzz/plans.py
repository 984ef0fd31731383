"""What a receiver does with the attempts of one execution, and what must become of the execution then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from tests.support.receiver import Answer, Received


class Reaction(Enum):
    """What a receiver does with one request."""

    TAKES = "takes"
    FAILS = "fails"
    KNOWS_NOTHING = "knows nothing"
    WANTS_REST = "wants rest"
    HANGS = "hangs"


Plan = tuple[Reaction, ...]
"""One reaction per attempt; the last one stays."""


def _echo(request: Received) -> bytes:
    """Says what it was sent: a secret in it must be masked."""
    return f"secret {request.headers.get('X-Secret')}, body {request.body.decode()}".encode()


_ANSWERS = {
    Reaction.TAKES: Answer(200, _echo),
    Reaction.FAILS: Answer(500, _echo),
    Reaction.KNOWS_NOTHING: Answer(404),
    Reaction.WANTS_REST: Answer(429, headers={"Retry-After": "1"}),
    Reaction.HANGS: Answer(hangs=True),
}
_ERRORS = {Reaction.TAKES: None, Reaction.HANGS: "TIMEOUT"}


def answers(plan: Plan) -> list[Answer]:
    """The plan as the receiver takes it."""
    return [_ANSWERS[reaction] for reaction in plan]


@dataclass(frozen=True)
class Policy:
    """A retry policy."""

    max_attempts: int
    delay_ms: int
    gives_up_at_404: bool

    def body(self) -> dict[str, object]:
        """As the contract writes it. The bound keeps short what a receiver may ask for."""
        return {
            "max_attempts": self.max_attempts,
            "backoff": "fixed",
            "initial_delay_ms": self.delay_ms,
            "max_delay_ms": 100,
            "non_retryable_status_codes": [404] if self.gives_up_at_404 else [],
        }


@dataclass(frozen=True)
class Outcome:
    """How an execution ends that nobody cancels."""

    status: str
    errors: tuple[str | None, ...]
    """Of each attempt; None for the success."""
    max_attempts: int
    """Grows by one with each attempt that does not count."""


def outcome(plan: Sequence[Reaction], policy: Policy) -> Outcome:
    """What the contract says of retries: a receiver that wants rest costs no attempt, all other failures do."""
    errors: list[str | None] = []
    allowed = policy.max_attempts
    while True:
        reaction = plan[min(len(errors), len(plan) - 1)]
        errors.append(_ERRORS.get(reaction, "HTTP_ERROR"))
        if reaction is Reaction.TAKES:
            return Outcome("SUCCESS", tuple(errors), allowed)
        if reaction is Reaction.WANTS_REST:
            allowed += 1
        elif len(errors) >= allowed or (reaction is Reaction.KNOWS_NOTHING and policy.gives_up_at_404):
            return Outcome("FAILED", tuple(errors), allowed)


def unresolvable(policy: Policy) -> Outcome:
    """What becomes of an execution whose input lacks what the template names: nothing is sent, nothing tried again."""
    return Outcome("FAILED", ("TEMPLATE_RESOLUTION_FAILED",), policy.max_attempts)
