"""The whole system on one machine: the order in which its programs start and stop."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
import pathlib
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Mapping

from taskexecutor_common.api_keys import generate_key
from taskexecutor_common.crypto import generate_entry
from taskexecutor_local import leftovers, logs, programs
from taskexecutor_local.data_folder import DataFolder
from taskexecutor_local.ports import why_not_free
from taskexecutor_local.postgres import EmbeddedPostgres
from taskexecutor_local.process import Process, Program, StartError, State, run_to_end
from taskexecutor_local.settings import LocalSettings

OnChange = Callable[[Process], None]
LOUD = {"postgres": logs.loud_postgres_line, "envoy": logs.every_line}


def ignore(_: Process) -> None:
    """For who does not watch."""


class Stack:
    """PostgreSQL, migrations, the first key, the services, Envoy: started in that order, stopped in the opposite one.

    The caller holds `folder`. The programs inherit `environment`; `postgres_settings` go to the embedded server.
    """

    def __init__(
        self,
        settings: LocalSettings,
        folder: DataFolder,
        environment: Mapping[str, str],
        *,
        on_change: OnChange = ignore,
        postgres_settings: Mapping[str, str] | None = None,
    ) -> None:
        self.settings = settings
        self.processes: dict[str, Process] = {}
        self._services = programs.service_names(settings.dispatcher_processes)
        self.addresses = programs.choose_addresses(folder, settings.http_port, self._services)
        self.api_key = settings.bootstrap_api_key or folder.kept("api_key", generate_key)
        self._folder = folder
        self._inherited = environment
        self._on_change = on_change
        self._started_at = datetime.datetime.now().astimezone()
        self._server = None if settings.database_url else EmbeddedPostgres(folder.path, postgres_settings)

    @property
    def url(self) -> str:
        """Base URL of the gateway."""
        return self.addresses.url

    @property
    def database_url(self) -> str:
        """URL of the database that the services use, password included."""
        if self._server is None:
            return str(self.settings.database_url)
        return self._server.socket_dsn or self._server.dsn

    def pid(self, name: str) -> int:
        """Process id of `postgres`, `api`, `scheduler`, `dispatcher` (the second one is `dispatcher-2`) or `envoy`.

        LookupError while it is down.
        """
        pid = self.processes[name].pid
        if pid is None:
            raise LookupError(f"{name} is not running")
        return pid

    def kill(self, name: str) -> None:
        """Kills one process with SIGKILL; it is started again."""
        os.kill(self.pid(name), signal.SIGKILL)

    def kill_all(self) -> None:
        """For a user who does not want to wait: cuts `stop` short."""
        for process in self.processes.values():
            process.send(signal.SIGKILL)

    async def start(self) -> None:
        """Starts all; returns when the gateway answers. Raises StartError or PostgresError; `stop` is due then too."""
        await asyncio.to_thread(leftovers.end_leftovers, self._folder.read_run())
        if self.settings.http_port and (reason := why_not_free(self.settings.http_port)):
            raise StartError(
                f"Port {self.settings.http_port} cannot be used: {reason}. Set TE_HTTP_PORT to another one."
            )
        if self._server is not None:
            await asyncio.to_thread(self._server.prepare)
            await self._start(programs.postgres(self._server, self._folder, self._foreign_environment()))
        environment = self.environment()
        await self._run("taskexecutor-migrate", [], environment)
        await self._run("taskexecutor-admin", ["keys", "ensure"], {**environment, "TE_BOOTSTRAP_API_KEY": self.api_key})
        services = [programs.service(n, self.addresses, self._folder, environment) for n in self._services]
        await self._start(*services)
        await self._start(programs.envoy(self.addresses, self._folder, self._foreign_environment()))

    async def stop(self) -> None:
        """Stops all that runs, gracefully; answers that were begun are finished."""
        for names in (("envoy",), self._services, ("postgres",)):
            running = [self.processes[name] for name in names if name in self.processes]
            await asyncio.gather(*(process.stop() for process in running))
        self._folder.forget_run()
        if self.addresses.sockets != self._folder.path:
            shutil.rmtree(self.addresses.sockets, ignore_errors=True)

    def tails(self) -> list[logs.Tail]:
        """A reader for each log of a program that runs."""
        paths = {name: process.program.log_path for name, process in self.processes.items()}
        return [logs.Tail(name, path, LOUD.get(name, logs.loud_service_line)) for name, path in paths.items()]

    async def _start(self, *wanted: Program) -> None:
        """Starts programs side by side; when one fails, the others are waited for, so that `stop` finds them all."""
        for program in wanted:
            logs.rotate(program.log_path)
            self.processes[program.name] = Process(program, self._changed)
        starts = (self.processes[program.name].start() for program in wanted)
        for outcome in await asyncio.gather(*starts, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _run(self, name: str, arguments: list[str], environment: Mapping[str, str]) -> None:
        log_path = self._folder.log(name.removeprefix("taskexecutor-"))
        logs.rotate(log_path)
        await run_to_end(name, programs.script(name, *arguments), environment, log_path)

    def environment(self) -> dict[str, str]:
        """What all our own programs get."""
        settings = self.settings
        own = {f"TE_{name.upper()}" for name in LocalSettings.model_fields}
        inherited = {name: value for name, value in self._inherited.items() if name not in own}
        encryption_key = (
            settings.secret_encryption_key.get_secret_value()
            if settings.secret_encryption_key
            else self._folder.kept("secret_encryption_key", generate_entry)
        )
        return inherited | {
            "TE_DATABASE_URL": self.database_url,
            "TE_SECRET_ENCRYPTION_KEY": encryption_key,
            "TE_EGRESS_ALLOW": settings.egress_allow,
            "PYTHONUNBUFFERED": "1",
        }

    def _foreign_environment(self) -> dict[str, str]:
        """What the programs of others get: nothing of ours, secrets least of all, and nothing that PostgreSQL reads."""
        return {name: value for name, value in self._inherited.items() if not name.startswith(("TE_", "PG"))}

    def _changed(self, process: Process) -> None:
        if process.state in (State.READY, State.WAITING):
            self._folder.write_run(self._facts())
        self._on_change(process)

    def _facts(self) -> dict[str, object]:
        """The content of run.json; a process that is down at the moment is null."""
        pids = {name: process.pid for name, process in self.processes.items()}
        return {
            "pid": os.getpid(),
            "started_at": self._started_at.isoformat(timespec="seconds"),
            "url": self.url,
            "database_url": self.database_url,
            "grpc": dict(self.addresses.targets),
            "metrics": {name: f"http://{address}/metrics" for name, address in self.addresses.metrics.items()},
            "logs": str(self._folder.logs),
            "processes": {name: pid and leftovers.identify(pid) for name, pid in pids.items()},
        }


@contextlib.asynccontextmanager
async def running_stack(
    data_dir: pathlib.Path | str,
    *,
    http_port: int = 0,
    environment: Mapping[str, str] | None = None,
    postgres_settings: Mapping[str, str] | None = None,
) -> AsyncIterator[Stack]:
    """What `make run` starts, for tests and benchmarks: ready inside the block, stopped after it.

    `environment` is added to the present one and may hold any TE_ setting of the launcher and the services.
    """
    surroundings = dict(os.environ) | dict(environment or {})
    settings = LocalSettings.from_environment(surroundings, data_dir=pathlib.Path(data_dir), http_port=http_port)
    with DataFolder(data_dir) as folder:
        stack = Stack(settings, folder, surroundings, postgres_settings=postgres_settings)
        try:
            await stack.start()
            yield stack
        finally:
            await stack.stop()
