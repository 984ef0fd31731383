"""A receiver that answers every request after some seconds.

nginx has no such thing, and a few hundred waiting requests cost asyncio next to nothing.

A program: `python -m bench.receivers.slow SECONDS`. It prints one JSON line with its port, and serves until it is ended.
"""

from __future__ import annotations

import asyncio
import json
import sys

import httptools
import uvloop

from taskexecutor_local.ports import LOOPBACK

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n" + b'{"ok":true}'


class Connection(asyncio.Protocol):
    """One kept connection."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody came."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Some of a request."""
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        """Called by the parser at the end of a request."""
        asyncio.get_running_loop().call_later(self._seconds, self._answer)

    def _answer(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(ANSWER)  # type: ignore[attr-defined]  # uvloop's are not derived from WriteTransport


async def serve(seconds: float) -> None:
    """Serves until cancelled."""
    server = await asyncio.get_running_loop().create_server(lambda: Connection(seconds), LOOPBACK, 0, backlog=4096)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(float(sys.argv[1])))
