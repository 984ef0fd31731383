"""Databases for tests: each a copy of one that was migrated once, so that every test has hot tables of its own."""

from __future__ import annotations

import secrets
import urllib.parse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg

from taskexecutor_common.store.migrate import migrate

# What survives a power cut is of no interest here; statistics must change only when a test says so.
TEST_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "deadlock_timeout": "100ms",
}


def with_database(url: str, name: str) -> str:
    """The same server, another database."""
    return urllib.parse.urlsplit(url)._replace(path=f"/{name}").geturl()


class Databases:
    """Makes and drops databases on one server, `url` names any that exists there."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._run = f"te_test_{secrets.token_hex(4)}"
        self._made = 0

    async def version(self) -> str:
        """The server's version, as `18.4`."""
        async with await psycopg.AsyncConnection.connect(self._url) as connection:
            return str(connection.info.parameter_status("server_version")).split()[0]

    @asynccontextmanager
    async def template(self) -> AsyncIterator[str]:
        """A migrated database that nobody stays connected to. Yields its URL."""
        async with self.empty() as url:
            await migrate(url)
            yield url

    @asynccontextmanager
    async def empty(self) -> AsyncIterator[str]:
        """A database without a schema. Yields its URL."""
        async with self._database("") as url:
            yield url

    @asynccontextmanager
    async def copy(self, of: str) -> AsyncIterator[str]:
        """A copy of the database at the URL `of`, which nobody may be connected to. Yields its URL."""
        source = urllib.parse.urlsplit(of).path.removeprefix("/")
        async with self._database(f"TEMPLATE {source} STRATEGY FILE_COPY") as url:
            yield url

    @asynccontextmanager
    async def _database(self, options: str) -> AsyncIterator[str]:
        self._made += 1
        name = f"{self._run}_{self._made}"
        await self._execute(f"CREATE DATABASE {name} {options}")
        try:
            yield with_database(self._url, name)
        finally:
            await self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    async def _execute(self, statement: Any) -> None:
        async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as connection:
            await connection.execute(statement)
