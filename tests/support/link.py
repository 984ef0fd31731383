"""A TCP link that fails as networks do: cut, reset, half-open, slow, or reset in the middle of an answer."""

from __future__ import annotations

import asyncio
import socket
import struct
import urllib.parse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_CHUNK = 65_536
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER of no time: close sends RST


class Link:
    """Connections to `host:port` by way of a port of 127.0.0.1; see `open_link`."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._is_cut = False
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._delay_sec = 0.0
        self._answer_bytes_left: int | None = None
        self.breaks = 0
        """Connections that were broken on purpose."""

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def address(self) -> str:
        """The same as host:port."""
        return f"127.0.0.1:{self.port}"

    def database_url(self, url: str) -> str:
        """The URL of a database at this link's end, by way of this link."""
        parts = urllib.parse.urlsplit(url)
        login = parts.netloc.rpartition("@")[0]
        return f"postgresql://{login}@{self.address}{parts.path}?sslmode=disable&gssencmode=disable"

    def cut(self) -> None:
        """Resets all connections and takes no new ones until `mend`."""
        self._is_cut = True
        self.reset()

    def reset(self) -> None:
        """Resets all connections; new ones are welcome."""
        for connection in list(self._connections):
            self._break(connection)

    def stall(self) -> None:
        """Half-open: connections stay and new ones are taken, and nothing passes, until `mend`."""
        self._flowing.clear()

    def slow(self, delay_sec: float) -> None:
        """Each piece of data waits this long, until `mend`."""
        self._delay_sec = delay_sec

    def reset_in_answer(self, after_bytes: int) -> None:
        """Resets the connection that carries the next answer when so many bytes of it have passed, once."""
        self._answer_bytes_left = after_bytes

    def mend(self) -> None:
        """All is well again; what was held back passes."""
        self._is_cut = False
        self._delay_sec = 0.0
        self._answer_bytes_left = None
        self._flowing.set()

    async def open(self) -> None:
        """Listens."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def close(self) -> None:
        """Resets all connections and listens no more."""
        assert self._server is not None
        self._server.close()
        open_ones = list(self._connections)
        self.cut()
        if open_ones:
            await asyncio.wait(open_ones)

    def _accept(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        if self._is_cut:
            _reset(to_client)
            return
        connection = asyncio.create_task(self._connect(client, to_client))
        self._connections[connection] = to_client

        def end(_: asyncio.Task[None]) -> None:
            self._connections.pop(connection, None)
            to_client.close()  # here, because a task that is cancelled at once never runs

        connection.add_done_callback(end)

    def _break(self, connection: asyncio.Task[None]) -> None:
        self.breaks += 1
        _reset(self._connections.pop(connection))
        connection.cancel()

    async def _connect(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        try:
            server, to_server = await asyncio.open_connection(*self._target)
        except OSError:
            return  # nobody is there: the caller sees its connection end
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
            await self._hold()
            to_server.write(request)
            await to_server.drain()

    async def _pass_answers(self, server: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        while answer := await server.read(_CHUNK):
            await self._hold()
            left = self._answer_bytes_left
            if left is not None and len(answer) > left:
                self._answer_bytes_left = None
                self.breaks += 1
                to_client.write(answer[:left])
                await to_client.drain()
                _reset(to_client)
                return
            to_client.write(answer)
            await to_client.drain()

    async def _hold(self) -> None:
        if self._delay_sec:
            await asyncio.sleep(self._delay_sec)
        await self._flowing.wait()


def _reset(writer: asyncio.StreamWriter) -> None:
    raw = writer.get_extra_info("socket")
    if raw is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    writer.transport.abort()


@asynccontextmanager
async def open_link(host: str, port: int) -> AsyncIterator[Link]:
    """A link to host:port."""
    link = Link(host, port)
    await link.open()
    try:
        yield link
    finally:
        await link.close()
