"""Celery on a Redis of its own."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from bench.arena import Arena
from bench.peers.peer import Peer, running_peer
from bench.redis_server import running_redis

NAME = "celery"
SETTINGS: dict[str, Any] = {"pool": "prefork", "concurrency": 2, "prefetch": 4}
"""The fastest of what was tried; see docs/performance.md."""


@contextlib.asynccontextmanager
async def running_celery(arena: Arena, *, url: str = "", **changes: Any) -> AsyncIterator[Peer]:
    """Celery with an idle worker inside the block, on a fresh Redis (append-only file, synced every second)."""
    settings = SETTINGS | {"url": url or arena.receiver.url} | changes
    async with (
        running_redis(arena) as broker,
        running_peer(arena, NAME, "Celery", broker.url, settings, others={"redis": broker.pid}) as peer,
    ):
        yield peer
