"""Hints to dispatchers: over one call that is kept open, and past peers that are gone, new or dumb."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest_asyncio

from taskexecutor.internal.v1 import dispatcher_pb2_grpc
from taskexecutor_common.observability import metrics
from taskexecutor_common.rpc.hints import DispatcherHints
from taskexecutor_common.rpc.server import RpcServer
from tests.support.peers import Dispatcher, Instance, listening
from tests.support.waiting import wait_until

LONG_SEC = 3600.0


class Found:
    """The peers that a sender finds, as the test wants it."""

    def __init__(self) -> None:
        self.peers: list[Instance] = []

    async def __call__(self) -> list[Instance]:
        return self.peers


@pytest_asyncio.fixture(loop_scope="session")
async def found() -> Found:
    return Found()


@pytest_asyncio.fixture(loop_scope="session")
async def hints(found: Found) -> AsyncIterator[DispatcherHints]:
    sender = DispatcherHints(found)
    yield sender
    await sender.stop()


async def told(hints: DispatcherHints, dispatcher: Dispatcher) -> bool:
    """Whether a hint arrives."""
    queue = uuid.uuid4()
    hints.wake([queue])
    return await dispatcher.next_wake() == queue


async def test_hints_are_messages_of_one_call(hints: DispatcherHints, found: Found) -> None:
    async with listening(None) as dispatcher:
        found.peers = [Instance(dispatcher.address)]
        for _ in range(3):
            assert await told(hints, dispatcher)
        assert dispatcher.calls == 1


async def test_a_peer_that_was_started_anew_is_told(hints: DispatcherHints, found: Found) -> None:
    async with listening(None) as before:
        found.peers = [Instance(before.address)]
        assert await told(hints, before)
    async with listening(None, port=before.port) as after:
        assert await told(hints, after)


async def test_a_peer_that_says_nothing_does_not_keep_hints_from_the_others(
    hints: DispatcherHints, found: Found
) -> None:
    async with listening(None) as dispatcher, dumb() as address:
        found.peers = [Instance(address), Instance(dispatcher.address)]
        assert await told(hints, dispatcher)
        assert await told(hints, dispatcher)


@asynccontextmanager
async def dumb() -> AsyncIterator[str]:
    """The address of something that takes connections and says nothing."""

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def test_a_hint_to_nobody_is_counted_as_failed(hints: DispatcherHints, found: Found) -> None:
    failed = metrics.HINTS.labels(target="dispatcher", result="failed")
    before = failed._value.get()
    async with listening(None) as gone:
        pass
    found.peers = [Instance(gone.address)]
    hints.wake([uuid.uuid4()])
    await wait_until(lambda: failed._value.get() > before, what="a failed hint")


async def test_a_server_that_stops_does_not_wait_for_open_calls(hints: DispatcherHints, found: Found) -> None:
    dispatcher = Dispatcher()
    server = RpcServer("127.0.0.1:0", grace_sec=LONG_SEC)
    dispatcher_pb2_grpc.add_DispatcherServiceServicer_to_server(dispatcher, server.server)
    await server.start()
    found.peers = [Instance(f"127.0.0.1:{server.port}")]
    assert await told(hints, dispatcher)
    await asyncio.wait_for(server.stop(), 10)
