"""A server that goes away: who is inside is served to the end, and nobody new comes in."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from taskexecutor_common.rpc.listeners import stop_listening
from taskexecutor_common.rpc.server import RpcServer

PATIENCE_SEC = 5.0


@pytest.fixture(params=["unix:{folder}/rpc.sock", "127.0.0.1:0", "[::]:0"])
async def address(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    with tempfile.TemporaryDirectory(prefix="te-rpc-") as folder:
        yield request.param.format(folder=Path(folder))


async def ask(channel: grpc.aio.Channel) -> int:
    """The server's health."""
    stub = health_pb2_grpc.HealthStub(channel)
    return int((await stub.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE_SEC)).status)


async def test_a_closed_door_refuses_new_connections_and_keeps_the_old(address: str) -> None:
    server = RpcServer(address, grace_sec=0.0)
    await server.start()
    target = address if server.port is None else f"localhost:{server.port}"
    try:
        async with (
            grpc.aio.insecure_channel(target) as early,
            grpc.aio.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)]) as late,
        ):
            assert await ask(early) == health_pb2.HealthCheckResponse.SERVING
            stop_listening(address, server.port)
            assert await ask(early) == health_pb2.HealthCheckResponse.SERVING
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await ask(late)
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    finally:
        await server.stop()
