"""A line to PostgreSQL that can be cut at the moments that matter: before a statement arrives, or after it was committed.

It passes bytes between a client and the server and understands only the frames of the protocol: a type, a length, a body
(PostgreSQL documentation, "Message Formats").
"""

from __future__ import annotations

import asyncio
import urllib.parse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum

_COMMAND_COMPLETE = b"C"
_READY = b"Z"
_IDLE = b"I"
_CHUNK = 65_536


class Cut(Enum):
    """When the line is to be cut."""

    BEFORE = "the next statement does not arrive"
    AFTER_COMMIT = "the next statement is committed, its answer is lost"


class Line:
    """Connections to `url` through here; see `open_line`."""

    def __init__(self, url: str) -> None:
        self._target = urllib.parse.urlsplit(url)
        self._planned: Cut | None = None
        self._is_down = False
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.cuts = 0
        """How often a plan was carried out."""

    @property
    def url(self) -> str:
        """The database, by way of this line."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        login = self._target.netloc.rpartition("@")[0]
        return f"postgresql://{login}@127.0.0.1:{port}{self._target.path}?sslmode=disable&gssencmode=disable"

    def plan(self, cut: Cut) -> None:
        """Cuts the connection that carries the next statement, once."""
        self._planned = cut

    def take_down(self) -> None:
        """Cuts all connections and takes no new ones until `bring_up`."""
        self._is_down = True
        for connection in self._connections:
            connection.cancel()

    def bring_up(self) -> None:
        """Takes connections again."""
        self._is_down = False

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def _close(self) -> None:
        assert self._server is not None
        self.take_down()
        self._server.close()
        if self._connections:
            await asyncio.wait(self._connections)

    def _accept(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        if self._is_down:
            to_client.close()
            return
        connection = asyncio.create_task(self._connect(client, to_client))
        self._connections.add(connection)

        def end(_: asyncio.Task[None]) -> None:
            self._connections.discard(connection)
            to_client.close()  # here, because a task that is cancelled at once never runs

        connection.add_done_callback(end)

    async def _connect(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_connection(self._target.hostname, self._target.port)
        ways = [
            asyncio.create_task(self._pass_requests(client, to_server)),
            asyncio.create_task(self._pass_answers(server, to_client)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            to_server.close()  # first, because the rest may be cut short by a cancellation
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pass_requests(self, client: asyncio.StreamReader, to_server: asyncio.StreamWriter) -> None:
        while request := await client.read(_CHUNK):
            if self._planned is Cut.BEFORE:
                self._carry_out()
                return
            to_server.write(request)

    async def _pass_answers(self, server: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        """Holds back what the server says until it is ready for more: then it was committed, if it was a statement."""
        held = b""
        executed = False
        while True:
            kind = await server.readexactly(1)
            length = await server.readexactly(4)
            body = await server.readexactly(int.from_bytes(length) - 4)
            held += kind + length + body
            executed |= kind == _COMMAND_COMPLETE
            if self._planned is not Cut.AFTER_COMMIT:
                to_client.write(held)
                held, executed = b"", False
            elif kind == _READY:
                if executed and body == _IDLE:
                    self._carry_out()
                    return
                to_client.write(held)
                held = b""

    def _carry_out(self) -> None:
        self._planned = None
        self.cuts += 1


@asynccontextmanager
async def open_line(url: str) -> AsyncIterator[Line]:
    """A line to the database at `url`."""
    line = Line(url)
    await line._open()
    try:
        yield line
    finally:
        await line._close()
