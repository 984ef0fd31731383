"""Procrastinate on the arena's PostgreSQL."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from bench.arena import Arena
from bench.peers.peer import Peer, running_peer

NAME = "procrastinate"
SETTINGS: dict[str, Any] = {"concurrency": 10, "connections": 5, "in_flight": 100, "poll_sec": 5.0}
"""The fastest of what was tried; see docs/performance.md."""
PROMPT = {"poll_sec": 0.05, "concurrency": 100, "connections": 20}
"""For delayed jobs, which it finds by polling: its default would make them seconds late."""


@contextlib.asynccontextmanager
async def running_procrastinate(arena: Arena, *, url: str = "", **changes: Any) -> AsyncIterator[Peer]:
    """Procrastinate with an idle worker inside the block, in a fresh database."""
    settings = SETTINGS | {"url": url or arena.receiver.url} | changes
    async with (
        arena.postgres.database(NAME) as database,
        running_peer(arena, NAME, "Procrastinate", database, settings) as peer,
    ):
        yield peer
