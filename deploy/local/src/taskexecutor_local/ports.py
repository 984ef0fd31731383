"""TCP ports on the loopback interface: finding free ones, and telling whether one is taken."""

from __future__ import annotations

import contextlib
import itertools
import random
import socket
from pathlib import Path

LOOPBACK = "127.0.0.1"

# Below those that kernels hand out (from 32768 on Linux, from 49152 elsewhere). A port of theirs may be the near end of
# somebody's outgoing connection by the time that a server wants it, at its first start or when it is started again.
_KEPT_FROM_CONNECTIONS = range(10_000, 22_000)
_HANDED_OUT = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int) -> list[int]:
    """`count` different ports that nobody listens on now.

    Another server may take one before it is used; whoever finds its port taken says so and is started again.
    """
    candidates = _random_ports() if _kernel_stays_above() else _ports_of_the_kernel(count)
    return list(itertools.islice((port for port in candidates if not why_not_free(port)), count))


def _random_ports() -> list[int]:
    return random.sample(_KEPT_FROM_CONNECTIONS, len(_KEPT_FROM_CONNECTIONS))


def _kernel_stays_above() -> bool:
    try:
        lowest = int(_HANDED_OUT.read_text().split()[0])
    except FileNotFoundError:  # not Linux
        return True
    return lowest >= _KEPT_FROM_CONNECTIONS.stop


def _ports_of_the_kernel(count: int) -> list[int]:
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
