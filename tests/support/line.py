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

from tests.support.link import Link

_COMMAND_COMPLETE = b"C"
_READY = b"Z"
_IDLE = b"I"
_CHUNK = 65_536


class Cut(Enum):
    """When the line is to be cut."""

    BEFORE = "the next statement does not arrive"
    AFTER_COMMIT = "the next statement is committed, its answer is lost"


class Line(Link):
    """Connections to the database at `url` through here; see `open_line`."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        super().__init__(parts.hostname or "", parts.port or 5432)
        self._url = url
        self._planned: Cut | None = None
        self.cuts = 0
        """How often a plan was carried out."""

    @property
    def url(self) -> str:
        """The database, by way of this line."""
        return self.database_url(self._url)

    def plan(self, cut: Cut) -> None:
        """Cuts the connection that carries the next statement, once."""
        self._planned = cut

    async def _pass_requests(self, client: asyncio.StreamReader, to_server: asyncio.StreamWriter) -> None:
        while request := await client.read(_CHUNK):
            await self._hold()
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
            await self._hold()
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
    await line.open()
    try:
        yield line
    finally:
        await line.close()
