"""Closes a server's door before its rooms: gRPC ends its connections first, and what it listens on a moment later.

Whoever is told that a connection ends opens the next one at once. In that moment the kernel still accepts it, the request
goes out, and then the listener closes with the connection in its queue: the caller sees its request lost, and cannot know
that nobody read it. A door that is closed first refuses the connection, which says so.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

_UNIX = "unix:"
_OPEN_FILES = Path("/proc/self/fd")


def stop_listening(address: str, port: int | None) -> None:
    """Lets nobody new in; connections that are open stay. `address` is `unix:PATH`, or else `port` is the TCP port.

    gRPC has no call for this. A path is removed; a TCP socket is shut down under gRPC, which logs that accepting failed. Does
    nothing for TCP where the system is not Linux.
    """
    if address.startswith(_UNIX):
        Path(address.removeprefix(_UNIX)).unlink(missing_ok=True)
        return
    for file in _OPEN_FILES.iterdir() if _OPEN_FILES.exists() else ():
        # Files come and go meanwhile; the listener does not.
        with suppress(OSError):
            if file.is_socket():
                _shut_if_listening(int(file.name), port)


def _shut_if_listening(descriptor: int, port: int | None) -> None:
    with socket.socket(fileno=os.dup(descriptor)) as found:
        is_tcp = found.family in {socket.AF_INET, socket.AF_INET6} and found.type == socket.SOCK_STREAM
        if is_tcp and found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and found.getsockname()[1] == port:
            found.shutdown(socket.SHUT_RD)
