#!/usr/bin/env python
"""`grpc-health HOST:PORT`, for health checks of containers: status 0 when the gRPC server there says SERVING, 1 otherwise.

In the environment of a service that speaks TLS (TE_TLS_*) it speaks TLS, too, with the service's own certificate.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from taskexecutor_common.config.tls_files import PEER_NAME

TIMEOUT_SEC = 2.0
# No proxy: the server is in the same container, whatever the environment says.
OPTIONS = [("grpc.enable_http_proxy", 0), ("grpc.ssl_target_name_override", PEER_NAME)]


def channel_to(address: str) -> grpc.Channel:
    """A channel that speaks what the service in this environment speaks."""
    # Read here and not by the service's settings: loading those takes longer than all else, every few seconds.
    names = [os.environ.get(f"TE_TLS_{part}_FILE", "") for part in ("CA", "KEY", "CERT")]  # noqa: TID251
    if address.startswith("unix:") or not all(names):
        return grpc.insecure_channel(address, options=OPTIONS)
    files = [Path(name).read_bytes() for name in names]
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(*files), options=OPTIONS)


def main() -> int:
    """Entry point; says on standard error what is wrong."""
    if len(sys.argv) != 2:
        print("usage: grpc-health HOST:PORT", file=sys.stderr)
        return 2
    with channel_to(sys.argv[1]) as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_SEC)
        except grpc.RpcError as error:
            print(f"{sys.argv[1]}: {error.code().name}", file=sys.stderr)
            return 1
    if answer.status != health_pb2.HealthCheckResponse.SERVING:
        print(f"{sys.argv[1]}: not serving", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
