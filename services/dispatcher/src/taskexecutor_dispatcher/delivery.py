"""The delivering half of a dispatcher as one Service: its parts stop in an order that loses nothing."""

from __future__ import annotations

from typing import Any

from taskexecutor_common.runtime.heartbeat import Heartbeat
from taskexecutor_dispatcher.claimer import Claimer
from taskexecutor_dispatcher.completer import Completer
from taskexecutor_dispatcher.endpoints.base import Transport


class Delivery:
    """Claimer, completer and transports. Stopping: no new claims, a while for what is in flight, the rest is released
    as RETRYING, all results are written, then the connections are closed."""

    def __init__(
        self,
        claimer: Claimer,
        completer: Completer,
        transports: list[Transport[Any]],
        heartbeat: Heartbeat,
        *,
        shutdown_timeout_sec: float,
    ) -> None:
        self._claimer = claimer
        self._completer = completer
        self._transports = transports
        self._heartbeat = heartbeat
        self._shutdown_timeout_sec = shutdown_timeout_sec

    async def start(self) -> None:
        """Begins to claim."""
        await self._completer.start()
        await self._claimer.start()

    async def stop(self) -> None:
        """See the class."""
        await self._heartbeat.drain()
        await self._claimer.stop()
        await self._claimer.drain(self._shutdown_timeout_sec)
        await self._completer.stop()
        for transport in self._transports:
            await transport.close()
