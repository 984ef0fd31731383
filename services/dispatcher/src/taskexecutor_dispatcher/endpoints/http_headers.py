"""The headers of an HTTP delivery: the identity that receivers act by, and what the user wrote."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from hashlib import blake2b

from taskexecutor_common.endpoint_types.base import DeliveryIdentity
from taskexecutor_common.endpoint_types.http import HttpRequest
from taskexecutor_common.endpoint_types.reserved_headers import carries_identity, frames_http
from taskexecutor_dispatcher.endpoints.signing import sign

IDENTITY_NAMES = (
    "Idempotency-Key",
    "webhook-id",
    "webhook-timestamp",
    "Task-Executor-Attempt",
    "Task-Executor-Job-Id",
    "Task-Executor-Scheduled-At",
    "traceparent",
)
# Answers are stored as they come and never unpacked, since what a few bytes unpack to has no bound.
ACCEPTED_ENCODING = ("Accept-Encoding", "identity")
_TRACE_ID = re.compile(r"[0-9a-f]{32}")


def identity_values(identity: DeliveryIdentity, sent_at_sec: int) -> tuple[str | int, ...]:
    """What stands under IDENTITY_NAMES, in their order; `sent_at_sec` is in seconds since 1970."""
    execution_id, attempt = identity.execution_id, identity.attempt
    trace = traceparent(execution_id, attempt)
    return execution_id, execution_id, sent_at_sec, attempt, identity.job_id, identity.scheduled_at, trace


def delivery_headers(
    request: HttpRequest, identity: DeliveryIdentity, sent_at_sec: int, user_agent: str
) -> list[tuple[str, str]]:
    """All headers of one attempt, those aside that frame the message. What the user wrote under a name of ours is left
    out. Raises ValueError when the signing secret is none."""
    values = identity_values(identity, sent_at_sec)
    headers = [(name, str(value)) for name, value in zip(IDENTITY_NAMES, values, strict=True)]
    headers += [("User-Agent", user_agent), ACCEPTED_ENCODING]
    if request.signing_secret is not None:
        headers.append(("webhook-signature", signature(request, identity, sent_at_sec)))
    return headers + [(name, value) for name, value in request.headers if not is_ours(name)]


def signature(request: HttpRequest, identity: DeliveryIdentity, sent_at_sec: int) -> str:
    """The value of `webhook-signature`, for a request that has a secret. Raises ValueError when that is none."""
    assert request.signing_secret is not None
    sent_at = datetime.fromtimestamp(sent_at_sec, UTC)
    return sign(request.signing_secret, identity.execution_id, sent_at, request.body or b"")


def is_ours(name: str) -> bool:
    """True for the headers that users cannot set, in whatever case they are written."""
    lowered = name.lower()
    return lowered == "accept-encoding" or carries_identity(lowered) or frames_http(lowered)


def traceparent(execution_id: str, attempt: int) -> str:
    """W3C trace context: one trace for an execution, one span for each attempt, the same whenever it is computed.

    The trace id is the hex part of the execution id, so that a trace is found by the id that everything else shows.
    """
    trace_id = execution_id[-32:]
    if _TRACE_ID.fullmatch(trace_id) is None:
        trace_id = _digest(execution_id, 16)
    return f"00-{trace_id}-{_digest(f'{execution_id}/{attempt}', 8)}-01"


def _digest(text: str, size: int) -> str:
    return blake2b(text.encode(), digest_size=size).hexdigest()
