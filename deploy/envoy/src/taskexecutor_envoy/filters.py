"""The HTTP filters, in the order in which a request meets them; an answer meets them in reverse."""

from __future__ import annotations

import base64
from importlib import resources

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from taskexecutor_envoy.options import GatewayOptions, Json
from taskexecutor_envoy.route_table import READINESS_PATH
from taskexecutor_envoy.routes import public_services
from taskexecutor_envoy.upstream import CLUSTER

_TYPE = "type.googleapis.com/envoy.extensions.filters.http."


def http_filters(options: GatewayOptions) -> list[Json]:
    """The chain. Lua stands before the transcoder, so that it sees REST requests raw and REST answers finished."""
    return [_lua(), _readiness(), *_cors(options), _body_limit(options), _grpc_web(), _transcoder(options), _router()]


def _lua() -> Json:
    source = resources.files("taskexecutor_envoy").joinpath("reply.lua").read_text(encoding="utf-8")
    # The script changes no header that routing looks at: routes need not be looked up again.
    return _filter("lua", "lua.v3.Lua", {"default_source_code": {"inline_string": source}, "clear_route_cache": False})


def _readiness() -> Json:
    return _filter(
        "health_check",
        "health_check.v3.HealthCheck",
        {
            "pass_through_mode": False,
            "headers": [{"name": ":path", "string_match": {"safe_regex": {"regex": f"{READINESS_PATH}(\\?.*)?"}}}],
            # Any replica that is well will do: 1 %, rounded up.
            "cluster_min_healthy_percentages": {CLUSTER: {"value": 1}},
        },
    )


def _cors(options: GatewayOptions) -> list[Json]:
    return [_filter("cors", "cors.v3.Cors", {})] if options.cors_origins else []


def _body_limit(options: GatewayOptions) -> Json:
    """Off but for REST routes: it waits for the whole body, which a stream has not.

    The transcoder's own limit does not count what it has converted already, so that it never stops a long body.
    """
    limit = _filter("buffer", "buffer.v3.Buffer", {"max_request_bytes": options.max_body_bytes})
    return {**limit, "disabled": True}


def _grpc_web() -> Json:
    return _filter("grpc_web", "grpc_web.v3.GrpcWeb", {})


def _transcoder(options: GatewayOptions) -> Json:
    return _filter(
        "grpc_json_transcoder",
        "grpc_json_transcoder.v3.GrpcJsonTranscoder",
        {
            **_descriptor(options),
            # The route table decides what is served: by itself the transcoder would take `/jobs/` for `/jobs`.
            "match_incoming_request_route": True,
            "services": public_services(FileDescriptorSet.FromString(options.descriptor)),
            "print_options": {"preserve_proto_field_names": True, "always_print_primitive_fields": True},
            # Without it an error after the headers has no body, and then Lua cannot give it one.
            "convert_grpc_status": True,
            "query_param_unescape_plus": True,
            "max_response_body_size": options.max_answer_bytes,
            "request_validation_options": {
                "reject_unknown_query_parameters": True,
                "reject_binding_body_field_collisions": True,
            },
        },
    )


def _descriptor(options: GatewayOptions) -> Json:
    if options.descriptor_path:
        return {"proto_descriptor": options.descriptor_path}
    return {"proto_descriptor_bin": base64.b64encode(options.descriptor).decode("ascii")}


def _router() -> Json:
    return _filter("router", "router.v3.Router", {"suppress_envoy_headers": True})


def _filter(name: str, type_name: str, settings: Json) -> Json:
    return {"name": f"envoy.filters.http.{name}", "typed_config": {"@type": _TYPE + type_name, **settings}}
