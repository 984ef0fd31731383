"""Using kept connections without losing deliveries to one that was just closed, and without sending anything twice.

A server may close an idle connection at any moment, and a request that crosses the closing on its way is lost although
nothing was wrong. Sending it again is right only when the server cannot have read it. So, on a connection that has
carried a request before:

1. Before it is used, the kernel is asked whether the closing, or a byte that nobody asked for, has already arrived.
   If so, nothing is sent on it and another connection is taken.
2. When it ends after the request was written and before an answer came, the kernel is asked how much of the request
   the other side's kernel has acknowledged. The end of a stream (FIN) carries the acknowledgement of all that had
   arrived when it was sent. If that is nothing, the request came to a closed door and is sent on another connection.
   If it is anything, or the connection was reset, or the kernel cannot tell (not Linux), then nobody knows: the attempt
   fails and the retry policy decides.

aiohttp's own repetition of GET, PUT and DELETE asks none of this and is kept from happening.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from weakref import WeakSet

from aiohttp import ClientConnectionError, ClientConnectorError, ClientHandlerType, ClientRequest, ClientResponse
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection

# tcpi_bytes_acked in Linux's struct tcp_info (since 4.1): after 8 bytes, 24 words of 4 and 2 of 8.
_BYTES_ACKED = struct.Struct("=120xQ")

_used: WeakSet[ResponseHandler] = WeakSet()
"""The connections that carried a request before."""


class StaleConnection(Exception):
    """The connection was closed or spoilt while it was idle. Nothing was sent on it."""


class ConnectionLost(Exception):
    """The connection ended before an answer came, and the other side may have read the request."""


class DeliveryRequest(ClientRequest):
    """aiohttp's request, which keeps an eye on a reused connection while it is under way."""

    kept: KeptConnection | None = None
    is_sent: bool = False

    async def send(self, conn: Connection) -> ClientResponse:
        """Writes the request. Raises StaleConnection instead when a reused connection has ended meanwhile."""
        protocol = conn.protocol
        if protocol is None:
            raise StaleConnection
        if protocol in _used:
            self.kept = KeptConnection(conn)
            if protocol.should_close or not self.kept.is_quiet():
                raise StaleConnection
        _used.add(protocol)
        self.is_sent = True
        return await super().send(conn)

    def was_never_read(self, lost: ClientConnectionError) -> bool:
        """True when it is certain that the other side's application saw nothing of the request."""
        if self.kept is None or (isinstance(lost, OSError) and lost.errno == errno.ECONNRESET):
            return False
        return self.kept.took_nothing()

    def let_go(self) -> None:
        """Closes the second handle on a reused connection."""
        if self.kept is not None:
            self.kept.close()
            self.kept = None


class KeptConnection:
    """A handle of our own on a reused connection's socket: aiohttp's is closed by the time that we want to ask."""

    def __init__(self, connection: Connection) -> None:
        transport = connection.transport
        if transport is None:
            raise StaleConnection
        try:
            handle = os.dup(transport.get_extra_info("socket").fileno())
        except OSError:
            raise StaleConnection from None
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, fileno=handle)
        self._acked = self._bytes_acked()

    def is_quiet(self) -> bool:
        """True when the other side has neither closed nor said anything since its last answer."""
        try:
            self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def took_nothing(self) -> bool:
        """True when no byte that was written since then has been acknowledged."""
        acked = self._bytes_acked()
        return acked is not None and acked == self._acked

    def close(self) -> None:
        """Gives the handle back; the connection ends with aiohttp's."""
        self._socket.close()

    def _bytes_acked(self) -> int | None:
        option = getattr(socket, "TCP_INFO", None)
        if option is None:
            return None
        info = self._socket.getsockopt(socket.IPPROTO_TCP, option, _BYTES_ACKED.size)
        return _BYTES_ACKED.unpack(info)[0] if len(info) == _BYTES_ACKED.size else None


class Exchange:
    """One delivery's way over the wire. As aiohttp's middleware it stands where connections are taken and lost."""

    def __init__(self) -> None:
        self._request: DeliveryRequest | None = None
        self._response: ClientResponse | None = None

    async def send(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        """Sends until the request is on a connection whose other side may have read it; then it is sent for good.

        Each further round has used up a kept connection, so there are no more rounds than the pool holds.
        """
        assert isinstance(request, DeliveryRequest)
        self._request = request
        while self._response is None:
            try:
                self._response = await handler(request)
            except StaleConnection:
                pass
            except ClientConnectorError:
                raise
            except ClientConnectionError as lost:
                if not request.was_never_read(lost):
                    raise ConnectionLost from lost
            finally:
                request.let_go()
        return self._response

    def describe_progress(self) -> str:
        """What a delivery that ran out of time had not got."""
        if self._response is not None:
            return f"The receiver answered {self._response.status}, but the answer was not complete"
        if self._request is not None and self._request.is_sent:
            return "The receiver did not answer"
        return "No connection came about"

    def close(self) -> None:
        """Closes the connection unless the answer was read to its end, in which case it is kept already."""
        if self._response is not None:
            self._response.close()
