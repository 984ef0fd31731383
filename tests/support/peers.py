"""Who may knock at an internal port: services of the system, and others."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from taskexecutor.internal.v1 import dispatcher_pb2, dispatcher_pb2_grpc
from taskexecutor_common.rpc.server import RpcServer
from taskexecutor_common.rpc.tls import CHANNEL_OPTIONS, Tls

PATIENCE_SEC = 10.0


@dataclass(frozen=True)
class Instance:
    """A live instance, as the table of heartbeats tells it."""

    address: str | None


@dataclass
class Dispatcher(dispatcher_pb2_grpc.DispatcherServiceServicer):
    """Keeps what it is told, and by whom."""

    port: int = 0
    woken: asyncio.Queue[uuid.UUID] = field(default_factory=asyncio.Queue)
    callers: list[bytes] = field(default_factory=list)
    """The certificate of each call, in PEM."""
    calls: int = 0

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    async def find(self) -> list[Instance]:
        """What a caller finds in the database."""
        return [Instance(self.address)]

    async def next_wake(self) -> uuid.UUID:
        """The next queue that it is told of."""
        async with asyncio.timeout(PATIENCE_SEC):
            return await self.woken.get()

    async def Wake(self, requests: Any, context: Any) -> Any:
        """See the proto."""
        self.calls += 1
        self.callers += context.auth_context().get("x509_pem_cert", [])
        async for request in requests:
            for queue in request.queues:
                self.woken.put_nowait(uuid.UUID(bytes=queue))
        return dispatcher_pb2.DispatcherServiceWakeResponse()


@asynccontextmanager
async def listening(tls: Tls | None, *, port: int = 0) -> AsyncIterator[Dispatcher]:
    """A dispatcher on a port of 127.0.0.1, a free one unless it is said."""
    dispatcher = Dispatcher()
    server = RpcServer(f"127.0.0.1:{port}", grace_sec=0, tls=tls)
    dispatcher_pb2_grpc.add_DispatcherServiceServicer_to_server(dispatcher, server.server)
    await server.start()
    assert server.port is not None
    dispatcher.port = server.port
    try:
        yield dispatcher
    finally:
        await server.stop()


def channel_of(address: str, credentials: grpc.ChannelCredentials | None) -> grpc.aio.Channel:
    """A caller's channel; None speaks clear text."""
    if credentials is None:
        return grpc.aio.insecure_channel(address)
    return grpc.aio.secure_channel(address, credentials, options=CHANNEL_OPTIONS)


async def refusal_of(call: Callable[[], Any]) -> grpc.StatusCode:
    """The status with which a call fails."""
    try:
        await call()
    except grpc.aio.AioRpcError as error:
        return error.code()
    raise AssertionError("the call went through")
