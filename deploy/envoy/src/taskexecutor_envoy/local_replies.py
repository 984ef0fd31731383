"""The body and status of what Envoy answers by itself, in the same shape as the api's errors."""

from __future__ import annotations

from taskexecutor_envoy.options import GatewayOptions, Json
from taskexecutor_envoy.route_table import LIVENESS_PATH, READINESS_PATH

_REQUEST_ID = "%REQ(X-REQUEST-ID)%"
# The transcoder makes every method a POST, and keeps the caller's.
_METHOD = "%REQ(X-ENVOY-ORIGINAL-METHOD?:METHOD)%"
_ENVOYS_OWN_WORDS = "%LOCAL_REPLY_BODY%"
_INTERNAL_MESSAGE = "Something went wrong on our side; the request id finds it in the logs."


def local_replies(options: GatewayOptions) -> Json:
    """The mappers; the first whose filter matches decides."""
    return {
        "mappers": [
            _healthy(),
            _untouched(_status("LE", 399)),
            _untouched(_from_grpc_caller()),
            _error(400, "INVALID_REQUEST", _ENVOYS_OWN_WORDS),
            _error(404, "NOT_FOUND", f"There is no such route: {_METHOD} %PATH(NQ)%."),
            _error(405, "METHOD_NOT_ALLOWED", f"{_METHOD} is not served here; the Allow header says what is."),
            _error(408, "DEADLINE_EXCEEDED", "The request took too long to arrive."),
            _error(413, "PAYLOAD_TOO_LARGE", f"The request body must not exceed {options.max_body_bytes} bytes."),
            _error(415, "UNSUPPORTED_MEDIA_TYPE", "This path is for gRPC: the content-type must be application/grpc."),
            _error(429, "RATE_LIMITED", "Too many requests.", retry_after=True),
            _error(431, "HEADERS_TOO_LARGE", "The request's headers are too large."),
            _mapper(_all(_status("GE", 400), _status("LE", 499)), "INVALID_REQUEST", _ENVOYS_OWN_WORDS),
            # 502: the api spoke something that is not HTTP/2; to the caller it is simply not there.
            {**_unavailable(502), "status_code": 503},
            _unavailable(503),
            _error(504, "DEADLINE_EXCEEDED", f"No answer within {options.request_timeout_s:g} seconds."),
        ],
        "body_format": _shape("INTERNAL_ERROR", _INTERNAL_MESSAGE),
    }


def _healthy() -> Json:
    """The two health paths, when all is well."""
    path = {"name": ":path", "string_match": {"safe_regex": {"regex": f"({LIVENESS_PATH}|{READINESS_PATH})(\\?.*)?"}}}
    return {
        "filter": _all(_status("LE", 399), {"header_filter": {"header": path}}),
        "body_format_override": {"json_format": {"status": "ok"}, "content_type": "application/json"},
    }


def _untouched(condition: Json) -> Json:
    return {
        "filter": condition,
        "body_format_override": {"text_format_source": {"inline_string": _ENVOYS_OWN_WORDS}},
    }


def _from_grpc_caller() -> Json:
    """Native gRPC and gRPC-Web: Envoy makes grpc-status and grpc-message for them.

    A transcoded REST call carries application/grpc by now as well, but also the path that it came with.
    """
    original_path = {"name": "x-envoy-original-path", "present_match": True, "invert_match": True}
    content_type = {"name": "content-type", "string_match": {"prefix": "application/grpc"}}
    return _all({"header_filter": {"header": content_type}}, {"header_filter": {"header": original_path}})


def _error(status: int, code: str, message: str, *, retry_after: bool = False) -> Json:
    return _mapper(_status("EQ", status), code, message, retry_after=retry_after)


def _unavailable(status: int) -> Json:
    return _error(status, "UNAVAILABLE", "The service is not available; try again.", retry_after=True)


def _mapper(condition: Json, code: str, message: str, *, retry_after: bool = False) -> Json:
    mapper: Json = {"filter": condition, "body_format_override": _shape(code, message)}
    if retry_after:
        mapper["headers_to_add"] = [{"header": {"key": "retry-after", "value": "1"}, "append_action": "ADD_IF_ABSENT"}]
    return mapper


def _shape(code: str, message: str) -> Json:
    error = {"code": code, "message": message, "request_id": _REQUEST_ID}
    return {"json_format": {"error": error}, "content_type": "application/json"}


def _status(operator: str, status: int) -> Json:
    # Envoy wants a runtime key beside the value; nobody sets it.
    value = {"default_value": status, "runtime_key": f"gateway.status_{operator.lower()}_{status}"}
    return {"status_code_filter": {"comparison": {"op": operator, "value": value}}}


def _all(*conditions: Json) -> Json:
    return {"and_filter": {"filters": list(conditions)}}
