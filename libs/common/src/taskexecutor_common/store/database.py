"""The connection pool, and the one place where statements and transactions are run again.

Connections are in autocommit mode: a statement is a transaction of its own, and CTE chains keep what belongs together in
one. What must look between two statements goes through `Database.run`, as a function, because it may run twice.

Rules, from the engines' documentation (CockroachDB "Transaction Retry Error Reference", PostgreSQL appendix A):
40001 and 40P01 changed nothing and are run again. 40003 and a connection that broke after the statement was sent are
*ambiguous*: it may have been committed. They are run again only where the caller says that the statement is `repeatable`,
which is to say guarded by the state it leaves or bound to a key of its own; otherwise AmbiguousResult is raised and the
caller settles it by looking for what it wrote.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import orjson
import psycopg
from psycopg import AsyncConnection, errors
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from taskexecutor_common.errors import AmbiguousResult, Unavailable
from taskexecutor_common.observability import metrics
from taskexecutor_common.store.rows import model_row
from taskexecutor_common.store.statements import POSTGRES_STATEMENTS, STATEMENTS

T = TypeVar("T")
RowT = TypeVar("RowT")

_TRIES = 10
_BACKOFF_MS = 5
_BACKOFF_CAP_MS = 500
_RECONNECT_SEC = 2.0
_UNDONE = (errors.SerializationFailure, errors.DeadlockDetected)
# Every statement is written as walks of indexes. PostgreSQL's planner may choose otherwise by what it believes of a table: a
# plan that was made and kept while a queue was empty reads all of the queue once it is full. So plans are made anew, and of
# walks of indexes only (tests/contract/test_plans.py holds what they touch). What was vacuumed while it was empty, or while one
# transaction was filling it, is believed to be empty until the next look, however full it is: rows that a statement has found
# it deletes by their place, and what belongs to them it looks up, both in words that cannot be taken for a join in any order.
#
# Planning costs half a millisecond: nothing for a batch, and four times the work for a single row. So `small` statements
# first go over connections that keep their plans, and get a short time there: one that takes longer is cancelled, its
# connection is closed with all its plans, and it runs again over one that plans anew.
SMALL_BATCH = 20
"""Rows up to which planning anew costs more than it is worth."""

_KEPT_PLANS = 4
_KEPT_TIMEOUT_MS = 200
_POSTGRES_PLANNER = (
    "enable_seqscan = off",
    "enable_bitmapscan = off",
    "enable_hashjoin = off",
    "enable_mergejoin = off",
    "jit = off",  # compiling takes longer than any of these statements
)
# It took too long, or this server may only read: nothing was changed, and later it may work.
_NOT_NOW = (errors.QueryCanceled, errors.ReadOnlySqlTransaction)
# The server said so itself, or the connection is gone: nobody knows.
_AMBIGUOUS = (
    errors.StatementCompletionUnknown,
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
)
# Classes of SQLSTATE: psycopg's class of a code is no subclass of the class of its class.
_INSUFFICIENT_RESOURCES = "53"
_CONNECTION_EXCEPTION = "08"


def is_ambiguous(error: psycopg.Error) -> bool:
    """True when the error leaves open whether the work was committed."""
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError) and not isinstance(error, PoolTimeout)
    return isinstance(error, _AMBIGUOUS) or error.sqlstate.startswith(_CONNECTION_EXCEPTION)


def _is_overload(error: psycopg.Error) -> bool:
    """True when nothing was changed and later it may work; out of disk, memory or connections for one."""
    return isinstance(error, _NOT_NOW) or (error.sqlstate or "").startswith(_INSUFFICIENT_RESOURCES)


class Transaction:
    """One connection's view on the named statements; inside `Database.run` all of them are one transaction."""

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        self._connection = connection

    async def fetch_all(self, name: str, model: type[RowT], /, **parameters: Any) -> list[RowT]:
        """Runs the statement `name` and returns its rows as `model`."""
        async with self._connection.cursor(row_factory=model_row(model), binary=True) as cursor:
            await cursor.execute(self._text(name), parameters)
            return await cursor.fetchall()

    async def fetch_one(self, name: str, model: type[RowT], /, **parameters: Any) -> RowT | None:
        """Runs the statement `name` and returns its only row, or None."""
        rows = await self.fetch_all(name, model, **parameters)
        if len(rows) > 1:
            raise ValueError(f"{name} gave {len(rows)} rows")
        return rows[0] if rows else None

    async def execute(self, name: str, /, **parameters: Any) -> int:
        """Runs the statement `name` and returns how many rows it changed or returned."""
        async with self._connection.cursor() as cursor:
            await cursor.execute(self._text(name), parameters)
            return cursor.rowcount

    def _text(self, name: str) -> bytes:
        return (STATEMENTS if _is_cockroach(self._connection) else POSTGRES_STATEMENTS)[name].encode()


def _is_cockroach(connection: AsyncConnection[Any]) -> bool:
    return connection.info.parameter_status("crdb_version") is not None


