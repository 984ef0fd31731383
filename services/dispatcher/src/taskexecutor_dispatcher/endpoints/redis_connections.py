"""Connections to Redis that go to judged addresses, repeat nothing by themselves and speak RESP2."""

from __future__ import annotations

import re
import select
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from redis.asyncio.connection import BlockingConnectionPool, Connection
from redis.exceptions import InvalidResponse

from taskexecutor_dispatcher.endpoints.checked_sockets import CheckedSockets
from taskexecutor_dispatcher.endpoints.redis_urls import RedisServer

MAX_ANSWER_BYTES = 64 * 1024
"""An entry's id or an error is all that is asked for."""

# Every Redis since 1.2 speaks it, and an entry's id is the same in RESP3.
_PROTOCOL = 2
# How arrays, maps, sets, pushes and attributes begin.
_MANY_IN_ONE = re.compile(rb"\n[*%~>|]")
# A server that hangs must not hold up the end of its connection by not answering TLS's goodbye.
_TLS_GOODBYE_SEC = 1.0


class NotConnected(Exception):
    """No connection came about; the cause is the OSError that says why. No OSError itself: the library would turn one
    into text and lose it."""


class _BoundedReader:
    """The bytes of a connection, as far as they may be an answer to what is asked here: a short text or number.

    The library would go on putting together whatever a server sends, and makes room for as many elements as an array
    says that it has, before any of them is there.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._last = b"\n"
        self.received = 0
        """Bytes since somebody set it to 0."""

    async def read(self, most: int) -> bytes:
        """As asyncio.StreamReader.read. Raises InvalidResponse."""
        data: bytes = await self._stream.read(most)
        self.received += len(data)
        if self.received > MAX_ANSWER_BYTES or _MANY_IN_ONE.search(self._last + data):
            raise InvalidResponse("the answer is not one of those that there are")
        self._last = data[-1:]
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class CheckedConnection(Connection):
    """The library's connection over a socket that we opened."""

    def __init__(self, *, sockets: CheckedSockets, tls: ssl.SSLContext | None, **settings: Any) -> None:
        super().__init__(**settings)
        self._sockets = sockets
        self._tls = tls
        self._opened: socket.socket | None = None
        self._bounded: _BoundedReader

    async def read_response(self, *args: Any, **settings: Any) -> Any:
        """Reads one answer, which may not be longer than MAX_ANSWER_BYTES."""
        self._bounded.received = 0
        return await super().read_response(*args, **settings)

    async def _connect(self) -> None:
        try:
            self._opened = await self._sockets.connect(self.host, self.port)
            await super()._connect()  # type: ignore[no-untyped-call]  # the library has no types here
            self._bounded = _BoundedReader(self._reader)
            self._reader = self._bounded  # type: ignore[assignment]  # it is all that the library asks of one
        except OSError as failure:
            raise NotConnected from failure
        finally:
            self._opened = None

    async def can_read(self) -> bool:
        """True when a kept connection is of no use: something unexpected came, or it has ended. The kernel is asked,
        too, since it knows of an end before the event loop has got round to it."""
        return self._has_ended() or bool(await super().can_read())

    def _has_ended(self) -> bool:
        if self._writer is None or not hasattr(select, "POLLRDHUP"):  # not Linux
            return False
        ends = select.poll()
        ends.register(self._writer.get_extra_info("socket").fileno(), select.POLLRDHUP)
        return bool(ends.poll(0))

    def _connection_arguments(self) -> dict[str, Any]:
        arguments: dict[str, Any] = {"sock": self._opened}
        if self._tls is not None:
            arguments |= {"ssl": self._tls, "server_hostname": self.host, "ssl_shutdown_timeout": _TLS_GOODBYE_SEC}
        return arguments


class RedisConnections:
    """The connections to one server, `max_connections` at most; who finds none free waits for one."""

    def __init__(
        self, server: RedisServer, sockets: CheckedSockets, tls: ssl.SSLContext, *, max_connections: int
    ) -> None:
        self._pool = BlockingConnectionPool(
            max_connections=max_connections,
            timeout=None,
            connection_class=CheckedConnection,
            sockets=sockets,
            tls=tls if server.tls else None,
            host=server.host,
            port=server.port,
            username=server.username,
            password=server.password,
            db=server.database,
            decode_responses=True,
            protocol=_PROTOCOL,
            socket_timeout=None,  # the deadline is set around the whole delivery instead
            driver_info=None,  # saves two round trips for every connection
        )

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Connection]:
        """A connection to send one command on. A kept one that the server closed meanwhile is replaced first."""
        connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]  # the library has no types here
        try:
            yield connection
        finally:
            await self._pool.release(connection)

    async def close(self) -> None:
        """Closes all of them, used or not."""
        await self._pool.disconnect()
