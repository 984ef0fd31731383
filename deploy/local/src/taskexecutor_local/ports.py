"""TCP ports on the loopback interface: finding free ones, and telling whether one is taken."""

from __future__ import annotations

import contextlib
import socket

LOOPBACK = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """`count` different ports that nobody listens on now.

    Another process may take one before it is used; the kernel hands them out in turn, so that is rare, and whoever
    finds its port taken says so and is started again.
    """
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [each.getsockname()[1] for each in sockets]


def why_not_free(port: int) -> str | None:
    """The system's reason why `port` cannot be listened on; None when it can."""
    with socket.socket() as probe:
        # Like servers do: connections of a previous run that linger in TIME_WAIT are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen()
        except OSError as error:
            return error.strerror
    return None
