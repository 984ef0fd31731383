"""Answers whether a server is ready, by asking it what its clients ask."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

PROBE_SEC = 1.0
NO_PROXY = [("grpc.enable_http_proxy", 0)]  # this is our own machine, whatever the environment says


def grpc_health(target: str) -> Callable[[], Awaitable[bool]]:
    """A probe of the standard health service at `target` (host:port or unix:path)."""

    async def probe() -> bool:
        # A channel of its own per probe: one that failed to connect waits ever longer before it tries again.
        async with grpc.aio.insecure_channel(target, options=NO_PROXY) as channel:
            request = health_pb2.HealthCheckRequest()
            try:
                answer = await health_pb2_grpc.HealthStub(channel).Check(request, timeout=PROBE_SEC)
            except grpc.aio.AioRpcError:
                return False
            return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    return probe


def http_ok(url: str) -> Callable[[], Awaitable[bool]]:
    """A probe that wants 200 from `url`."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get() -> bool:
        try:
            with opener.open(url, timeout=PROBE_SEC) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.HTTPError):
            return False

    async def probe() -> bool:
        return await asyncio.to_thread(get)

    return probe
