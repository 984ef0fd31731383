"""How HTTP connections come about: name, address, socket, TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl

from taskexecutor_dispatcher.endpoints.checked_sockets import CheckedSockets
from taskexecutor_dispatcher.endpoints.http_connection import HttpConnection
from taskexecutor_dispatcher.endpoints.http_failures import NotConnected

# How long a TLS connection that is no longer wanted waits for the other side's goodbye.
_TLS_GOODBYE_SEC = 1.0


class HttpConnections:
    """Connects over sockets that are checked for the address they reach, with `tls` for https."""

    def __init__(self, sockets: CheckedSockets, tls: ssl.SSLContext) -> None:
        self._sockets = sockets
        self._tls = tls
        self._loop = asyncio.get_running_loop()

    async def connect(self, connection: HttpConnection) -> None:
        """Connects it to its origin. Raises NotConnected."""
        origin = connection.origin
        is_tls = origin.scheme == "https"
        try:
            await self._loop.create_connection(
                lambda: connection,
                sock=await self._sockets.connect(origin.host, origin.port),
                ssl=self._tls if is_tls else None,
                server_hostname=origin.host.rstrip(".") if is_tls else None,
                ssl_shutdown_timeout=_TLS_GOODBYE_SEC if is_tls else None,
            )
        except OSError as cause:
            raise NotConnected(cause) from cause
        except ValueError as cause:  # TLS cannot ask for a server of that name
            raise NotConnected(socket.gaierror(socket.EAI_NONAME, "not a host name")) from cause
