"""A real gRPC server of the generated services whose methods do what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio
from grpc_reflection.v1alpha import reflection

import taskexecutor.internal.v1
import taskexecutor.v1

# A real api has the internal services on another port; here they are within reach, so that only the gateway can keep
# them away.
MODULES = [
    import_module(f"{package.__name__}.{module.name}")
    for package in (taskexecutor.v1, taskexecutor.internal.v1)
    for module in iter_modules(package.__path__)
    if module.name.endswith("_pb2_grpc")
]

Script = Callable[[Any, grpc.aio.ServicerContext], Awaitable[Any]]


@dataclass(frozen=True)
class Call:
    """What the server saw of one call."""

    method: str
    request: Any
    metadata: dict[str, Any]


@dataclass
class ScriptedApi:
    """Serves on `address` (`unix:PATH` or `host:port`); methods without a script answer UNIMPLEMENTED."""

    address: str
    scripts: dict[str, Script] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    leaving: bool = False

    def on(self, method: str, script: Script) -> None:
        """Lets `method` (its short name) do what `script` says."""
        self.scripts[method] = script

    def reset(self) -> None:
        """Forgets scripts and calls."""
        self.scripts.clear()
        self.calls.clear()

    async def start(self) -> None:
        """Starts a new server on the same address, reported as healthy."""
        self.leaving = False
        self.server = grpc.aio.server()
        for module in MODULES:
            self._add(module)
        self.health = health_aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self.health, self.server)
        reflection.enable_server_reflection(["taskexecutor.v1.JobService", reflection.SERVICE_NAME], self.server)
        assert self.server.add_insecure_port(self.address) is not None
        await self.server.start()
        await self.set_healthy(True)

    async def set_healthy(self, healthy: bool) -> None:
        """What grpc.health.v1 answers from now on."""
        status = health_pb2.HealthCheckResponse
        await self.health.set("", status.SERVING if healthy else status.NOT_SERVING)

    async def leave(self) -> None:
        """Ends the server as the api does: first it turns new calls away, then it lets those in flight finish.

        Turned away, Envoy's calls come at the pace of its back-off; without that, one of about thirty restarts under full
        load meets a call that grpc.aio has accepted and then forgets.
        """
        self.leaving = True
        await asyncio.sleep(0.1)
        await self.stop()

    async def stop(self, grace: float | None = 5.0) -> None:
        """Ends the server; calls in flight get `grace` seconds, None cuts them off."""
        await self.server.stop(grace)

    def _add(self, module: Any) -> None:
        """Registers each servicer of a generated module, every method of it following its script."""
        for name in [name for name in vars(module) if name.endswith("Servicer") and not name.startswith("add_")]:
            base = getattr(module, name)
            methods = {method: self._follow(method) for method in vars(base) if not method.startswith("_")}
            getattr(module, f"add_{name}_to_server")(type(name, (base,), methods)(), self.server)

    def _follow(self, method: str) -> Script:
        async def follow(_: Any, request: Any, context: grpc.aio.ServicerContext) -> Any:
            if self.leaving:
                await context.abort(grpc.StatusCode.CANCELLED, "going away")
            self.calls.append(Call(method, request, dict(context.invocation_metadata() or ())))
            if method not in self.scripts:
                await context.abort(grpc.StatusCode.UNIMPLEMENTED, "no script")
            return await self.scripts[method](request, context)

        return follow


def answers(message: Any, *metadata: tuple[str, str]) -> Script:
    """A script that sends `metadata` ahead, if any, and answers `message`."""

    async def script(_: Any, context: grpc.aio.ServicerContext) -> Any:
        if metadata:
            await context.send_initial_metadata(metadata)
        return message

    return script


def fails(code: grpc.StatusCode, message: str = "", *trailing: tuple[str, str | bytes]) -> Script:
    """A script that ends with `code` and the trailing metadata."""

    async def script(_: Any, context: grpc.aio.ServicerContext) -> Any:
        await context.abort(code, message, trailing)

    return script
