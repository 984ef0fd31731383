"""Builds and runs a gRPC server with what all of ours have: the call interceptor, health and reflection."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from taskexecutor_common.observability.logging import get_logger
from taskexecutor_common.rpc.calls import CallInterceptor
from taskexecutor_common.rpc.listeners import stop_listening
from taskexecutor_common.rpc.tls import Tls

_OPTIONS: list[tuple[str, Any]] = [
    ("grpc.so_reuseport", 0),  # a second process on the port is a mistake, not a partner
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),  # a batch of 1,000 jobs; the fields have bounds of their own
    ("grpc.max_metadata_size", 64 * 1024),
]

_TURNING_AWAY_SEC = 0.2
_FAREWELL_SEC = 1.0


class RpcServer:
    """A server on one address, as a Service. Servicers are added between construction and start.

    With `tls` a TCP port hears only callers with a certificate. A unix socket stays in clear text: it does not leave the
    machine, and the mode of its folder says who may use it.
    """

    def __init__(
        self,
        address: str,
        *,
        grace_sec: float,
        interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
        tls: Tls | None = None,
    ) -> None:
        self._address = address
        self._tls = tls
        self._grace_sec = grace_sec
        self._calls = CallInterceptor()
        self._server = grpc.aio.server(interceptors=[self._calls, *interceptors], options=_OPTIONS)
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        self._names = [health.SERVICE_NAME, reflection.SERVICE_NAME]
        self.port: int | None = None
        """The TCP port that is listened on; None before start and for unix sockets."""

    @property
    def server(self) -> grpc.aio.Server:
        """What the generated `add_..._to_server` functions take."""
        return self._server

    def announce(self, service_name: str) -> None:
        """Makes a service known to reflection and health."""
        self._names.append(service_name)

    async def start(self) -> None:
        """Listens and answers SERVING. Raises RuntimeError when the address is taken."""
        reflection.enable_server_reflection(self._names, self._server)
        self.port = self._add_port()
        await self._server.start()
        await self.set_serving(True)
        get_logger("rpc").info("listening", address=self._address, port=self.port, tls=self._tls is not None)

    def _add_port(self) -> int | None:
        if self._address.startswith("unix:"):
            self._server.add_insecure_port(self._address)
            return None
        if self._tls is None:
            return self._server.add_insecure_port(self._address)
        return self._server.add_secure_port(self._address, self._tls.server_credentials())

    async def set_serving(self, serving: bool) -> None:
        """Says whether calls are welcome; the gateway stops sending within its health check interval."""
        states = health_pb2.HealthCheckResponse
        for name in ("", *self._names):
            await self._health.set(name, states.SERVING if serving else states.NOT_SERVING)

    async def stop(self) -> None:
        """Answers NOT_SERVING, lets nobody new in, turns calls away for a moment, then closes and lets those under way end,
        within the grace period.

        In that moment the callers leave: a call that arrives while the connections close can be lost, and gRPC would wait
        for it as for one under way. So it gets no grace once all that were begun have ended.
        """
        await self._health.enter_graceful_shutdown()
        self._calls.turn_away()
        stop_listening(self._address, self.port)
        await asyncio.sleep(_TURNING_AWAY_SEC)
        closing = asyncio.create_task(self._server.stop(self._grace_sec))
        with suppress(TimeoutError):
            await asyncio.wait_for(self._calls.quiet(), self._grace_sec)
        await asyncio.wait([closing], timeout=_FAREWELL_SEC)
        await self._server.stop(None)
        await closing
