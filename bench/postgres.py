"""The PostgreSQL server that all contestants use, each in a database of its own: the one of `make run`, fsync on."""

from __future__ import annotations

import contextlib
import pathlib
import urllib.parse
from collections.abc import AsyncIterator
from typing import Any, LiteralString

import psycopg

from taskexecutor_local.postgres import EmbeddedPostgres

# What decides how durable and how fast a commit is; shown in the results.
TOLD_SETTINGS = (
    "server_version",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "shared_buffers",
    "max_wal_size",
    "wal_compression",
    "checkpoint_timeout",
    "autovacuum",
)


class PostgresServer:
    """A running server."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        self._server = server

    @property
    def pid(self) -> int:
        """Process id of the postmaster; the backends are its children."""
        assert self._server.pid is not None
        return self._server.pid

    def url(self, database: str) -> str:
        """URL of a database over the unix socket where there is one, password included."""
        url = self._server.socket_dsn or self._server.dsn
        return urllib.parse.urlsplit(url)._replace(path=f"/{database}").geturl()

    @contextlib.asynccontextmanager
    async def database(self, name: str, copy_of: str | None = None) -> AsyncIterator[str]:
        """An empty database, or a copy of one that nobody is connected to; dropped after the block. Yields its URL."""
        origin = f" TEMPLATE {copy_of} STRATEGY FILE_COPY" if copy_of else ""
        await self._administer(f"CREATE DATABASE {name}{origin}")
        try:
            yield self.url(name)
        finally:
            await self._administer(f"DROP DATABASE {name} WITH (FORCE)")

    async def checkpoint(self) -> None:
        """Writes out what earlier work left behind, so that it is not paid for by whoever is measured next."""
        await self._administer("CHECKPOINT")

    @contextlib.asynccontextmanager
    async def autovacuum_off(self) -> AsyncIterator[None]:
        """Inside the block the server does nothing by itself that would count as somebody's transaction."""
        await self._administer("ALTER SYSTEM SET autovacuum = off")
        await self._administer("SELECT pg_reload_conf()")
        try:
            yield
        finally:
            await self._administer("ALTER SYSTEM RESET autovacuum")
            await self._administer("SELECT pg_reload_conf()")

    async def settings(self) -> dict[str, str]:
        """The settings that say how durable and how fast a commit is."""
        async with await connect(self.url("taskexecutor")) as connection:
            rows = await connection.execute(
                "SELECT name, current_setting(name) FROM unnest(%s::text[]) AS name", (list(TOLD_SETTINGS),)
            )
            return dict(await rows.fetchall())

    async def _administer(self, statement: str) -> None:
        async with await connect(self.url("taskexecutor")) as connection:
            await connection.execute(statement.encode())


@contextlib.asynccontextmanager
async def running_postgres(folder: pathlib.Path) -> AsyncIterator[PostgresServer]:
    """A server inside the block, started as `make run` starts it."""
    with EmbeddedPostgres(folder) as server:
        yield PostgresServer(server)


async def connect(url: str) -> psycopg.AsyncConnection[Any]:
    """A connection in autocommit mode."""
    return await psycopg.AsyncConnection.connect(url, autocommit=True)


async def value(connection: psycopg.AsyncConnection[Any], query: LiteralString, *parameters: object) -> Any:
    """The first column of the first row."""
    row = await (await connection.execute(query, parameters)).fetchone()
    return row[0] if row else None
