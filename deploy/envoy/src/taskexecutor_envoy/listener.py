"""The one listener, for REST, gRPC and gRPC-Web alike."""

from __future__ import annotations

from taskexecutor_envoy.filters import http_filters
from taskexecutor_envoy.local_replies import local_replies
from taskexecutor_envoy.options import GatewayOptions, Json, duration, socket_address, split_host_port
from taskexecutor_envoy.route_table import route_table
from taskexecutor_envoy.tls import towards_callers

_TYPE = "type.googleapis.com/envoy.extensions."


def listener(options: GatewayOptions) -> Json:
    """Listens on the address of the options."""
    manager = {"name": "envoy.filters.network.http_connection_manager", "typed_config": _connection_manager(options)}
    return {
        "name": "public",
        "address": socket_address(*split_host_port(options.listen)),
        "filter_chains": [{"filters": [manager], **towards_callers(options)}],
    }


def _connection_manager(options: GatewayOptions) -> Json:
    return {
        "@type": _TYPE + "filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "public",
        **_patience(options),
        **_paths(),
        **_request_ids(),
        "use_remote_address": True,
        # Callers need not know what stands in front of the api.
        "server_header_transformation": "PASS_THROUGH",
        # A caller's mistake (400) does not cost the connection.
        "stream_error_on_invalid_http_message": True,
        "http2_protocol_options": {"max_concurrent_streams": 1024},
        "local_reply_config": local_replies(options),
        "route_config": route_table(options),
        "http_filters": http_filters(options),
    }


def _patience(options: GatewayOptions) -> Json:
    """How long a slow caller may hold a connection or a stream."""
    return {
        "request_headers_timeout": "10s",
        "request_timeout": duration(options.request_timeout_s),
        "stream_idle_timeout": duration(max(300.0, 2 * options.request_timeout_s)),
        "common_http_protocol_options": {"idle_timeout": "300s"},
    }


def _paths() -> Json:
    """`%2F` stays inside its segment; `//` is not `/`, so that an empty id is no route rather than another route."""
    return {"normalize_path": True, "merge_slashes": False, "path_with_escaped_slashes_action": "KEEP_UNCHANGED"}


def _request_ids() -> Json:
    """Every request gets an id before anything looks at it; reply.lua settles whether the caller's own is kept."""
    mutation = "http.early_header_mutation.header_mutation.v3.HeaderMutation"
    return {
        "generate_request_id": False,
        "preserve_external_request_id": True,
        "always_set_request_id_in_response": True,
        "request_id_extension": {
            "typed_config": {"@type": _TYPE + "request_id.uuid.v3.UuidRequestIdConfig", "pack_trace_reason": False}
        },
        "early_header_mutation_extensions": [
            {
                "name": "request_id",
                "typed_config": {
                    "@type": _TYPE + mutation,
                    "mutations": [
                        # No caller may steer Envoy (retries, timeouts, whether it counts as REST) by its own headers.
                        {"remove_on_match": {"key_matcher": {"prefix": "x-envoy-"}}},
                        _set("x-fresh-request-id", "OVERWRITE_IF_EXISTS_OR_ADD"),
                        _set("x-request-id", "ADD_IF_ABSENT"),
                    ],
                },
            }
        ],
    }


def _set(header: str, action: str) -> Json:
    return {"append": {"header": {"key": header, "value": "req_%UNIQUE_ID%"}, "append_action": action}}
