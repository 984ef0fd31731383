"""A whole system of real processes, with a link that can fail between any two of them.

    client ── Envoy ══ api ══ PostgreSQL        ══ a Link: cut, reset, stall, slow, mend
                        ║  ╚═ scheduler ══ PostgreSQL
                        ╚════ dispatcher ══ PostgreSQL, receivers

Processes that die are started again, as any supervisor would; each keeps its addresses.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pathlib
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from taskexecutor_common.api_keys import generate_key
from taskexecutor_common.crypto import generate_entry
from taskexecutor_common.model.setup import Scope
from taskexecutor_common.store.admin import write_key
from taskexecutor_common.store.database import Database
from taskexecutor_common.store.migrate import migrate
from taskexecutor_local import programs, readiness, tether
from taskexecutor_local.data_folder import DataFolder
from taskexecutor_local.gateway import Gateway
from taskexecutor_local.ports import LOOPBACK, free_ports
from taskexecutor_local.postgres import EmbeddedPostgres
from taskexecutor_local.process import Process, Program
from tests.chaos import service
from tests.support import components
from tests.support.link import Link
from tests.support.waiting import wait_until

ROOT = pathlib.Path(__file__).parents[2]
KINDS = ("api", "scheduler", "dispatcher")
DATABASE_SEC = 60.0


@dataclass(frozen=True, slots=True)
class Member:
    """A process of one of our services and its links."""

    kind: str
    process: Process
    port: int
    """Where it listens."""
    to_database: Link
    to_it: Link
    """How others reach it: Envoy the api, services the scheduler and the dispatcher."""


class Fleet:
    """See the module. `wrong` says per kind or name what is wrong with a service (tests/chaos/service.py).

    `straight`: Envoy calls the apis by no link. Where nobody listens, a link takes connections and drops them, and an Envoy
    that has connected cannot know that its call went nowhere; without it the connection is refused.
    """

    def __init__(
        self,
        folder: DataFolder,
        *,
        counts: Mapping[str, int],
        wrong: Mapping[str, Mapping[str, Any]],
        straight: bool,
        settings: Mapping[str, str],
    ) -> None:
        self._folder = folder
        self._straight = straight
        self._wrong = wrong
        self._settings = settings
        self._counts = counts
        self._server = EmbeddedPostgres(folder.path)
        self._to_gateway = free_ports(1)[0]
        self.api_key = generate_key()
        self.members: dict[str, Member] = {}
        self.postgres = self._process(programs.postgres(self._server, folder, _foreign_environment()))
        self.gateway: Process | None = None

    @property
    def url(self) -> str:
        """Base URL of the gateway."""
        return f"http://{LOOPBACK}:{self._to_gateway}"

    @property
    def database_url(self) -> str:
        """The database, by no link."""
        return self._server.dsn

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of the services that are up."""
        return {name: member.process.pid for name, member in self.members.items() if member.process.pid}

    def named(self, kind: str) -> list[Member]:
        """All members of a kind."""
        return [member for member in self.members.values() if member.kind == kind]

    @property
    def links(self) -> list[Link]:
        """All links."""
        return [link for member in self.members.values() for link in (member.to_database, member.to_it)]

    def count_in_logs(self, text: str) -> int:
        """How many lines the services have logged that have `text` in them."""
        logs = (self._folder.log(name).read_text(errors="replace") for name in self.members)
        return sum(text in line for log in logs for line in log.splitlines())

    # --- faults ---

    def kill(self, process: Process) -> None:
        """kill -9; it is started again."""
        process.send(signal.SIGKILL)

    def freeze(self, name: str) -> None:
        """SIGSTOP."""
        self.members[name].process.send(signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        """SIGCONT."""
        self.members[name].process.send(signal.SIGCONT)

    async def restart(self, process: Process) -> None:
        """Stops a process in good order and starts it again; returns when it is ready."""
        await process.stop()
        await process.start()

    # --- its life ---

    async def start(self) -> None:
        """Starts all; returns when the gateway answers."""
        await asyncio.to_thread(self._server.prepare)
        await self.postgres.start()
        await migrate(self._server.dsn)
        async with self.store() as database:
            await write_key(database, self.api_key, "default", "chaos", list(Scope))
        environment = self._environment()
        for kind in KINDS:
            for number in range(1, self._counts.get(kind, 1) + 1):
                name = kind if number == 1 else f"{kind}-{number}"
                self.members[name] = await self._member(kind, name, environment)
        await asyncio.gather(*(member.process.start() for member in self.members.values()))
        self.gateway = self._process(self._envoy())
        await self.gateway.start()

    async def stop(self) -> None:
        """Mends all links and stops all processes in good order."""
        for link in self.links:
            link.mend()
        for member in self.members.values():
            member.process.send(signal.SIGCONT)
        if self.gateway is not None:
            await self.gateway.stop()
        await asyncio.gather(*(member.process.stop() for member in self.members.values()))
        for link in self.links:
            await link.close()
        await self.postgres.stop()

    @contextlib.asynccontextmanager
    async def store(self) -> AsyncIterator[Database]:
        """A pool on the database."""
        database = Database(self.database_url, pool_size=2, application_name="chaos")
        await database.open()
        try:
            yield database
        finally:
            await database.close()

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        """A connection to look behind the contract, once the database takes one."""

        async def connected() -> psycopg.AsyncConnection[Any] | None:
            with contextlib.suppress(psycopg.OperationalError):
                return await psycopg.AsyncConnection.connect(self.database_url, autocommit=True)
            return None

        opened = await wait_until(connected, DATABASE_SEC, "the database")
        assert opened is not None
        async with opened as connection:
            yield connection

    async def _member(self, kind: str, name: str, environment: Mapping[str, str]) -> Member:
        to_database = Link(LOOPBACK, self._server.port)
        listen, metrics = free_ports(2)
        to_it = Link(LOOPBACK, listen)
        await to_database.open()
        await to_it.open()
        target = f"{LOOPBACK}:{listen}"
        wrong = {**self._wrong.get(kind, {}), **self._wrong.get(name, {})}
        own = {
            "TE_DATABASE_URL": to_database.database_url(self._server.dsn),
            "TE_LISTEN_ADDR" if kind == "api" else "TE_INTERNAL_LISTEN_ADDR": target,
            "TE_ADVERTISE_ADDR": to_it.address,
            "TE_METRICS_ADDR": f"{LOOPBACK}:{metrics}",
            service.VARIABLE: json.dumps(wrong),
            "PYTHONPATH": str(ROOT),
        }
        program = Program(
            name=name,
            command=tether.command_line(
                [sys.executable, "-m", "tests.chaos.service", kind], death_signal=signal.SIGKILL
            ),
            environment={**environment, **own},
            log_path=self._folder.log(name),
            is_ready=readiness.grpc_health(target),
        )
        return Member(kind, self._process(program), listen, to_database, to_it)

    def _environment(self) -> dict[str, str]:
        return {
            **_foreign_environment(),
            "TE_SECRET_ENCRYPTION_KEY": self._folder.kept("secret_encryption_key", generate_entry),
            "TE_EGRESS_ALLOW": "loopback",
            "PYTHONUNBUFFERED": "1",
            **self._settings,
        }

    def _envoy(self) -> Program:
        gateway = Gateway(
            listen=f"{LOOPBACK}:{self._to_gateway}",
            upstream=self.members["api"].to_it.address,
            config_path=self._folder.path / "envoy.json",
            admin_socket=programs.socket_folder(self._folder.path) / programs.ADMIN_SOCKET,
        )
        command = gateway.command()
        self._know_all_apis(gateway.config_path)
        return Program(
            name="envoy",
            command=tether.command_line(command, death_signal=signal.SIGKILL),
            environment=_foreign_environment(),
            log_path=self._folder.log("envoy"),
            is_ready=readiness.http_ok(f"{self.url}/healthz"),
            before_stop=gateway.drain,
            stop_deadline_sec=5,
        )

    def _know_all_apis(self, path: pathlib.Path) -> None:
        """A cluster of several addresses, as a name with several addresses would give it."""
        config = json.loads(path.read_text())
        (endpoints,) = config["static_resources"]["clusters"][0]["load_assignment"]["endpoints"]
        ports = [member.port if self._straight else member.to_it.port for member in self.named("api")]
        endpoints["lb_endpoints"] = [
            {"endpoint": {"address": {"socket_address": {"address": LOOPBACK, "port_value": port}}}} for port in ports
        ]
        path.write_text(json.dumps(config))

    def _process(self, program: Program) -> Process:
        return Process(program, lambda _: None)


def _foreign_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("TE_", "PG"))}


@contextlib.asynccontextmanager
async def running_fleet(
    folder: pathlib.Path,
    *,
    counts: Mapping[str, int] | None = None,
    wrong: Mapping[str, Mapping[str, Any]] | None = None,
    straight: bool = False,
    **settings: str,
) -> AsyncIterator[Fleet]:
    """A fleet inside the block, of one service of each kind unless `counts` say otherwise; settings as `TE_...`."""
    with DataFolder(folder) as held:
        fleet = Fleet(held, counts=counts or {}, wrong=wrong or {}, straight=straight, settings=settings)
        try:
            await fleet.start()
            components.note_system(folder)
            yield fleet
        finally:
            await fleet.stop()
