"""Hints to other services: fire and forget, merged while one is under way, never in the way of their cause.

A hint that is lost costs the receiver's poll interval and nothing else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from taskexecutor.internal.v1 import dispatcher_pb2, dispatcher_pb2_grpc, scheduler_pb2, scheduler_pb2_grpc
from taskexecutor_common.observability import metrics
from taskexecutor_common.observability.logging import get_logger

_PEERS_FRESH_SEC = 2.0
_CALL_TIMEOUT_SEC = 1.0
_OPTIONS = [("grpc.enable_http_proxy", 0)]  # peers are neighbours; a proxy of the environment is for the world outside

_log = get_logger("hints")


class Peer(Protocol):
    """An instance that can be hinted; the store's Instance is one."""

    @property
    def address(self) -> str | None:
        """Where its internal rpc listens."""


FindPeers = Callable[[], Awaitable[Collection[Peer]]]


class Peers:
    """The live instances of one component and a channel to each, looked up again when a caller finds them old."""

    def __init__(self, find: FindPeers) -> None:
        self._find = find
        self._looked_up = float("-inf")
        self._channels: dict[str, grpc.aio.Channel] = {}

    async def channels(self) -> list[grpc.aio.Channel]:
        """A channel to each live instance."""
        if time.monotonic() - self._looked_up > _PEERS_FRESH_SEC:
            addresses = {peer.address for peer in await self._find() if peer.address}
            self._looked_up = time.monotonic()
            for gone in self._channels.keys() - addresses:
                await self._channels.pop(gone).close()
            for new in addresses - self._channels.keys():
                self._channels[new] = grpc.aio.insecure_channel(new, options=_OPTIONS)
        return list(self._channels.values())

    async def close(self) -> None:
        """Closes all channels."""
        for channel in self._channels.values():
            await channel.close()
        self._channels.clear()


class _Sender:
    """Sends what has gathered to all peers, one round at a time; what comes meanwhile goes with the next."""

    def __init__(self, target: str, find: FindPeers) -> None:
        self._target = target
        self.peers = Peers(find)
        self._task: asyncio.Task[None] | None = None

    def poke(self) -> None:
        """Makes sure that a round follows."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._send_all(), name=f"hints-{self._target}")

    def take(self) -> Callable[[grpc.aio.Channel], Awaitable[Any]] | None:
        """What has gathered, as a call on a channel; None when there is nothing."""
        raise NotImplementedError

    async def start(self) -> None:
        """Nothing to do: a Service so that it is stopped in its turn."""

    async def stop(self) -> None:
        """Drops what is under way and closes the channels."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.peers.close()

    async def _send_all(self) -> None:
        while (call := self.take()) is not None:
            try:
                channels = await self.peers.channels()
            except Exception:
                metrics.HINTS.labels(target=self._target, result="no_peers").inc()
                _log.debug("hint dropped: peers unknown", target=self._target, exc_info=True)
                return
            for result in await asyncio.gather(*(call(channel) for channel in channels), return_exceptions=True):
                failed = isinstance(result, BaseException)
                metrics.HINTS.labels(target=self._target, result="failed" if failed else "sent").inc()


class DispatcherHints(_Sender):
    """Tells dispatchers which queues have work, and which secrets to read again."""

    def __init__(self, find: FindPeers) -> None:
        super().__init__("dispatcher", find)
        self._queues: set[UUID] = set()
        self._secrets: set[tuple[str, str]] = set()

    def wake(self, queues: Iterable[UUID]) -> None:
        """These queues have work."""
        self._queues.update(queues)
        if self._queues:
            self.poke()

    def forget_secret(self, namespace: str, name: str) -> None:
        """This secret was rotated."""
        self._secrets.add((namespace, name))
        self.poke()

    def take(self) -> Callable[[grpc.aio.Channel], Awaitable[Any]] | None:
        """See _Sender.take."""
        if not self._queues and not self._secrets:
            return None
        wake = dispatcher_pb2.DispatcherServiceWakeRequest(queues=[queue.bytes for queue in self._queues])
        forget = [
            dispatcher_pb2.DispatcherServiceForgetSecretRequest(namespace=namespace, name=name)
            for namespace, name in self._secrets
        ]
        self._queues, self._secrets = set(), set()

        async def call(channel: grpc.aio.Channel) -> None:
            stub = dispatcher_pb2_grpc.DispatcherServiceStub(channel)
            for request in forget:
                await stub.ForgetSecret(request, timeout=_CALL_TIMEOUT_SEC)
            if wake.queues:
                await stub.Wake(wake, timeout=_CALL_TIMEOUT_SEC)

        return call


class SchedulerHints(_Sender):
    """Tells schedulers that something new is due."""

    def __init__(self, find: FindPeers) -> None:
        super().__init__("scheduler", find)
        self._due_at: datetime | None = None

    def wake(self, due_at: datetime) -> None:
        """Something is due then, by the database's clock."""
        self._due_at = due_at if self._due_at is None else min(due_at, self._due_at)
        self.poke()

    def take(self) -> Callable[[grpc.aio.Channel], Awaitable[Any]] | None:
        """See _Sender.take."""
        if self._due_at is None:
            return None
        due_at = Timestamp()
        due_at.FromDatetime(self._due_at)
        self._due_at = None

        async def call(channel: grpc.aio.Channel) -> None:
            stub = scheduler_pb2_grpc.SchedulerServiceStub(channel)
            await stub.Wake(scheduler_pb2.SchedulerServiceWakeRequest(due_at=due_at), timeout=_CALL_TIMEOUT_SEC)

        return call
