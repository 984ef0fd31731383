"""The gateway's own ceiling: the same Envoy, with the same transcoding, in front of an api that answers at once.

A program: `python -m bench.ceilings.envoy_echo SOCKET` serves CreateJob on a unix socket, checks nothing, stores nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from bench.arena import Arena
from bench.children import child
from bench.waiting import until
from taskexecutor.v1 import job_pb2, job_pb2_grpc
from taskexecutor_local import readiness
from taskexecutor_local.gateway import Gateway
from taskexecutor_local.ports import LOOPBACK, free_ports

START_SEC = 15.0


class Echo(job_pb2_grpc.JobServiceServicer):
    """Answers as the api does: a whole job, and the status for REST."""

    async def CreateJob(self, request: job_pb2.CreateJobRequest, context: Any) -> job_pb2.Job:
        """A job made of the request."""
        job = job_pb2.Job(
            job_id="job_" + "0" * 32,
            endpoint=request.endpoint,
            endpoint_type="HTTP",
            trigger=request.trigger,
            status=job_pb2.Job.ACTIVE,
            version=1,
            idempotency_key=request.idempotency_key,
            input=request.input,
            run_at=request.run_at,
            created_at=request.run_at,
        )
        await context.send_initial_metadata((("x-http-code", "201"),))
        return job


async def serve(socket: str) -> None:
    """Serves until SIGTERM."""
    server = grpc.aio.server()
    job_pb2_grpc.add_JobServiceServicer_to_server(Echo(), server)  # type: ignore[abstract]  # one method is all it has
    healthy = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    await healthy.set("", health_pb2.HealthCheckResponse.SERVING)
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()
    await server.stop(0)


@contextlib.asynccontextmanager
async def running_echo(arena: Arena) -> AsyncIterator[str]:
    """Envoy and its echo inside the block. Yields the gateway's URL."""
    folder = arena.folder
    socket = str(folder / "echo.sock")
    listen = f"{LOOPBACK}:{free_ports(1)[0]}"
    gateway = Gateway(listen, f"unix:{socket}", folder / "echo-envoy.json", folder / "echo-admin.sock")
    async with (
        child("echo", [sys.executable, "-m", __name__, socket], arena.log("echo"), os.environ),
        child("echo's envoy", gateway.command(), arena.log("echo-envoy"), os.environ),
    ):
        ready = readiness.http_ok(f"http://{listen}/readyz")
        await until(ready, START_SEC, "Envoy and its echo")
        yield f"http://{listen}"


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
