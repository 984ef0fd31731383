"""Using aiohttp's kept connections without losing deliveries to one that was just closed.

The rule is that of http.py. aiohttp has it for GET, PUT and DELETE only, and does not tell whether an answer had begun,
so the kernel is asked:

1. before a kept connection is used, whether the closing, or a byte that nobody asked for, has already arrived: then
   nothing is sent on it and another connection is taken;
2. when one ends before an answer came, how much went to and fro since. If the other side's kernel acknowledged none of
   the request, or sent no byte of its own, the request is sent once more, on a connection that is new.

Where the kernel cannot tell (not Linux) nothing is sent again. Nor is it over TLS after part of the request was taken,
because there the closing itself has bytes.
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

from taskexecutor_dispatcher.endpoints.http_failures import ConnectionLost, OutOfTime

# tcpi_bytes_acked and tcpi_bytes_received in Linux's struct tcp_info (since 4.1): after 8 bytes, 24 words of 4 and 2 of 8.
_ACKED_AND_RECEIVED = struct.Struct("=120xQQ")

_used: WeakSet[ResponseHandler] = WeakSet()
"""The connections that carried a request before."""


class StaleConnection(Exception):
    """The connection was closed or spoilt while it was idle. Nothing was sent on it."""


class DeliveryRequest(ClientRequest):
    """aiohttp's request, which keeps an eye on a reused connection while it is under way."""

    kept: KeptConnection | None = None
    needs_fresh = False
    is_sent = False

    async def send(self, conn: Connection) -> ClientResponse:
        """Writes the request. Raises StaleConnection instead when a reused connection will not do."""
        protocol = conn.protocol
        if protocol is None:
            raise StaleConnection
        if protocol in _used:
            if self.needs_fresh:
                raise StaleConnection
            self.kept = KeptConnection(conn)
            if protocol.should_close or not self.kept.is_quiet():
                raise StaleConnection
        _used.add(protocol)
        self.is_sent = True
        return await super().send(conn)

    def may_be_sent_again(self, lost: ClientConnectionError) -> bool:
        """True when a reused connection ended without a byte of an answer."""
        if self.kept is None:
            return False
        was_reset = isinstance(lost, OSError) and lost.errno == errno.ECONNRESET
        return self.kept.took_nothing() or self.kept.said_nothing(but_goodbye=not was_reset)

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
        self._before = self._acked_and_received()

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
        """True when the other side's kernel has acknowledged none of what was written since: the end of a stream (FIN)
        carries the acknowledgement of all that had arrived when it was sent."""
        now = self._acked_and_received()
        return self._before is not None and now is not None and now[0] == self._before[0]

    def said_nothing(self, *, but_goodbye: bool) -> bool:
        """True when the other side has sent no byte since. The end of a stream counts as one."""
        now = self._acked_and_received()
        return self._before is not None and now is not None and now[1] - self._before[1] <= but_goodbye

    def close(self) -> None:
        """Gives the handle back; the connection ends with aiohttp's."""
        self._socket.close()

    def _acked_and_received(self) -> tuple[int, int] | None:
        option = getattr(socket, "TCP_INFO", None)
        if option is None:
            return None
        info = self._socket.getsockopt(socket.IPPROTO_TCP, option, _ACKED_AND_RECEIVED.size)
        return _ACKED_AND_RECEIVED.unpack(info) if len(info) == _ACKED_AND_RECEIVED.size else None


class Exchange:
    """One delivery's way over the wire. As aiohttp's middleware it stands where connections are taken and lost."""

    def __init__(self) -> None:
        self._request: DeliveryRequest | None = None
        self._response: ClientResponse | None = None

    async def send(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        """Sends until an answer comes or the request may not be sent again. Each further round has used up a kept
        connection, so there are no more rounds than the pool holds."""
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
                if not request.may_be_sent_again(lost):
                    raise ConnectionLost from lost
                request.needs_fresh = True
            finally:
                request.let_go()
        return self._response

    def what_is_missing(self) -> str:
        """What a delivery that ran out of time had not got."""
        if self._request is None or not self._request.is_sent:
            return "No connection came about"
        status = None if self._response is None else self._response.status
        return OutOfTime.after_sending(status).what_is_missing

    def close(self) -> None:
        """Closes the connection unless the answer was read to its end, in which case it is kept already."""
        if self._response is not None:
            self._response.close()
