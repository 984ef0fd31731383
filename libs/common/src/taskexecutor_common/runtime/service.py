"""The life of a process: start its parts in order, wait for a signal, stop them in reverse."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from typing import Protocol

from taskexecutor_common.observability.logging import get_logger


class Service(Protocol):
    """A part of a process with a life of its own."""

    async def start(self) -> None:
        """Returns when it is ready."""

    async def stop(self) -> None:
        """Ends it; may be called twice; returns when nothing of it runs."""


async def run_services(services: Sequence[Service]) -> None:
    """Starts `services` in order, waits for SIGTERM or SIGINT, stops them in reverse order.

    A part that cannot start ends the process: those before it are stopped, and the error is the caller's.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    started: list[Service] = []
    try:
        for service in services:
            started.append(service)
            await service.start()
        get_logger("runtime").info("ready")
        await stop.wait()
        get_logger("runtime").info("stopping")
    finally:
        for service in reversed(started):
            await _stop(service)
    get_logger("runtime").info("stopped")


async def _stop(service: Service) -> None:
    try:
        await service.stop()
    except Exception:
        get_logger("runtime").exception("could not stop cleanly", of=type(service).__name__)
