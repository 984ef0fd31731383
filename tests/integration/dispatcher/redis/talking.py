"""Servers on 127.0.0.1 that say to a Redis client exactly what a test tells them to, and a TLS front for a real one."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class Talker:
    """A listening server and what it was told."""

    port: int = 0
    commands: list[list[str]] = field(default_factory=list)
    connections: int = 0

    def url(self, credentials: str = "") -> str:
        """Where it is reached."""
        return f"redis://{credentials}{'@' if credentials else ''}127.0.0.1:{self.port}"


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def answering(*answers: bytes) -> AsyncIterator[Talker]:
    """Answers the commands of each connection one by one, `%(port)d` being its port, and closes it when the answers are
    used up."""
    talker = Talker()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talker.connections += 1
        for answer in answers:
            talker.commands.append(await _read_command(reader))
            writer.write(answer % {b"port": talker.port} if b"%(" in answer else answer)
            await writer.drain()

    async with _serving(serve) as port:
        talker.port = port
        yield talker


@asynccontextmanager
async def silent() -> AsyncIterator[Talker]:
    """Takes connections and commands, and answers nothing."""
    talker = Talker()

    async def serve(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        talker.connections += 1
        while True:
            talker.commands.append(await _read_command(reader))

    async with _serving(serve) as port:
        talker.port = port
        yield talker


@asynccontextmanager
async def endless(beginning: bytes, more: bytes) -> AsyncIterator[Talker]:
    """Answers the first command of each connection with `beginning`, and then `more` for as long as anybody listens."""
    talker = Talker()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talker.connections += 1
        talker.commands.append(await _read_command(reader))
        writer.write(beginning)
        while True:
            writer.write(more)
            await writer.drain()

    async with _serving(serve) as port:
        talker.port = port
        yield talker


@asynccontextmanager
async def behind_tls(port: int, tls: ssl.SSLContext) -> AsyncIterator[int]:
    """The server on a port of 127.0.0.1, reached over TLS on the port that this gives."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            await asyncio.gather(_pump(reader, inner_writer), _pump(inner_reader, writer))
        finally:
            inner_writer.close()

    async with _serving(serve, tls) as front:
        yield front


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def _read_command(reader: asyncio.StreamReader) -> list[str]:
    """One command as RESP's arrays of bulk strings have it."""
    count = int((await reader.readuntil(b"\r\n"))[1:])
    words = []
    for _ in range(count):
        length = int((await reader.readuntil(b"\r\n"))[1:])
        words.append((await reader.readexactly(length + 2))[:-2].decode())
    return words


@asynccontextmanager
async def _serving(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client went away, or the test is over
        finally:
            tasks.discard(task)
            writer.transport.abort() if task.cancelling() else writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        ending = list(tasks)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        await server.wait_closed()
