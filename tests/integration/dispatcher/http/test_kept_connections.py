"""Connections are used again, and none that ended while it was idle costs a delivery or sends one twice."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from taskexecutor_dispatcher.endpoints import http_connections
from taskexecutor_dispatcher.endpoints.base import Outcome
from taskexecutor_dispatcher.endpoints.http import HttpTransport
from tests.integration.dispatcher.http.deliveries import PATIENCE_MS, a_request, a_transport, an_identity
from tests.integration.dispatcher.http.receivers import Connection, answering, receiving

LATE = b"HTTP/1.1 500 Late\r\nContent-Length: 0\r\n\r\n"
Scenario = Callable[[HttpTransport], Awaitable[None]]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def play(request: pytest.FixtureRequest) -> Callable[[Scenario], None]:
    """Runs a scenario with a transport, in a loop of each kind that the dispatcher may run on."""

    async def with_transport(scenario: Scenario) -> None:
        transport = a_transport()
        try:
            await scenario(transport)
        finally:
            await transport.close()

    def run(scenario: Scenario) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(with_transport(scenario))

    return run


async def deliver(transport: HttpTransport, url: str, **changes: Any) -> Outcome:
    return await transport.deliver(a_request(url, **changes), an_identity(), PATIENCE_MS)


class BlockingReceiver:
    """A receiver without an event loop, so that a test can close a connection, and the loop of the transport cannot
    notice before the next delivery is under way."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}/"

    async def accept(self) -> socket.socket:
        connection, _ = await asyncio.get_running_loop().sock_accept(self._listener)
        connection.setblocking(False)
        return connection

    async def read_request(self, connection: socket.socket) -> bytes:
        read = b""
        while not read.endswith(b"}"):
            more = await asyncio.get_running_loop().sock_recv(connection, 65536)
            if not more:
                raise EOFError(read)
            read += more
        return read

    async def answer(self, connection: socket.socket) -> None:
        await asyncio.get_running_loop().sock_sendall(connection, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK")


@asynccontextmanager
async def blocking_receiver() -> AsyncIterator[BlockingReceiver]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield BlockingReceiver(listener)


async def deliver_anew(
    transport: HttpTransport, receiver: BlockingReceiver, before: Callable[[], None]
) -> socket.socket:
    """Delivers on a connection that the receiver has yet to accept, and returns its side of it.

    Between `before` and the use of a kept connection the loop gets no chance to look at any socket.
    """

    async def take_one() -> socket.socket:
        connection = await receiver.accept()
        await receiver.read_request(connection)
        await receiver.answer(connection)
        return connection

    async with asyncio.timeout(PATIENCE_MS / 1000), asyncio.TaskGroup() as group:
        taken = group.create_task(take_one())
        await asyncio.sleep(0)
        before()
        assert (await deliver(transport, receiver.url)).succeeded
    return taken.result()


async def first_delivery(transport: HttpTransport, receiver: BlockingReceiver) -> socket.socket:
    """The receiver's side of a connection that the transport now keeps."""
    return await deliver_anew(transport, receiver, before=lambda: None)


def test_connections_are_used_again(play: Callable[[Scenario], None]) -> None:
    async def scenario(transport: HttpTransport) -> None:
        async with receiving(answering()) as receiver:
            for _ in range(5):
                assert (await deliver(transport, receiver.url())).succeeded
            assert receiver.connections == 1

    play(scenario)


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_a_connection_that_the_receiver_closed_when_idle_costs_nothing(
    play: Callable[[Scenario], None], method: str
) -> None:
    async def one_each(connection: Connection) -> None:
        await connection.request()
        await connection.answer()

    async def scenario(transport: HttpTransport) -> None:
        async with receiving(one_each) as receiver:
            for _ in range(10):
                assert (await deliver(transport, receiver.url(), method=method)).succeeded
            assert len(receiver.requests) == 10

    play(scenario)


def test_a_closing_that_has_arrived_but_was_not_noticed_yet_costs_nothing(play: Callable[[Scenario], None]) -> None:
    async def scenario(transport: HttpTransport) -> None:
        async with blocking_receiver() as receiver:
            connection = await first_delivery(transport, receiver)
            (await deliver_anew(transport, receiver, before=connection.close)).close()

    play(scenario)


def test_a_request_that_came_to_a_closed_door_is_sent_on_another_connection(
    play: Callable[[Scenario], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a real network the closing is under way when we look. Here it has always arrived, so we look away.
    monkeypatch.setattr(http_connections.KeptConnection, "is_quiet", lambda kept: True)
    crossings = []
    real = http_connections.KeptConnection.took_nothing

    def observed(kept: http_connections.KeptConnection) -> bool:
        crossings.append(real(kept))
        return crossings[-1]

    monkeypatch.setattr(http_connections.KeptConnection, "took_nothing", observed)

    async def scenario(transport: HttpTransport) -> None:
        async with blocking_receiver() as receiver:
            connection = await first_delivery(transport, receiver)
            (await deliver_anew(transport, receiver, before=connection.close)).close()

    play(scenario)
    assert crossings == [True]


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_a_request_that_was_read_and_not_answered_is_never_sent_again(
    play: Callable[[Scenario], None], method: str
) -> None:
    async def then_silent(connection: Connection) -> None:
        await connection.request()
        await connection.answer()
        await connection.request()

    async def scenario(transport: HttpTransport) -> None:
        async with receiving(then_silent) as receiver:
            assert (await deliver(transport, receiver.url(), method=method)).succeeded
            outcome = await deliver(transport, receiver.url(), method=method)
            assert (receiver.connections, len(receiver.requests)) == (1, 2)
        assert outcome.error is not None
        assert outcome.error.type == "CONNECTION_ERROR"
        assert outcome.retryable

    play(scenario)


def test_a_request_that_arrived_and_was_not_read_is_not_sent_again(play: Callable[[Scenario], None]) -> None:
    async def scenario(transport: HttpTransport) -> None:
        async with blocking_receiver() as receiver:
            connection = await first_delivery(transport, receiver)
            delivery = asyncio.create_task(deliver(transport, receiver.url))
            await _readable(connection)
            connection.close()
            outcome = await delivery
        assert outcome.error is not None
        assert outcome.error.type == "CONNECTION_ERROR"

    play(scenario)


def test_bytes_that_nobody_asked_for_are_no_answer(play: Callable[[Scenario], None]) -> None:
    async def scenario(transport: HttpTransport) -> None:
        async with blocking_receiver() as receiver:
            connection = await first_delivery(transport, receiver)
            (await deliver_anew(transport, receiver, before=lambda: connection.sendall(LATE))).close()
            connection.close()

    play(scenario)


def test_bytes_that_nobody_asked_for_and_that_were_read_already_are_no_answer(
    play: Callable[[Scenario], None],
) -> None:
    async def scenario(transport: HttpTransport) -> None:
        async with blocking_receiver() as receiver:
            connection = await first_delivery(transport, receiver)
            connection.sendall(LATE)
            for _ in range(10):
                await asyncio.sleep(0)  # lets the loop read them
            (await deliver_anew(transport, receiver, before=lambda: None)).close()
            connection.close()

    play(scenario)


async def _readable(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(connection, readable.set)
    await readable.wait()
    loop.remove_reader(connection)
