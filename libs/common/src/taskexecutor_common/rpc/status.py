"""Errors as gRPC sees them: the one translator of this edge.

The status carries google.rpc.ErrorInfo (reason = the contract's code, domain `taskexecutor`), BadRequest where a field is
at fault, RequestInfo, and RetryInfo where waiting helps. Beside it stand the REST status and the finished JSON body, which
the gateway swaps in for REST callers (docs/gateway.md).

Callers' own words stand in errors, so whatever they sent, all of it stays below the 8 KiB that a gRPC client takes: what is
longer ends the call for it at random, and what is much longer ends the connection that the gateway shares among all callers.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from urllib.parse import quote

import grpc
from google.protobuf import any_pb2, duration_pb2, message
from google.rpc import error_details_pb2, status_pb2

from taskexecutor_common.errors import TaskExecutorError
from taskexecutor_common.shortening import shortened

DOMAIN = "taskexecutor"
_TEXT_BYTES = 5600
"""Of the 8 KiB, for the message in all its forms: 1,200 letters. The rest is for the field, ids, and the gateway's headers."""
_FIELD_CHARS = 200
_AS_THEY_ARE = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")

_CODES = {code.value[0]: code for code in grpc.StatusCode}

Metadata = tuple[tuple[str, str | bytes], ...]


def rest_body(error: TaskExecutorError, request_id: str) -> str:
    """The brief's error body, in ASCII so that it may stand in metadata."""
    body = {"code": error.reason, "message": shown_message(error), "request_id": request_id}
    return _ascii_json({"error": body})


def shown_message(error: TaskExecutorError) -> str:
    """An error's message as callers see it: cut where all its forms together become too long."""
    text = error.message[:_TEXT_BYTES].encode("utf-8", "replace").decode()
    if _wire_bytes(text) <= _TEXT_BYTES:
        return text
    fitting = bisect_right(range(len(text)), _TEXT_BYTES, key=lambda length: _wire_bytes(text[:length] + "…"))
    return text[: fitting - 1] + "…"


def abort_arguments(error: TaskExecutorError, request_id: str) -> tuple[grpc.StatusCode, str, Metadata]:
    """What `context.abort` takes for an error."""
    code = _CODES[error.status_code]
    text = shown_message(error)
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
        field = shortened(error.field, _FIELD_CHARS)
        violation = error_details_pb2.BadRequest.FieldViolation(field=field, description=text)
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


def _wire_bytes(text: str) -> int:
    """What a text takes: percent-encoded in `grpc-message`, escaped in the JSON body, and twice in base64 in the details."""
    return len(quote(text, safe=_AS_THEY_ARE)) + len(_ascii_json(text)) + 3 * len(text.encode())


def _ascii_json(value: object) -> str:
    """JSON of nothing but what metadata may hold: DEL, which json.dumps takes for ASCII like any other, is no part of it."""
    return json.dumps(value, separators=(",", ":")).replace("\x7f", "\\u007f")
