"""The headers of an HTTP delivery: the identity that receivers act by, and what the user wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from hashlib import blake2b

from taskexecutor_common.endpoint_types.base import DeliveryIdentity
from taskexecutor_common.endpoint_types.http import HttpRequest
from taskexecutor_common.endpoint_types.reserved_headers import carries_identity, frames_http
from taskexecutor_dispatcher.endpoints.signing import sign

# Answers are stored as they come and never unpacked, since what a few bytes unpack to has no bound.
_AS_IS = ("Accept-Encoding", "identity")
_TRACE_ID = re.compile(r"[0-9a-f]{32}\Z")


def delivery_headers(
    request: HttpRequest, identity: DeliveryIdentity, sent_at: datetime, user_agent: str
) -> list[tuple[str, str]]:
    """All headers of one attempt; `sent_at` is UTC. What the user wrote under a name of ours is left out."""
    ours = [*_identity_headers(identity, sent_at), ("User-Agent", user_agent), _AS_IS]
    if request.signing_secret is not None:
        signature = sign(request.signing_secret, identity.execution_id, sent_at, request.body or b"")
        ours.append(("webhook-signature", signature))
    taken = {name.lower() for name, _ in ours}
    users = [(name, value) for name, value in request.headers if not _is_ours(name.lower(), taken)]
    return ours + users


def traceparent(execution_id: str, attempt: int) -> str:
    """W3C trace context: one trace for an execution, one span for each attempt, the same whenever it is computed.

    The trace id is the hex part of the execution id, so that a trace is found by the id that everything else shows.
    """
    found = _TRACE_ID.search(execution_id)
    trace_id = found.group() if found else _digest(execution_id, 16)
    return f"00-{trace_id}-{_digest(f'{execution_id}/{attempt}', 8)}-01"


def _is_ours(name: str, taken: set[str]) -> bool:
    return name in taken or carries_identity(name) or frames_http(name)


def _identity_headers(identity: DeliveryIdentity, sent_at: datetime) -> Iterator[tuple[str, str]]:
    yield "Idempotency-Key", identity.execution_id
    yield "webhook-id", identity.execution_id
    yield "webhook-timestamp", str(int(sent_at.timestamp()))
    yield "Task-Executor-Attempt", str(identity.attempt)
    yield "Task-Executor-Job-Id", identity.job_id
    yield "Task-Executor-Scheduled-At", identity.scheduled_at
    yield "traceparent", traceparent(identity.execution_id, identity.attempt)


def _digest(text: str, size: int) -> str:
    return blake2b(text.encode(), digest_size=size).hexdigest()
