"""Which request goes where: the first route that matches decides."""

from __future__ import annotations

import re
from collections.abc import Iterator

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from taskexecutor_envoy.options import GatewayOptions, Json, duration
from taskexecutor_envoy.routes import RestRoute, public_services, rest_routes
from taskexecutor_envoy.upstream import CLUSTER, RETRY_POLICY

LIVENESS_PATH = "/healthz"
READINESS_PATH = "/readyz"

# Served by the api beside its own services, for native gRPC tools; their calls may stay open for long.
_STREAMING_PREFIXES = ("/grpc.health.v1.Health/", "/grpc.reflection.")
_STREAM_IDLE_TIMEOUT = "3600s"

_GRPC_CALL = {"name": "content-type", "string_match": {"prefix": "application/grpc"}}

# Turns on the limit that filters.py sets.
_BODY_LIMIT: Json = {
    "typed_per_filter_config": {
        "envoy.filters.http.buffer": {
            "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig",
            "config": {},
        }
    }
}

_CORS_REQUEST_HEADERS = "authorization,content-type,grpc-timeout,x-grpc-web,x-request-id,x-user-agent"
_CORS_RESPONSE_HEADERS = "grpc-message,grpc-status,grpc-status-details-bin,retry-after,x-request-id"


def route_table(options: GatewayOptions) -> Json:
    """The routes of the one virtual host."""
    descriptors = FileDescriptorSet.FromString(options.descriptor)
    rest = rest_routes(descriptors)
    services = public_services(descriptors)
    host: Json = {"name": "public", "domains": ["*"], "routes": list(_routes(options, rest, services))}
    if options.cors_origins:
        host["typed_per_filter_config"] = {"envoy.filters.http.cors": _cors_policy(options, rest)}
    return {"name": "public", "virtual_hosts": [host]}


def _routes(options: GatewayOptions, rest: list[RestRoute], services: list[str]) -> Iterator[Json]:
    unary = _to_api(options)
    yield {"match": {"path": LIVENESS_PATH}, **_answer(200)}
    if options.cors_origins:
        yield {"match": _preflight(options.cors_origins), **unary}
    for service in services:
        # The router sees a REST call twice: as it came, and as the gRPC call that it was transcoded to.
        yield {"match": {"prefix": f"/{service}/", "headers": [_GRPC_CALL]}, **unary}
    for prefix in _STREAMING_PREFIXES:
        yield {"match": {"prefix": prefix, "headers": [_GRPC_CALL]}, **_stream_to_api()}
    for route in rest:
        yield {"match": {**_path(route), "headers": [_method_in(route.methods)]}, **unary, **_BODY_LIMIT}
        yield {"match": _path(route), **_answer(405), **_response_header("allow", ", ".join(route.methods))}
    for service in services:
        yield {"match": {"prefix": f"/{service}/"}, **_answer(415)}
    yield {"match": {"prefix": "/"}, **_answer(404)}


def _to_api(options: GatewayOptions) -> Json:
    timeout = duration(options.request_timeout_s)
    return {"route": {"cluster": CLUSTER, "timeout": timeout, "retry_policy": RETRY_POLICY}}


def _stream_to_api() -> Json:
    return {"route": {"cluster": CLUSTER, "timeout": "0s", "idle_timeout": _STREAM_IDLE_TIMEOUT}}


def _answer(status: int) -> Json:
    """Envoy answers by itself; local_replies.py gives the body."""
    return {"direct_response": {"status": status}}


def _response_header(name: str, value: str) -> Json:
    return {"response_headers_to_add": [{"header": {"key": name, "value": value}}]}


def _path(route: RestRoute) -> Json:
    literal = route.template.literal
    return {"path": literal} if literal else {"safe_regex": {"regex": route.template.regex}}


def _method_in(methods: tuple[str, ...]) -> Json:
    return {"name": ":method", "string_match": {"safe_regex": {"regex": "|".join(methods)}}}


def _preflight(origins: tuple[str, ...]) -> Json:
    """Matches what the CORS filter answers; from other origins it must not reach the api, which knows no OPTIONS."""
    allowed = "|".join(re.escape(origin) for origin in origins)
    return {
        "prefix": "/",
        "headers": [
            {"name": ":method", "string_match": {"exact": "OPTIONS"}},
            {"name": "origin", "string_match": {"safe_regex": {"regex": allowed}}},
            {"name": "access-control-request-method", "present_match": True},
        ],
    }


def _cors_policy(options: GatewayOptions, rest: list[RestRoute]) -> Json:
    return {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.cors.v3.CorsPolicy",
        "allow_origin_string_match": [{"exact": origin} for origin in options.cors_origins],
        "allow_methods": ", ".join(sorted({method for route in rest for method in route.methods})),
        "allow_headers": _CORS_REQUEST_HEADERS,
        "expose_headers": _CORS_RESPONSE_HEADERS,
        "max_age": "600",
    }
