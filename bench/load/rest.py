"""Creates jobs over REST as fast as they are taken: keep-alive connections on httptools and uvloop, one request each.

A program: `python -m bench.load.rest URL KEY ENDPOINT CONNECTIONS SECONDS`. It prints one JSON line. The client takes
about 0.02 ms of CPU per request, a tenth of what answering one costs, so that it is the system that is measured.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import time
import urllib.parse
from collections import Counter
from typing import cast

import httptools
import uvloop

from bench.job_input import job_input

WARM_UP_SEC = 1.0
RUN_AT = "2100-01-01T00:00:00Z"
"""Jobs are due in the far future: their creation is measured, not their delivery beside it."""


class Load:
    """What all connections share."""

    def __init__(self, host: str, key: str, endpoint: str) -> None:
        self._endpoint = endpoint
        self._prefix = secrets.token_hex(4)
        self._number = 0
        self._head = (
            f"POST /jobs HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        ).encode()
        self.statuses: Counter[int] = Counter()
        self.is_over = False

    def next_request(self) -> bytes:
        """One more creation, with an idempotency key of its own."""
        self._number += 1
        body = json.dumps(
            {
                "endpoint": self._endpoint,
                "trigger": "DELAYED",
                "run_at": RUN_AT,
                "idempotency_key": f"{self._prefix}-{self._number}",
                "input": job_input(self._number),
            }
        ).encode()
        return self._head + str(len(body)).encode() + b"\r\n\r\n" + body


class Connection(asyncio.Protocol):
    """Sends, waits for the whole answer, sends again."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._transport: asyncio.WriteTransport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self.closed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Sends the first request."""
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's are not derived from it
        self._transport.write(self._load.next_request())

    def data_received(self, data: bytes) -> None:
        """Some of an answer."""
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        """Called by the parser at the end of an answer."""
        self._load.statuses[self._parser.get_status_code()] += 1
        assert self._transport is not None
        if self._load.is_over:
            self._transport.close()
        else:
            self._transport.write(self._load.next_request())

    def connection_lost(self, exc: Exception | None) -> None:
        """Ended, by us or by the server."""
        self.closed.set_result(exc)


async def measure(url: str, key: str, endpoint: str, connections: int, seconds: float) -> dict[str, float]:
    """Jobs created between the end of the warm-up and the end, by the answers that came."""
    address = urllib.parse.urlsplit(url)
    load = Load(address.netloc, key, endpoint)
    loop = asyncio.get_running_loop()
    opened = [
        await loop.create_connection(lambda: Connection(load), address.hostname or "", address.port or 80)
        for _ in range(connections)
    ]
    await asyncio.sleep(min(WARM_UP_SEC, seconds))
    before, begin, cpu = load.statuses.total(), time.perf_counter(), time.process_time()
    await asyncio.sleep(seconds)
    count, elapsed, used = load.statuses.total() - before, time.perf_counter() - begin, time.process_time() - cpu
    load.is_over = True
    await asyncio.wait([connection.closed for _, connection in opened], timeout=10)
    failed = load.statuses.total() - load.statuses[201]
    return {"count": count, "sec": elapsed, "cpu_sec": used, "failed": failed}


def main() -> None:
    """Entry point of the program."""
    url, key, endpoint, connections, seconds = sys.argv[1:]
    print(json.dumps(uvloop.run(measure(url, key, endpoint, int(connections), float(seconds)))), flush=True)


if __name__ == "__main__":
    main()
