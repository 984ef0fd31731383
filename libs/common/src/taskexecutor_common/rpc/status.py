"""Errors as gRPC sees them: the one translator of this edge.

The status carries google.rpc.ErrorInfo (reason = the contract's code, domain `taskexecutor`), BadRequest where a field is
at fault, RequestInfo, and RetryInfo where waiting helps. Beside it stand the REST status and the finished JSON body, which
the gateway swaps in for REST callers (docs/gateway.md).
"""

from __future__ import annotations

import json
import math

import grpc
from google.protobuf import any_pb2, duration_pb2, message
from google.rpc import error_details_pb2, status_pb2

from taskexecutor_common.errors import TaskExecutorError

DOMAIN = "taskexecutor"
_MESSAGE_BYTES = 2000  # a client's header limit is 8 KiB in all, and the message travels up to three times

_CODES = {code.value[0]: code for code in grpc.StatusCode}

Metadata = tuple[tuple[str, str | bytes], ...]


def rest_body(error: TaskExecutorError, request_id: str) -> str:
    """The brief's error body, in ASCII so that it may stand in metadata."""
    body = {"code": error.reason, "message": _bounded(error.message), "request_id": request_id}
    return json.dumps({"error": body}, separators=(",", ":"))


def abort_arguments(error: TaskExecutorError, request_id: str) -> tuple[grpc.StatusCode, str, Metadata]:
    """What `context.abort` takes for an error."""
    code = _CODES[error.status_code]
    text = _bounded(error.message)
    status = status_pb2.Status(code=error.status_code, message=text, details=_details(error, text, request_id))
    metadata: list[tuple[str, str | bytes]] = [
        ("x-http-code", str(error.http_status)),
        ("x-error-body", rest_body(error, request_id)),
        ("grpc-status-details-bin", status.SerializeToString()),
    ]
    if error.retry_after is not None:
        metadata.append(("retry-after", str(max(1, math.ceil(error.retry_after)))))
    return code, text, tuple(metadata)


def _details(error: TaskExecutorError, text: str, request_id: str) -> list[any_pb2.Any]:
    details: list[message.Message] = [
        error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN),
        error_details_pb2.RequestInfo(request_id=request_id),
    ]
    if error.field is not None:
        violation = error_details_pb2.BadRequest.FieldViolation(field=error.field, description=text)
        details.append(error_details_pb2.BadRequest(field_violations=[violation]))
    if error.retry_after is not None:
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(int(error.retry_after * 1000))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    packed = []
    for detail in details:
        packed.append(any_pb2.Any())
        packed[-1].Pack(detail)
    return packed


def _bounded(text: str) -> str:
    raw = text.encode("utf-8", "replace")
    return raw.decode() if len(raw) <= _MESSAGE_BYTES else raw[: _MESSAGE_BYTES - 4].decode("utf-8", "ignore") + "…"
