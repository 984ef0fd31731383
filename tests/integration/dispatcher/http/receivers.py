"""Receivers of deliveries on 127.0.0.1 that do exactly what a test tells them to, byte by byte."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Received:
    """One request as it came over the wire."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes

    def all(self, name: str) -> list[str]:
        """The values of a header, in order."""
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def header(self, name: str) -> str:
        """The value of a header that is there exactly once."""
        (value,) = self.all(name)
        return value


@dataclass
class Connection:
    """One accepted connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    receiver: Receiver

    async def request(self) -> Received:
        """Reads the next request whole; raises asyncio.IncompleteReadError at the end of the stream."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *lines = head[:-4].split("\r\n")
        headers = [(name, value.strip()) for name, _, value in (text.partition(":") for text in lines)]
        length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
        received = Received(line, headers, await self.reader.readexactly(length))
        self.receiver.requests.append(received)
        return received

    async def write(self, data: bytes) -> None:
        """Sends bytes as they are."""
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, body: bytes = b"OK", *, status: int = 200, headers: str = "") -> None:
        """Sends an answer with its length."""
        await self.write(f"HTTP/1.1 {status} Sic\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body)

    def reset(self) -> None:
        """Closes at once, without a proper end of the stream."""
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def ended(self) -> None:
        """Waits until the other side has closed."""
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            pass


Script = Callable[[Connection], Awaitable[None]]


@dataclass
class Receiver:
    """A listening receiver and what it saw."""

    port: int
    requests: list[Received] = field(default_factory=list)
    connections: int = 0
    closed: asyncio.Queue[None] = field(default_factory=asyncio.Queue)
    """Gets an item for every connection whose script has ended."""

    def url(self, path: str = "/", scheme: str = "http") -> str:
        """An address under which it is reached."""
        return f"{scheme}://127.0.0.1:{self.port}{path}"


@asynccontextmanager
async def receiving(
    script: Script, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Receiver]:
    """Runs `script` for each connection; the connection is closed when it returns."""
    scripts: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        scripts.add(task)
        receiver.connections += 1
        try:
            await script(Connection(reader, writer, receiver))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client went away, or the test is over
        finally:
            scripts.discard(task)
            receiver.closed.put_nowait(None)
            writer.transport.abort() if task.cancelling() else writer.close()

    server = await asyncio.start_server(serve, host, 0, ssl=tls, limit=4 * 1024 * 1024)
    receiver = Receiver(server.sockets[0].getsockname()[1])
    try:
        yield receiver
    finally:
        server.close()
        ending = list(scripts)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        await server.wait_closed()


def answering(body: bytes = b"OK", *, status: int = 200, headers: str = "") -> Script:
    """Answers every request of every connection alike."""

    async def script(connection: Connection) -> None:
        while True:
            await connection.request()
            await connection.answer(body, status=status, headers=headers)

    return script


def saying(*parts: bytes) -> Script:
    """Reads one request, writes bytes, closes."""

    async def script(connection: Connection) -> None:
        await connection.request()
        for part in parts:
            await connection.write(part)

    return script
