"""The api as Envoy sees it: where it is, whether it is well, and when a call may be tried again."""

from __future__ import annotations

from taskexecutor_envoy.options import GatewayOptions, Json, is_ip, pipe_address, socket_address, split_host_port
from taskexecutor_envoy.tls import towards_api

CLUSTER = "api"

_HTTP2 = {
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": {}},
    }
}

# A second tells a dead replica soon enough; one that is back is found out at once.
_HEALTH_CHECK = {
    "timeout": "1s",
    "interval": "1s",
    "no_traffic_interval": "1s",
    "unhealthy_interval": "0.1s",
    "no_traffic_healthy_interval": "1s",
    "unhealthy_threshold": 2,
    "healthy_threshold": 1,
    "grpc_health_check": {},
}

# `max_retries` is 3 unless said otherwise, which would fail most callers in the moment that retries are for.
_LIMITS = {"max_connections": 1024, "max_pending_requests": 4096, "max_requests": 4096, "max_retries": 4096}

# Only what the api has not begun is sent again: the connection was refused, or lost before the request went out, or the
# api was going away. `cancelled` is the last of these: a gRPC server that stops answers CANCELLED to calls that it has not
# handed to the application (what it cuts off in the middle ends as UNAVAILABLE), and the application never says CANCELLED.
# Each wait is random, up to its interval. Many short ones add up to about four seconds and hardly ever to less than
# two, enough for a restart (1.5 on a small machine); few long ones may by chance be over at once.
RETRY_POLICY: Json = {
    "retry_on": "connect-failure,refused-stream,reset-before-request,cancelled",
    "num_retries": 16,
    "retry_back_off": {"base_interval": "0.1s", "max_interval": "0.5s"},
    "retry_host_predicate": [
        {
            "name": "envoy.retry_host_predicates.previous_hosts",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"
            },
        }
    ],
    "host_selection_retry_max_attempts": 3,
}


def cluster(options: GatewayOptions) -> Json:
    """The cluster of api replicas.

    With fewer than half of the replicas well, Envoy spreads calls over all of them again (its panic threshold): a
    single api that was restarted is therefore used the moment that it listens.
    """
    return {
        "name": CLUSTER,
        **_discovery(options.upstream),
        "connect_timeout": "1s",
        "lb_policy": "LEAST_REQUEST",
        "typed_extension_protocol_options": _HTTP2,
        "health_checks": [_HEALTH_CHECK],
        "circuit_breakers": {"thresholds": [_LIMITS]},
        **towards_api(options),
    }


def _discovery(upstream: str) -> Json:
    if upstream.startswith("unix:"):
        return {"type": "STATIC", **_assignment(pipe_address(upstream.removeprefix("unix:")))}
    host, port = split_host_port(upstream)
    found = _assignment(socket_address(host, port))
    if is_ip(host):
        return {"type": "STATIC", **found}
    return {
        "type": "STRICT_DNS",
        "dns_lookup_family": "V4_PREFERRED",
        "dns_refresh_rate": "2s",
        "dns_failure_refresh_rate": {"base_interval": "0.5s", "max_interval": "2s"},
        # A replica that left the name is going away; that it still answers is its grace period.
        "ignore_health_on_host_removal": True,
        **found,
    }


def _assignment(address: Json) -> Json:
    endpoints = [{"lb_endpoints": [{"endpoint": {"address": address}}]}]
    return {"load_assignment": {"cluster_name": CLUSTER, "endpoints": endpoints}}
