"""A database that fails on purpose, by the dice: around any try of any statement, at a given rate, from a given seed.

The faults strike between the store's retries and the connection, so everything above sees what it would see of a real
server: `Database` itself decides what is run again and what is ambiguous.

    database = FaultyDatabase(url, Faults(seed=7, rate=0.15), pool_size=8, application_name="tests")   # one database
    faults = install(seed=7, rate=0.15, kinds=LOSSES)                                  # every Database of this process

Whether the nth try of a statement is struck depends on the seed, its name and n alone: runs that interleave differently
are struck alike.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from enum import Enum
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, errors

from taskexecutor_common.observability.logging import get_logger
from taskexecutor_common.store.database import Database

T = TypeVar("T")
Work = Callable[[AsyncConnection[Any]], Awaitable[T]]

_log = get_logger("faults")


class Fault(Enum):
    """What goes wrong, and whether the work was done."""

    SERIALIZATION = "40001: it ran, and was rolled back at its commit"
    DEADLOCK = "40P01: it did not run"
    DISK_FULL = "53100: it did not run"
    TIMEOUT = "57014: it did not run"
    LOST_BEFORE = "the connection broke before it arrived"
    LOST_AFTER = "it was committed, and the connection broke before its answer"
    UNKNOWN = "40003: it was committed, and the server does not know"


UNDONE = frozenset({Fault.SERIALIZATION, Fault.DEADLOCK})
"""The store runs these again by itself, whatever the statement."""
OVERLOAD = frozenset({Fault.DISK_FULL, Fault.TIMEOUT})
"""The caller gets Unavailable at once."""
LOSSES = frozenset({Fault.LOST_BEFORE, Fault.LOST_AFTER, Fault.UNKNOWN})
"""Nobody knows whether it was done."""

_MESSAGE = "struck on purpose"
_REFUSED = {
    Fault.DEADLOCK: errors.DeadlockDetected,
    Fault.DISK_FULL: errors.DiskFull,
    Fault.TIMEOUT: errors.QueryCanceled,
}


class Faults:
    """Says which tries are struck. `rate`: share of the tries, 0 to 1. `only`: of these statements; `spared`: never of these.

    `struck` counts by statement and fault, for the test's own report.
    """

    def __init__(
        self,
        seed: int,
        rate: float,
        kinds: Collection[Fault] = frozenset(Fault),
        *,
        only: Collection[str] | None = None,
        spared: Collection[str] = (),
    ) -> None:
        self.struck: Counter[tuple[str, Fault]] = Counter()
        self._seed = seed
        self._rate = rate
        self._kinds = [fault for fault in Fault if fault in kinds]  # in a fixed order: a set has none
        self._only = only
        self._spared = spared
        self._tries: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """How often it has struck."""
        return self.struck.total()

    def around(self, name: str, work: Work[T]) -> Work[T]:
        """`work`, the statement `name` on a connection, as it goes when the dice say so."""

        async def struck(connection: AsyncConnection[Any]) -> T:
            fault = self._roll(name)
            if fault is None:
                return await work(connection)
            self.struck[name, fault] += 1
            _log.warning("fault injected", statement=name, fault=fault.name)
            return await _fail(fault, connection, work)

        return struck

    def _roll(self, name: str) -> Fault | None:
        if name in self._spared or (self._only is not None and name not in self._only):
            return None
        self._tries[name] += 1
        dice = random.Random(f"{self._seed} {name} {self._tries[name]}")
        return dice.choice(self._kinds) if dice.random() < self._rate else None


async def _fail(fault: Fault, connection: AsyncConnection[Any], work: Work[T]) -> T:
    if refusal := _REFUSED.get(fault):
        raise refusal(_MESSAGE)
    if fault is Fault.SERIALIZATION:
        async with connection.transaction(force_rollback=True):
            await work(connection)
        raise errors.SerializationFailure(_MESSAGE)
    if fault is not Fault.LOST_BEFORE:
        await work(connection)
    if fault is Fault.UNKNOWN:
        raise errors.StatementCompletionUnknown(_MESSAGE)
    await connection.close()
    raise psycopg.OperationalError(_MESSAGE)


class FaultyDatabase(Database):
    """A Database whose tries are struck as `faults` says; `settings` are Database's own."""

    def __init__(self, dsn: str, faults: Faults, **settings: Any) -> None:
        super().__init__(dsn, **settings)
        self.faults = faults

    async def _retry_on_connection(self, name: str, work: Work[T], **how: Any) -> T:
        return await super()._retry_on_connection(name, self.faults.around(name, work), **how)


def install(
    seed: int, rate: float, kinds: Collection[Fault] = frozenset(Fault), *, spared: Collection[str] = ()
) -> Faults:
    """Lets every Database of this process fail from now on, for good: for processes that exist to be tried.

    A service whose very first `beat` fails does not start, which is right and seldom what is to be tried: spare it.
    """
    faults = Faults(seed, rate, kinds, spared=spared)
    original = Database._retry_on_connection

    async def _retry_on_connection(self: Database, name: str, work: Work[T], **how: Any) -> T:
        return await original(self, name, faults.around(name, work), **how)

    Database._retry_on_connection = _retry_on_connection  # type: ignore[method-assign]
    return faults
