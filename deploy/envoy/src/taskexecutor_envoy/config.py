"""The whole configuration of one gateway."""

from __future__ import annotations

from taskexecutor_envoy.listener import listener
from taskexecutor_envoy.options import GatewayOptions, Json, pipe_address
from taskexecutor_envoy.upstream import cluster

__all__ = ["GatewayOptions", "build_config"]


def build_config(options: GatewayOptions) -> Json:
    """The bootstrap configuration for Envoy, ready for `json.dump`; ValueError for an address that is none."""
    config: Json = {
        "node": {"id": "gateway", "cluster": "taskexecutor"},
        "static_resources": {"listeners": [listener(options)], "clusters": [cluster(options)]},
        "overload_manager": _connection_limit(options.max_connections),
    }
    if options.admin_socket:
        config["admin"] = {"address": pipe_address(options.admin_socket, mode=0o600)}
    return config


def _connection_limit(connections: int) -> Json:
    monitor = "envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig"
    return {
        "resource_monitors": [
            {
                "name": "envoy.resource_monitors.global_downstream_max_connections",
                "typed_config": {
                    "@type": f"type.googleapis.com/{monitor}",
                    "max_active_downstream_connections": connections,
                },
            }
        ]
    }
