"""The receiver: one nginx worker that answers every request at once, and can note when each arrived.

A request is counted by nginx itself (stub_status). Arrival times come from its access log: `$msec`, which has a
resolution of a millisecond and is cut, not rounded. The log is buffered, so that noting costs about a microsecond.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import pathlib
import pwd
import signal
import urllib.request
from collections.abc import AsyncIterator

from bench.children import Child, child
from bench.receivers.nginx_binary import find_nginx, version_of
from bench.waiting import until
from taskexecutor_local.ports import LOOPBACK, free_ports

START_SEC = 10.0
FLUSH_SEC = 5.0
MILLISECOND = 0.001
END_MARK = "end-of-arrivals"

CONFIGURATION = """\
daemon off;
master_process on;
worker_processes 1;
{user}
error_log {folder}/error.log warn;
pid {folder}/nginx.pid;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    log_format arrivals '$msec $http_idempotency_key';
    keepalive_requests 1000000000;
    keepalive_timeout 300s;
    tcp_nodelay on;
    server_tokens off;
    default_type application/json;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/proxied;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen {host}:{port} backlog=4096 reuseport;
        location / {{ return 200 '{{"ok":true}}'; }}
        location /noted {{
            access_log {folder}/arrivals.log arrivals buffer=256k flush=1s;
            return 200 '{{"ok":true}}';
        }}
        location = /status {{ stub_status; }}
    }}
}}
"""


class Nginx:
    """A running receiver."""

    def __init__(self, process: Child, folder: pathlib.Path, port: int, version: str) -> None:
        self._process = process
        self._folder = folder
        self.version = version
        self.base = f"http://{LOOPBACK}:{port}"
        self.url = f"{self.base}/hook"
        """Answers `{"ok":true}` and notes nothing."""
        self.noted_url = f"{self.base}/noted"
        """The same, and notes when, and the Idempotency-Key."""
        self._status_connection = http.client.HTTPConnection(LOOPBACK, port, timeout=5)
        self._own_requests = 0
        self._read_to = 0

    @property
    def pid(self) -> int:
        """Process id of the master."""
        return self._process.pid

    async def count(self) -> int:
        """How many requests it has answered, these questions not counted."""
        text = await asyncio.to_thread(self._status)
        self._own_requests += 1
        return int(text.split("requests")[1].split()[2]) - self._own_requests

    async def arrivals(self) -> dict[str, float]:
        """When each key first arrived (seconds since 1970), of what was noted since this was last asked.

        A millisecond is added to what the log says, which cuts: no delivery looks earlier than it was.
        """
        await self._flush()
        with (self._folder / "arrivals.log").open() as log:
            log.seek(self._read_to)
            lines = log.read().splitlines()
            self._read_to = log.tell()
        found: dict[str, float] = {}
        for line in lines:
            at, _, key = line.partition(" ")
            found.setdefault(key, float(at) + MILLISECOND)
        found.pop(END_MARK, None)
        return found

    def _status(self) -> str:
        """Over one kept connection: it is asked fifty times a second."""
        try:
            self._status_connection.request("GET", "/status")
            return self._status_connection.getresponse().read().decode()
        except (OSError, http.client.HTTPException):  # it idled for too long, or nginx is not up yet
            self._status_connection.close()
            return _get(f"{self.base}/status")

    async def _flush(self) -> None:
        """Makes the worker write its buffer: it does so a second after the first line in it, or when told to reopen."""
        await asyncio.to_thread(_get, self.noted_url, END_MARK)
        self._own_requests += 1
        self._process.send(signal.SIGUSR1)
        await until(self._is_marked, FLUSH_SEC, "nginx's log")

    async def _is_marked(self) -> bool:
        with (self._folder / "arrivals.log").open() as log:
            log.seek(self._read_to)
            return f"{END_MARK}\n" in log.read()


@contextlib.asynccontextmanager
async def running_nginx(folder: pathlib.Path) -> AsyncIterator[Nginx]:
    """An nginx inside the block, with a configuration and files of its own in `folder`. Raises NginxUnavailable."""
    binary, extra = find_nginx()
    os.makedirs(folder, exist_ok=True)
    port = free_ports(1)[0]
    user = f"user {pwd.getpwuid(0).pw_name};" if os.geteuid() == 0 else ""
    text = CONFIGURATION.format(folder=folder, host=LOOPBACK, port=port, user=user)
    (folder / "nginx.conf").write_text(text)
    command = [binary, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")]
    async with child("nginx", command, folder / "error.log", os.environ | extra) as process:
        receiver = Nginx(process, folder, port, version_of(binary, extra))
        await until(lambda: _answers(receiver), START_SEC, "nginx")
        yield receiver


async def _answers(receiver: Nginx) -> bool:
    try:
        await receiver.count()
    except OSError:
        return False
    return True


def _get(url: str, key: str = "") -> str:
    request = urllib.request.Request(url, headers={"Idempotency-Key": key} if key else {})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=5) as answer:
        return str(answer.read().decode())
