"""The gRPC server of the services, with methods that do what a test says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import grpc
import grpc.aio

import taskexecutor.internal.v1
import taskexecutor.v1
from taskexecutor_common.rpc.server import RpcServer

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
    """Serves on `address` (`unix:PATH` or `host:port`; port 0 becomes a free one that stays).

    Methods without a script answer UNIMPLEMENTED.
    """

    address: str
    scripts: dict[str, Script] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)

    def on(self, method: str, script: Script) -> None:
        """Lets `method` (its short name) do what `script` says."""
        self.scripts[method] = script

    def reset(self) -> None:
        """Forgets scripts and calls."""
        self.scripts.clear()
        self.calls.clear()

    async def start(self) -> None:
        """Starts a new server on the same address, reported as healthy."""
        self.rpc = RpcServer(self.address, grace_sec=5.0)
        for module in MODULES:
            self._add(module)
        self.rpc.announce("taskexecutor.v1.JobService")
        await self.rpc.start()
        if self.rpc.port is not None:
            self.address = f"{self.address.rpartition(':')[0]}:{self.rpc.port}"

    async def set_healthy(self, healthy: bool) -> None:
        """What grpc.health.v1 answers from now on."""
        await self.rpc.set_serving(healthy)

    async def leave(self) -> None:
        """Ends the server in good order."""
        await self.rpc.stop()

    async def die(self) -> None:
        """Ends the server at once; calls in flight are cut off."""
        await self.rpc.server.stop(None)

    def _add(self, module: Any) -> None:
        """Registers each servicer of a generated module, every method of it following its script."""
        for name in [name for name in vars(module) if name.endswith("Servicer") and not name.startswith("add_")]:
            base = getattr(module, name)
            methods = {method: self._follow(method) for method in vars(base) if not method.startswith("_")}
            getattr(module, f"add_{name}_to_server")(type(name, (base,), methods)(), self.rpc.server)

    def _follow(self, method: str) -> Script:
        async def follow(_: Any, request: Any, context: grpc.aio.ServicerContext) -> Any:
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
