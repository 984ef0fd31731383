"""What all contestants share: one PostgreSQL server, one receiver, one plan, one list of results."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import shutil
import tempfile
from collections.abc import AsyncIterator

from bench.places import CACHE
from bench.plan import Plan
from bench.postgres import PostgresServer, running_postgres
from bench.receivers.nginx import Nginx, running_nginx
from bench.results import Results


@dataclasses.dataclass(frozen=True)
class Arena:
    """Handed to every scenario."""

    plan: Plan
    folder: pathlib.Path
    postgres: PostgresServer
    receiver: Nginx
    results: Results

    def log(self, name: str) -> pathlib.Path:
        """Where the program `name` writes its log."""
        return self.folder / f"{name}.log"

    def say(self, text: str) -> None:
        """Tells the user what goes on."""
        print(text, flush=True)


@contextlib.asynccontextmanager
async def open_arena(plan: Plan, results: Results) -> AsyncIterator[Arena]:
    """Starts what is shared, on the disk of the repository: durable commits are paid for on a real one."""
    CACHE.mkdir(exist_ok=True)
    # Not deeper: a unix socket's path may have 107 bytes.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=CACHE))
    os.chmod(folder, 0o755)  # as root PostgreSQL runs as another user
    try:
        async with running_nginx(folder / "nginx") as receiver, running_postgres(folder / "pg") as postgres:
            yield Arena(plan, folder, postgres, receiver, results)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
