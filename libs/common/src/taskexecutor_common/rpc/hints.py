"""Hints to other services: fire and forget, merged while one is under way, never in the way of their cause.

A hint that is lost costs the receiver's poll interval and nothing else. Hints to a peer are messages of one call that is
kept open: that takes half the time of a call for each.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import grpc
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from taskexecutor.internal.v1 import dispatcher_pb2, dispatcher_pb2_grpc, scheduler_pb2, scheduler_pb2_grpc
from taskexecutor_common.observability import metrics
from taskexecutor_common.observability.logging import get_logger
from taskexecutor_common.rpc.tls import CHANNEL_OPTIONS, Tls

_PEERS_FRESH_SEC = 2.0
_CALL_TIMEOUT_SEC = 1.0
_OPTIONS = [("grpc.enable_http_proxy", 0)]  # peers are neighbours; a proxy of the environment is for the world outside

_log = get_logger("hints")


class Peer(Protocol):
    """An instance that can be hinted; the store's Instance is one."""

    @property
    def address(self) -> str | None:
        """Where its internal rpc listens."""


OpenCall = Callable[[grpc.aio.Channel], "grpc.aio.StreamUnaryCall[Any, Any]"]
FindPeers = Callable[[], Awaitable[Collection[Peer]]]


class Line:
    """The way to one peer: a channel, and the call on it that hints are messages of."""

    def __init__(self, channel: grpc.aio.Channel, open_call: OpenCall) -> None:
        self.channel = channel
        self._open_call = open_call
        self._call: grpc.aio.StreamUnaryCall[Any, Any] | None = None

    async def hint(self, message: Message) -> None:
        """Writes a message. That the peer has read it is not known. Raises when it cannot be written to a new call."""
        is_new = self._call is None or self._call.done()
        if self._call is None or is_new:
            self._call = self._open_call(self.channel)
        try:
            async with asyncio.timeout(_CALL_TIMEOUT_SEC):
                await self._call.write(message)
        except Exception:
            self._call.cancel()
            self._call = None
            if is_new:
                raise
            await self.hint(message)  # the peer was started anew, as a rule

    async def close(self) -> None:
        """Ends the call and closes the channel."""
        if self._call is not None:
            self._call.cancel()
        await self.channel.close()


class Peers:
    """The live instances of one component and a line to each, looked up again when a caller finds them old.

    With `tls` the channels show this service's certificate and want to see theirs.
    """

    def __init__(self, find: FindPeers, open_call: OpenCall, tls: Tls | None = None) -> None:
        self._find = find
        self._open_call = open_call
        self._tls = tls
        self._credentials: grpc.ChannelCredentials | None = None
        self._looked_up = float("-inf")
        self._lines: dict[str, Line] = {}

    async def lines(self) -> list[Line]:
        """A line to each live instance."""
        if time.monotonic() - self._looked_up > _PEERS_FRESH_SEC:
            addresses = {peer.address for peer in await self._find() if peer.address}
            self._looked_up = time.monotonic()
            await self._keep(addresses)
        return list(self._lines.values())

    async def _keep(self, addresses: Collection[str]) -> None:
        """One line to each address and no others, none with a certificate that was replaced."""
        before, shown = self._lines, self._credentials
        self._credentials = self._tls.channel_credentials() if self._tls else None
        kept = before if self._credentials is shown else {}
        self._lines = {
            address: kept.get(address) or Line(self._open(address), self._open_call) for address in addresses
        }
        for line in before.values():
            if line not in self._lines.values():
                await line.close()

    def _open(self, address: str) -> grpc.aio.Channel:
        if self._credentials is None:
            return grpc.aio.insecure_channel(address, options=_OPTIONS)
        return grpc.aio.secure_channel(address, self._credentials, options=[*_OPTIONS, *CHANNEL_OPTIONS])

    async def close(self) -> None:
        """Closes all lines."""
        for line in self._lines.values():
            await line.close()
        self._lines.clear()


Tell = Callable[[Line], Awaitable[Any]]


class _Sender:
    """Sends what has gathered to all peers, one round at a time; what comes meanwhile goes with the next."""

    def __init__(self, target: str, find: FindPeers, open_call: OpenCall, tls: Tls | None) -> None:
        self._target = target
        self.peers = Peers(find, open_call, tls)
        self._task: asyncio.Task[None] | None = None

    def poke(self) -> None:
        """Makes sure that a round follows."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._send_all(), name=f"hints-{self._target}")

    def take(self) -> Tell | None:
        """What has gathered, as something to be done with a line; None when there is nothing."""
        raise NotImplementedError

    async def start(self) -> None:
        """Nothing to do: a Service so that it is stopped in its turn."""

    async def stop(self) -> None:
        """Drops what is under way and closes the lines."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.peers.close()

    async def _send_all(self) -> None:
        while (tell := self.take()) is not None:
            try:
                lines = await self.peers.lines()
            except Exception:
                metrics.HINTS.labels(target=self._target, result="no_peers").inc()
                _log.debug("hint dropped: peers unknown", target=self._target, exc_info=True)
                return
            for result in await asyncio.gather(*(tell(line) for line in lines), return_exceptions=True):
                failed = isinstance(result, BaseException)
                metrics.HINTS.labels(target=self._target, result="failed" if failed else "sent").inc()


class DispatcherHints(_Sender):
    """Tells dispatchers which queues have work, and which secrets to read again."""

    def __init__(self, find: FindPeers, tls: Tls | None = None) -> None:
        super().__init__(
            "dispatcher", find, lambda channel: dispatcher_pb2_grpc.DispatcherServiceStub(channel).Wake(), tls
        )
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

    def take(self) -> Tell | None:
        """See _Sender.take."""
        if not self._queues and not self._secrets:
            return None
        wake = dispatcher_pb2.DispatcherServiceWakeRequest(queues=[queue.bytes for queue in self._queues])
        forget = [
            dispatcher_pb2.DispatcherServiceForgetSecretRequest(namespace=namespace, name=name)
            for namespace, name in self._secrets
        ]
        self._queues, self._secrets = set(), set()

        async def tell(line: Line) -> None:
            stub = dispatcher_pb2_grpc.DispatcherServiceStub(line.channel)
            for request in forget:
                await stub.ForgetSecret(request, timeout=_CALL_TIMEOUT_SEC)
            if wake.queues:
                await line.hint(wake)

        return tell


class SchedulerHints(_Sender):
    """Tells schedulers that something new is due."""

    def __init__(self, find: FindPeers, tls: Tls | None = None) -> None:
        super().__init__(
            "scheduler", find, lambda channel: scheduler_pb2_grpc.SchedulerServiceStub(channel).Wake(), tls
        )
        self._due_at: datetime | None = None

    def wake(self, due_at: datetime) -> None:
        """Something is due then, by the database's clock."""
        self._due_at = due_at if self._due_at is None else min(due_at, self._due_at)
        self.poke()

    def take(self) -> Tell | None:
        """See _Sender.take."""
        if self._due_at is None:
            return None
        due_at = Timestamp()
        due_at.FromDatetime(self._due_at)
        self._due_at = None

        wake = scheduler_pb2.SchedulerServiceWakeRequest(due_at=due_at)
        return lambda line: line.hint(wake)
