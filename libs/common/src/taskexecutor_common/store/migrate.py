"""Brings a database to the newest schema; runs before the services start, never inside them.

A migration is a file of steps, a step is one idempotent statement. Each step is recorded after it ran, in a statement of
its own: a crash in between runs a no-op again. CockroachDB wants it so (schema changes are background jobs and do not
belong in transactions), and PostgreSQL is content with it. A lock row keeps two runners apart.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import re
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from typing import Any

import psycopg

from taskexecutor_common.config.settings import DatabaseSettings, load

_STEP = re.compile(r"^-- step: (\w+) (both|pg|crdb)$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*$", re.MULTILINE)
_LOCK_SEC = 60
_LOCK_WAIT_SEC = 90

_BOOKKEEPING = (
    """CREATE TABLE IF NOT EXISTS schema_migrations (
        step TEXT NOT NULL, checksum TEXT NOT NULL, applied_at TIMESTAMPTZ NOT NULL DEFAULT now(),
        CONSTRAINT schema_migrations_pkey PRIMARY KEY (step))""",
    """CREATE TABLE IF NOT EXISTS schema_lock (
        name TEXT NOT NULL, owner UUID NOT NULL, expires_at TIMESTAMPTZ NOT NULL,
        CONSTRAINT schema_lock_pkey PRIMARY KEY (name))""",
)
_TAKE_LOCK = """INSERT INTO schema_lock (name, owner, expires_at)
    VALUES ('migrate', %(owner)s::uuid, now() + %(seconds)s::bigint * interval '1 second')
    ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at
    WHERE schema_lock.owner = excluded.owner OR schema_lock.expires_at < now()
    RETURNING owner"""


class MigrationError(Exception):
    """The schema cannot be brought up; the message says why."""


@dataclass(frozen=True, slots=True)
class Step:
    """One statement of a migration."""

    name: str
    """File and step, as recorded."""
    engine: str
    """`both`, `pg` or `crdb`."""
    statement: str

    @property
    def checksum(self) -> str:
        """Changes when somebody edits a step that may have run already."""
        return hashlib.sha256(self.statement.encode()).hexdigest()


def parse(filename: str, text: str) -> Iterator[Step]:
    """The steps of one migration file."""
    parts = _STEP.split(text)
    for name, engine, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        yield Step(f"{filename.removesuffix('.sql')}:{name}", engine, _COMMENT.sub("", body).strip().rstrip(";"))


def load_steps() -> list[Step]:
    """All steps in order."""
    folder = resources.files("taskexecutor_common.store.migrations")
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda entry: entry.name)
    return [step for entry in files for step in parse(entry.name, entry.read_text(encoding="utf-8"))]


async def migrate(dsn: str) -> list[str]:
    """Runs the steps that have not run. Answers their names. Raises MigrationError and psycopg errors."""
    async with await psycopg.AsyncConnection.connect(
        dsn, autocommit=True, application_name="taskexecutor-migrate"
    ) as connection:
        for statement in _BOOKKEEPING:
            await _create_if_missing(connection, statement)
        async with _lock(connection) as renew:
            return [step.name async for step in _apply(connection, load_steps(), renew)]


async def _create_if_missing(connection: psycopg.AsyncConnection[Any], statement: str) -> None:
    try:
        await connection.execute(statement.encode())
    except (psycopg.errors.UniqueViolation, psycopg.errors.DuplicateTable, psycopg.errors.DuplicateObject):
        # Two runners at once: PostgreSQL lets IF NOT EXISTS of both through to the catalog, where one loses.
        pass


async def _apply(connection: psycopg.AsyncConnection[Any], steps: list[Step], renew: Any) -> AsyncIterator[Step]:
    engine = "crdb" if connection.info.parameter_status("crdb_version") else "pg"
    cursor = await connection.execute("SELECT step, checksum FROM schema_migrations")
    applied = dict(await cursor.fetchall())
    for step in steps:
        if step.engine not in ("both", engine):
            continue
        recorded = applied.get(step.name)
        if recorded == step.checksum:
            continue
        if recorded is not None:
            raise MigrationError(f"{step.name} has changed since it was applied; write a new migration instead")
        await renew()
        await connection.execute(step.statement.encode())
        await connection.execute(
            "INSERT INTO schema_migrations (step, checksum) VALUES (%s, %s) ON CONFLICT (step) DO NOTHING",
            (step.name, step.checksum),
        )
        yield step


@asynccontextmanager
async def _lock(connection: psycopg.AsyncConnection[Any]) -> AsyncIterator[Any]:
    """Holds the lock row; it lapses by itself when its owner dies."""
    owner = uuid.uuid4()

    async def take() -> bool:
        cursor = await connection.execute(_TAKE_LOCK, {"owner": owner, "seconds": _LOCK_SEC})
        return await cursor.fetchone() is not None

    async def renew() -> None:
        if not await take():
            raise MigrationError("another runner has taken the migration lock")

    deadline = asyncio.get_running_loop().time() + _LOCK_WAIT_SEC
    while not await take():
        if asyncio.get_running_loop().time() > deadline:
            raise MigrationError(f"another runner has held the migration lock for {_LOCK_WAIT_SEC} s")
        await asyncio.sleep(0.2)
    try:
        yield renew
    finally:
        await connection.execute("DELETE FROM schema_lock WHERE name = 'migrate' AND owner = %s", (owner,))


def main() -> int:
    """Entry point of `taskexecutor-migrate`."""
    argparse.ArgumentParser(prog="taskexecutor-migrate", description=__doc__).parse_args()
    settings = load(DatabaseSettings)
    try:
        applied = asyncio.run(migrate(settings.database_url))
    except (MigrationError, psycopg.Error) as error:
        print(f"taskexecutor-migrate: {error}", file=sys.stderr)
        return 1
    print(f"schema is current, {len(applied)} steps applied")
    return 0


if __name__ == "__main__":
    sys.exit(main())
