"""A server that goes away: who is inside is served to the end, and nobody new comes in."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from taskexecutor.v1 import job_pb2, job_pb2_grpc
from taskexecutor_common.rpc.listeners import stop_listening
from taskexecutor_common.rpc.server import RpcServer

PATIENCE_SEC = 5.0
FOR_EVER_SEC = 600.0
LONG_AFTER_THE_DOOR_CLOSED_SEC = 1.5


@pytest.fixture(params=["unix:{folder}/rpc.sock", "127.0.0.1:0", "[::]:0"])
async def address(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    with tempfile.TemporaryDirectory(prefix="te-rpc-") as folder:
        yield request.param.format(folder=Path(folder))


def connected_to(server: RpcServer, address: str, *options: tuple[str, int]) -> grpc.aio.Channel:
    """A channel to a server that was started on `address`."""
    target = address if server.port is None else f"localhost:{server.port}"
    return grpc.aio.insecure_channel(target, options)


async def ask(channel: grpc.aio.Channel) -> int:
    """The server's health."""
    stub = health_pb2_grpc.HealthStub(channel)
    return int((await stub.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE_SEC)).status)


async def test_a_closed_door_refuses_new_connections_and_keeps_the_old(address: str) -> None:
    server = RpcServer(address, grace_sec=0.0)
    await server.start()
    try:
        async with (
            connected_to(server, address) as early,
            connected_to(server, address, ("grpc.use_local_subchannel_pool", 1)) as late,
        ):
            assert await ask(early) == health_pb2.HealthCheckResponse.SERVING
            stop_listening(address, server.port)
            assert await ask(early) == health_pb2.HealthCheckResponse.SERVING
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await ask(late)
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    finally:
        await server.stop()


class SlowJobs(job_pb2_grpc.JobServiceServicer):
    """Answers once it is told to."""

    def __init__(self) -> None:
        self.began, self.may_end = asyncio.Event(), asyncio.Event()

    async def GetJob(self, request: job_pb2.GetJobRequest, context: object) -> job_pb2.Job:
        self.began.set()
        await self.may_end.wait()
        return job_pb2.Job(job_id=request.job_id)


@asynccontextmanager
async def stopping_during_a_call(address: str) -> AsyncIterator[tuple[asyncio.Task[None], Any]]:
    """The stop of a server that has just begun to answer a call, and a stub; at the end both are over, the call answered."""
    server, jobs = RpcServer(address, grace_sec=FOR_EVER_SEC), SlowJobs()
    job_pb2_grpc.add_JobServiceServicer_to_server(jobs, server.server)
    await server.start()
    async with connected_to(server, address) as channel:
        stub = job_pb2_grpc.JobServiceStub(channel)
        asked = stub.GetJob(job_pb2.GetJobRequest(job_id="job_1"))
        await asyncio.wait_for(jobs.began.wait(), PATIENCE_SEC)
        stopping = asyncio.create_task(server.stop())
        yield stopping, stub
        jobs.may_end.set()
        assert (await asked).job_id == "job_1"
        await asyncio.wait_for(stopping, PATIENCE_SEC)


async def test_a_call_under_way_is_answered_however_long_it_takes(address: str) -> None:
    async with stopping_during_a_call(address) as (stopping, _):
        await asyncio.wait([stopping], timeout=LONG_AFTER_THE_DOOR_CLOSED_SEC)
        assert not stopping.done()


async def test_whoever_only_watches_does_not_hold_up_the_end(address: str) -> None:
    server = RpcServer(address, grace_sec=FOR_EVER_SEC)
    await server.start()
    async with connected_to(server, address) as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        await asyncio.wait_for(server.stop(), PATIENCE_SEC)


async def test_a_call_that_comes_too_late_is_told_to_go_elsewhere(address: str) -> None:
    async with stopping_during_a_call(address) as (_, stub):
        await asyncio.sleep(0)  # the door closes and calls are turned away before stop waits for anything
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.GetJob(job_pb2.GetJobRequest())
        assert refused.value.code() is grpc.StatusCode.CANCELLED
        assert dict(refused.value.trailing_metadata())["x-envoy-immediate-health-check-fail"] == "true"
