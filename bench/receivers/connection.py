"""What receivers written here have in common: an HTTP server that costs asyncio next to nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import httptools

from taskexecutor_local.ports import LOOPBACK

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n" + b'{"ok":true}'


class Connection(asyncio.Protocol):
    """One kept connection. The parser calls `on_message_complete` at the end of a request."""

    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody came."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Some of a request."""
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        """A request has arrived."""
        raise NotImplementedError

    def answer(self) -> None:
        """Says that all is well."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(ANSWER)  # type: ignore[attr-defined]  # uvloop's are not derived from WriteTransport


async def listen(connection: Callable[[], Connection]) -> asyncio.Server:
    """Listens, and says on which port, as one JSON line."""
    server = await asyncio.get_running_loop().create_server(connection, LOOPBACK, 0, backlog=4096)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    return server
