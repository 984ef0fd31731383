"""Connections are used again, and none that ended while it was idle costs a delivery."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from taskexecutor_dispatcher.endpoints.base import Outcome
from taskexecutor_dispatcher.endpoints.http_aiohttp_exchange import KeptConnection
from taskexecutor_dispatcher.endpoints.http_connection import HttpConnection
from tests.integration.dispatcher.http.deliveries import PATIENCE_MS, HttpClient, a_request, a_transport, an_identity
from tests.integration.dispatcher.http.receivers import Connection, Script, answering, receiving

LATE = b"HTTP/1.1 500 Late\r\nContent-Length: 0\r\n\r\n"
Scenario = Callable[[HttpClient], Awaitable[None]]
Play = Callable[[Scenario], None]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def play(request: pytest.FixtureRequest, client: str) -> Play:
    """Runs a scenario with a transport, in a loop of each kind that the dispatcher may run on."""

    async def with_transport(scenario: Scenario) -> None:
        transport = a_transport(client)
        try:
            await scenario(transport)
        finally:
            await transport.close()

    def run(scenario: Scenario) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(with_transport(scenario))

    return run


End = Callable[[Connection], None]


def close(connection: Connection) -> None:
    """Ends a connection in good order."""
    connection.writer.close()


def reset(connection: Connection) -> None:
    """Ends a connection at once."""
    connection.reset()


def ending(end: End, *, after_reading: int, connections: set[int], at_once: set[int] = frozenset()) -> Script:
    """Answers, but ends some connections (1, 2 ...) after reading that many requests, without an answer to the last;
    and some after the first."""

    async def script(connection: Connection) -> None:
        number = connection.receiver.connections
        left = after_reading if number in connections else 1 if number in at_once else None
        while True:
            await connection.request()
            left = None if left is None else left - 1
            if left == 0:
                end(connection)
                return
            await connection.answer()

    return script


async def deliver(transport: HttpClient, url: str, **changes: Any) -> Outcome:
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
    transport: HttpClient, receiver: BlockingReceiver, before: Callable[[], None], **changes: Any
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
        assert (await deliver(transport, receiver.url, **changes)).succeeded
    return taken.result()


async def first_delivery(transport: HttpClient, receiver: BlockingReceiver) -> socket.socket:
    """The receiver's side of a connection that the transport now keeps."""
    return await deliver_anew(transport, receiver, before=lambda: None)


def test_connections_are_used_again(play: Play) -> None:
    async def scenario(transport: HttpClient) -> None:
        async with receiving(answering()) as receiver:
            for _ in range(5):
                assert (await deliver(transport, receiver.url())).succeeded
            assert receiver.connections == 1

    play(scenario)


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_a_connection_that_the_receiver_closed_when_idle_costs_nothing(play: Play, method: str) -> None:
    async def one_each(connection: Connection) -> None:
        await connection.request()
        await connection.answer()

    async def scenario(transport: HttpClient) -> None:
        async with receiving(one_each) as receiver:
            for _ in range(10):
                assert (await deliver(transport, receiver.url(), method=method)).succeeded
            assert len(receiver.requests) == 10

    play(scenario)


def test_a_closing_that_has_arrived_but_was_not_noticed_yet_costs_nothing(play: Play) -> None:
    async def scenario(transport: HttpClient) -> None:
        async with blocking_receiver() as receiver:
            connection = await first_delivery(transport, receiver)
            (await deliver_anew(transport, receiver, before=connection.close)).close()

    play(scenario)


