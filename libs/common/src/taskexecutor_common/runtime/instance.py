"""Who this process is to the others: its id, where it can be reached, and the heartbeat that says so."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable

from taskexecutor_common.clock import Clock
from taskexecutor_common.config.settings import FENCE_AFTER_SEC, HEARTBEAT_INTERVAL_SEC
from taskexecutor_common.runtime.heartbeat import Beat, Heartbeat

_ANYWHERE = ("", "0.0.0.0", "[::]", "::")


def reachable_address(listen_addr: str, port: int | None, advertised: str | None) -> str | None:
    """host:port under which others reach a listener; None for unix sockets, which nobody else can."""
    if advertised:
        return advertised
    if port is None:
        return None
    host = listen_addr.rpartition(":")[0]
    return f"{socket.gethostname() if host in _ANYWHERE else host}:{port}"


def make_heartbeat(beat: Beat, component: str, instance_id: uuid.UUID, address: Callable[[], str | None]) -> Heartbeat:
    """The heartbeat of this process."""
    return Heartbeat(
        beat,
        component,
        instance_id,
        address=address,
        metadata={"host": socket.gethostname(), "pid": os.getpid()},
        interval_sec=HEARTBEAT_INTERVAL_SEC,
        fence_after_sec=FENCE_AFTER_SEC,
        now=Clock().now,
    )
