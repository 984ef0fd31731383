"""The programs of the system: what runs each of them, with which environment, and how to tell that it is ready."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import pathlib
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence

from pydantic import AliasChoices

from taskexecutor_common.config.settings import ServiceSettings
from taskexecutor_local import readiness, tether
from taskexecutor_local.data_folder import DataFolder
from taskexecutor_local.gateway import Gateway
from taskexecutor_local.ports import LOOPBACK, free_ports
from taskexecutor_local.postgres import SOCKET_PATH_LIMIT, EmbeddedPostgres
from taskexecutor_local.process import Program

API_SOCKET = "api.sock"
ADMIN_SOCKET = "envoy-admin.sock"

_TO_WRITE_SEC = 15.0
"""What a service may need after TE_SHUTDOWN_TIMEOUT_SEC, to write its results and close what it holds."""


@dataclasses.dataclass(frozen=True)
class Addresses:
    """Where everything listens, chosen anew at each start."""

    http_port: int
    sockets: pathlib.Path  # folder of unix sockets
    targets: Mapping[str, str]  # service process -> gRPC target, `host:port` or `unix:path`
    metrics: Mapping[str, str]  # service process -> `host:port` of /metrics

    @property
    def url(self) -> str:
        """The gateway, for REST, gRPC and gRPC-Web."""
        return f"http://{LOOPBACK}:{self.http_port}"


def service_names(dispatchers: int) -> tuple[str, ...]:
    """The processes of our own services: `api`, `scheduler`, `dispatcher`, `dispatcher-2` and so on."""
    return ("api", "scheduler", "dispatcher", *(f"dispatcher-{number}" for number in range(2, dispatchers + 1)))


def choose_addresses(folder: DataFolder, http_port: int, services: Sequence[str]) -> Addresses:
    """Free ports; the api, which only Envoy calls, gets a unix socket, which is faster."""
    gateway_port, *ports = free_ports(1 + 2 * len(services))
    listening, metrics = ports[: len(services)], ports[len(services) :]
    sockets = socket_folder(folder.path)
    targets = {name: f"{LOOPBACK}:{port}" for name, port in zip(services, listening, strict=True)}
    return Addresses(
        http_port=http_port or gateway_port,
        sockets=sockets,
        targets=targets | {"api": f"unix:{sockets / API_SOCKET}"},
        metrics={name: f"{LOOPBACK}:{port}" for name, port in zip(services, metrics, strict=True)},
    )


def socket_folder(wanted: pathlib.Path) -> pathlib.Path:
    """`wanted`, or a new folder with a short path where a socket in `wanted` could not be bound."""
    longest = max(len(os.fsencode(wanted / name)) for name in (API_SOCKET, ADMIN_SOCKET))
    return wanted if longest <= SOCKET_PATH_LIMIT else pathlib.Path(tempfile.mkdtemp(prefix="taskexecutor-"))


def script(name: str, *arguments: str) -> list[str]:
    """Command line of a console script beside the running interpreter, tied to our life."""
    path = pathlib.Path(sys.executable).parent / name
    # SIGKILL: we were killed ourselves then, and whoever starts next must find the ports free.
    return tether.command_line([str(path), *arguments], death_signal=signal.SIGKILL)


def postgres(server: EmbeddedPostgres, folder: DataFolder, environment: Mapping[str, str]) -> Program:
    """The embedded database. SIGINT is its fast shutdown; SIGTERM would wait for idle connections."""

    async def answers() -> bool:
        return await asyncio.to_thread(server.answers)

    return Program(
        name="postgres",
        command=server.command(),
        environment=environment,
        log_path=folder.log("postgres"),
        is_ready=answers,
        address=f"{LOOPBACK}:{server.port}",
        stop_signal=signal.SIGINT,
    )


def service(name: str, addresses: Addresses, folder: DataFolder, environment: Mapping[str, str]) -> Program:
    """A process of one of our own services, by its name among `service_names`."""
    target = addresses.targets[name]
    kind, _, _ = name.partition("-")
    # Peers are told the loopback address: the host's name, which is the default, may mean another interface.
    listen = {"TE_LISTEN_ADDR"} if name == "api" else {"TE_INTERNAL_LISTEN_ADDR", "TE_ADVERTISE_ADDR"}
    return Program(
        name=name,
        command=script(f"taskexecutor-{kind}"),
        environment={**environment, **dict.fromkeys(listen, target), "TE_METRICS_ADDR": addresses.metrics[name]},
        log_path=folder.log(name),
        is_ready=readiness.grpc_health(target),
        address=f"{target}, metrics {addresses.metrics[name]}",
        stop_deadline_sec=_shutdown_timeout_sec(environment) + _TO_WRITE_SEC,
    )


def _shutdown_timeout_sec(environment: Mapping[str, str]) -> float:
    setting = ServiceSettings.model_fields["shutdown_timeout_sec"]
    assert isinstance(setting.validation_alias, AliasChoices)
    said = [environment[str(name)] for name in setting.validation_alias.choices if environment.get(str(name))]
    return float(said[0] if said else setting.default)


def envoy(addresses: Addresses, folder: DataFolder, environment: Mapping[str, str]) -> Program:
    """The gateway; before it is stopped, what it is still answering gets its time."""
    listen = f"{LOOPBACK}:{addresses.http_port}"
    gateway = Gateway(
        listen=listen,
        upstream=addresses.targets["api"],
        config_path=folder.path / "envoy.json",
        admin_socket=addresses.sockets / ADMIN_SOCKET,
    )
    return Program(
        name="envoy",
        command=tether.command_line(gateway.command(), death_signal=signal.SIGKILL),
        environment=environment,
        log_path=folder.log("envoy"),
        is_ready=readiness.http_ok(f"{addresses.url}/healthz"),
        address=listen,
        before_stop=gateway.drain,
        stop_deadline_sec=5,
    )
