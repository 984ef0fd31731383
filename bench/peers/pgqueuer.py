"""PgQueuer on the arena's PostgreSQL."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from bench import contestants
from bench.arena import Arena
from bench.peers.peer import Peer, running_peer

NAME = "pgqueuer"
SETTINGS: dict[str, Any] = {"driver": "pool", "batch": 100, "tasks": None, "in_flight": 100, "timeout_sec": 30}
"""The fastest of what was tried; see docs/performance.md."""


@contextlib.asynccontextmanager
async def running_pgqueuer(arena: Arena, *, workers: int = 1, url: str = "", **changes: Any) -> AsyncIterator[Peer]:
    """PgQueuer with idle workers inside the block, in a fresh database; they post to `url`, or to the plain receiver."""
    settings = SETTINGS | {"url": url or arena.receiver.url} | changes
    async with (
        arena.postgres.database(NAME) as database,
        running_peer(arena, NAME, contestants.pgqueuer(workers), database, settings, workers=workers) as peer,
    ):
        yield peer