@pytest.fixture
def looks_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a real network a closing may be under way when a client looks. Here it has always arrived, so it looks away."""
    monkeypatch.setattr(HttpConnection, "is_quiet", lambda kept: True)
    monkeypatch.setattr(KeptConnection, "is_quiet", lambda kept: True)


@pytest.mark.usefixtures("looks_away")
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_a_request_that_came_to_a_closed_door_is_sent_on_another_connection(play: Play, method: str) -> None:
    async def scenario(transport: HttpClient) -> None:
        async with blocking_receiver() as receiver:
            connection = await first_delivery(transport, receiver)
            (await deliver_anew(transport, receiver, before=connection.close, method=method)).close()

    play(scenario)


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize("end", [close, reset])
def test_a_reused_connection_that_ends_without_a_word_costs_nothing(play: Play, end: End, method: str) -> None:
    async def scenario(transport: HttpClient) -> None:
        async with receiving(ending(end, after_reading=2, connections={1})) as receiver:
            assert (await deliver(transport, receiver.url(), method=method)).succeeded
            assert (await deliver(transport, receiver.url(), method=method)).succeeded
            assert (receiver.connections, len(receiver.requests)) == (2, 3)
            assert len({request.header("Idempotency-Key") for request in receiver.requests}) == 1

    play(scenario)


def test_a_request_that_arrived_and_was_not_read_is_sent_again(play: Play) -> None:
    async def scenario(transport: HttpClient) -> None:
        async with blocking_receiver() as receiver:
            connection = await first_delivery(transport, receiver)
            delivery = asyncio.create_task(deliver(transport, receiver.url))
            await _readable(connection)
            connection.close()
            other = await receiver.accept()
            await receiver.read_request(other)
            await receiver.answer(other)
            assert (await delivery).succeeded
            other.close()

    play(scenario)


@pytest.mark.parametrize("end", [close, reset])
def test_a_fresh_connection_that_ends_without_a_word_is_the_end_of_the_attempt(play: Play, end: End) -> None:
    async def scenario(transport: HttpClient) -> None:
        async with receiving(ending(end, after_reading=2, connections={1}, at_once={2})) as receiver:
            assert (await deliver(transport, receiver.url())).succeeded
            outcome = await deliver(transport, receiver.url())
            assert (receiver.connections, len(receiver.requests)) == (2, 3)
        assert outcome.error is not None
        assert outcome.error.type == "CONNECTION_ERROR"
        assert outcome.retryable

    play(scenario)


def test_what_is_sent_again_goes_to_a_fresh_connection_though_others_are_kept(play: Play) -> None:
    async def scenario(transport: HttpClient) -> None:
        async with receiving(ending(close, after_reading=2, connections={1, 2, 3})) as receiver:
            assert all(o.succeeded for o in await asyncio.gather(*(deliver(transport, receiver.url()) for _ in "123")))
            assert receiver.connections == 3
            assert (await deliver(transport, receiver.url())).succeeded
            assert (receiver.connections, len(receiver.requests)) == (4, 5)

    play(scenario)


@pytest.mark.parametrize("beginning", [b"H", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Le"])
def test_a_reused_connection_that_ends_after_the_first_byte_is_not_sent_on_again(play: Play, beginning: bytes) -> None:
    async def breaking_off(connection: Connection) -> None:
        await connection.request()
        await connection.answer()
        await connection.request()
        await connection.write(beginning)

    async def scenario(transport: HttpClient) -> None:
        async with receiving(breaking_off) as receiver:
            assert (await deliver(transport, receiver.url())).succeeded
            outcome = await deliver(transport, receiver.url())
            assert (receiver.connections, len(receiver.requests)) == (1, 2)
        assert outcome.error is not None
        assert outcome.error.type == "CONNECTION_ERROR"

    play(scenario)


def test_bytes_that_nobody_asked_for_are_no_answer(play: Play) -> None:
    async def scenario(transport: HttpClient) -> None:
        async with blocking_receiver() as receiver:
            connection = await first_delivery(transport, receiver)
            (await deliver_anew(transport, receiver, before=lambda: connection.sendall(LATE))).close()
            connection.close()

    play(scenario)


def test_bytes_that_nobody_asked_for_and_that_were_read_already_are_no_answer(
    play: Play,
) -> None:
    async def scenario(transport: HttpClient) -> None:
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
