#!/usr/bin/env python
"""`grpc-health HOST:PORT`, for health checks of containers: status 0 when the gRPC server there says SERVING, 1 otherwise."""

from __future__ import annotations

import sys

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

TIMEOUT_SEC = 2.0


def main() -> int:
    """Entry point; says on standard error what is wrong."""
    if len(sys.argv) != 2:
        print("usage: grpc-health HOST:PORT", file=sys.stderr)
        return 2
    # No proxy: the server is in the same container, whatever the environment says.
    with grpc.insecure_channel(sys.argv[1], options=[("grpc.enable_http_proxy", 0)]) as channel:
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