class Database:
    """The pool and its retries. Open it with `async with` or `open`/`close`."""

    def __init__(
        self,
        dsn: str,
        *,
        pool_size: int,
        application_name: str,
        isolation: str = "read committed",
        statement_timeout_ms: int = 30_000,
        acquire_timeout_sec: float = 5.0,
    ) -> None:
        def configure_for(plans: str, timeout_ms: int) -> Callable[[AsyncConnection[Any]], Awaitable[None]]:
            async def configure(connection: AsyncConnection[Any]) -> None:
                set_json_loads(orjson.loads, connection)
                connection.prepare_threshold = 2
                settings = [
                    f"default_transaction_isolation = '{isolation}'",
                    f"statement_timeout = {timeout_ms}",
                    "timezone = 'UTC'",
                ]
                if not _is_cockroach(connection):
                    settings += [f"plan_cache_mode = {plans}", *_POSTGRES_PLANNER]
                await connection.execute("; ".join(f"SET {setting}" for setting in settings).encode())

            return configure

        def pool(size: int, plans: str, timeout_ms: int) -> AsyncConnectionPool[AsyncConnection[Any]]:
            return AsyncConnectionPool(
                dsn,
                min_size=1,
                max_size=size,
                open=False,
                configure=configure_for(plans, timeout_ms),
                max_lifetime=300,
                # The pause between two attempts to connect doubles, and nobody else tries meanwhile: given up soon, it is
                # whoever needs a connection next that tries again, the moment that the database is back.
                reconnect_timeout=_RECONNECT_SEC,
                timeout=acquire_timeout_sec,
                kwargs={"autocommit": True, "application_name": application_name, "connect_timeout": 5},
                name=application_name,
            )

        self._acquire_timeout_sec = acquire_timeout_sec
        self._pool = pool(pool_size, "force_custom_plan", statement_timeout_ms)
        self._kept_plans = pool(_KEPT_PLANS, "force_generic_plan", min(_KEPT_TIMEOUT_MS, statement_timeout_ms))

    async def open(self, timeout_sec: float = 30.0) -> None:
        """Opens the pools and waits for a first connection. Raises Unavailable when none comes in time."""
        try:
            await self._pool.open(wait=True, timeout=timeout_sec)
            await self._kept_plans.open(wait=True, timeout=timeout_sec)
        except PoolTimeout as error:
            raise Unavailable(f"no database connection within {timeout_sec:g} s") from error

    async def close(self) -> None:
        """Closes all connections; waits for those in use."""
        await self._kept_plans.close(timeout=5)
        await self._pool.close(timeout=5)

    async def fetch_all(
        self, name: str, model: type[RowT], /, *, repeatable: bool = True, small: bool = False, **parameters: Any
    ) -> list[RowT]:
        """Transaction.fetch_all in a transaction of its own, with retries. `small`: few rows are expected, so that planning
        would be most of the cost."""
        return await self._retry(
            name, lambda tx: tx.fetch_all(name, model, **parameters), repeatable=repeatable, small=small
        )

    async def fetch_one(
        self, name: str, model: type[RowT], /, *, repeatable: bool = True, **parameters: Any
    ) -> RowT | None:
        """Transaction.fetch_one in a transaction of its own, with retries."""
        return await self._retry(name, lambda tx: tx.fetch_one(name, model, **parameters), repeatable=repeatable)

    async def execute(self, name: str, /, *, repeatable: bool = True, **parameters: Any) -> int:
        """Transaction.execute in a transaction of its own, with retries."""
        return await self._retry(name, lambda tx: tx.execute(name, **parameters), repeatable=repeatable)

    async def run(self, name: str, work: Callable[[Transaction], Awaitable[T]], *, repeatable: bool = True) -> T:
        """Runs `work` in one transaction and commits it. `work` may be called several times: no effects but SQL inside."""

        async def in_transaction(connection: AsyncConnection[Any]) -> T:
            async with connection.transaction():
                return await work(Transaction(connection))

        return await self._retry_on_connection(name, in_transaction, repeatable=repeatable)

    async def ping(self) -> None:
        """One round trip; raises Unavailable when the database is away."""
        await self._retry_on_connection("ping", lambda c: c.execute(b"SELECT 1"), repeatable=True, tries=1)

    async def _retry(
        self, name: str, work: Callable[[Transaction], Awaitable[T]], *, repeatable: bool, small: bool = False
    ) -> T:
        return await self._retry_on_connection(name, lambda c: work(Transaction(c)), repeatable=repeatable, small=small)

    async def _retry_on_connection(
        self,
        name: str,
        work: Callable[[AsyncConnection[Any]], Awaitable[T]],
        *,
        repeatable: bool,
        tries: int = _TRIES,
        small: bool = False,
    ) -> T:
        for attempt in range(1, tries + 1):
            sent = False
            try:
                if small:
                    async with self._connection(self._kept_plans) as connection:
                        sent = True
                        try:
                            return await work(connection)
                        except errors.QueryCanceled:  # and nothing was changed
                            metrics.STORE_RETRIES.labels(statement=name, reason="slow").inc()
                            await connection.close()
                sent = False
                async with self._connection(self._pool) as connection:
                    sent = True
                    return await work(connection)
            except PoolTimeout as error:
                raise Unavailable("the database is not reachable", retry_after=1) from error
            except _UNDONE as error:
                metrics.STORE_RETRIES.labels(statement=name, reason=error.sqlstate or "").inc()
                if attempt == tries:
                    raise Unavailable("the database is busy with conflicting work", retry_after=1) from error
            except psycopg.Error as error:
                if _is_overload(error):
                    raise Unavailable("the database cannot do this now", retry_after=1) from error
                if not is_ambiguous(error):
                    raise
                metrics.STORE_RETRIES.labels(statement=name, reason="lost").inc()
                if sent and not repeatable:
                    raise AmbiguousResult(name) from error
                if attempt == tries:
                    raise Unavailable("the database is not reachable", retry_after=1) from error
            await asyncio.sleep(random.uniform(0, min(_BACKOFF_CAP_MS, _BACKOFF_MS * 2**attempt)) / 1000)
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def _connection(self, pool: AsyncConnectionPool[AsyncConnection[Any]]) -> AsyncIterator[AsyncConnection[Any]]:
        started = time.perf_counter()
        async with pool.connection(timeout=self._acquire_timeout_sec) as connection:
            metrics.POOL_WAIT.observe(time.perf_counter() - started)
            yield connection
