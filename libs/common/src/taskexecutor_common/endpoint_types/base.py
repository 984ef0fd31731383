"""What every type of endpoint offers: a checked spec, its placeholders, and a rendered request.

The api uses this to refuse a bad spec and to preview a delivery, the dispatcher to build what it sends. A type lives in
its own module here (shape and rendering, no I/O) and in its own module of the dispatcher's `endpoints` (sending).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from taskexecutor_common.model.endpoint import EndpointType
from taskexecutor_common.templates import Placeholder
from taskexecutor_common.templates import Scope as Scope  # part of the protocol, so it can be had from here


@dataclass(frozen=True, slots=True)
class DeliveryIdentity:
    """Who a delivery is: what receivers use to act once. Times are UTC."""

    execution_id: str
    job_id: str
    attempt: int
    scheduled_at: str
    """RFC 3339, the nominal time of the firing."""

    def scope(self, *, value: Any, config: Any, secrets: Mapping[str, str], job_version: int) -> dict[str, Any]:
        """All that the templates of this delivery may name; `value` is the job's input."""
        return {
            "input": value,
            "config": config,
            "secret": secrets,
            "execution": {"id": self.execution_id, "attempt": self.attempt, "scheduled_at": self.scheduled_at},
            "job": {"id": self.job_id, "version": job_version},
        }


class CompiledSpec(Protocol):
    """A spec that was checked and whose templates are parsed; made once per endpoint revision."""

    @property
    def timeout_ms(self) -> int:
        """Upper bound of one attempt, in milliseconds."""

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        """All placeholders of all templates in the spec."""

    def render(self, scope: Scope) -> Any:
        """Fills the templates. Returns the type's own request object; raises TemplateError naming the placeholder,
        or InvalidDestination when what came out cannot be sent."""


class EndpointKind(Protocol):
    """The shape of one endpoint type."""

    endpoint_type: EndpointType

    def compile(self, spec: Mapping[str, Any]) -> CompiledSpec:
        """Checks a spec and parses its templates; the spec must not be changed afterwards.

        Raises InvalidRequest naming the field (`spec.timeout_ms: ...`), or TemplateResolutionFailed for a placeholder
        whose namespace does not exist.
        """

    def describe(self, request: Any) -> dict[str, Any]:
        """A rendered request as JSON for a preview; the caller masks secrets."""


class InvalidDestination(Exception):
    """What the templates made cannot be sent: a bad URL, a header with a line break, an empty topic. Not retried."""
