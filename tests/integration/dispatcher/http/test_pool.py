"""Connections are shared, bounded, given out in turn, and let go when nobody needs them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from taskexecutor_dispatcher.endpoints.base import Outcome
from taskexecutor_dispatcher.endpoints.http_pool import HttpPool
from tests.integration.dispatcher.http.deliveries import (
    PATIENCE_MS,
    HttpClient,
    MakeTransport,
    a_request,
    an_identity,
)
from tests.integration.dispatcher.http.receivers import Connection, Receiver, answering, receiving
from tests.support.waiting import wait_until


@dataclass
class Gate:
    """A receiver that holds its answers back until it is told, one permit an answer."""

    receiver: Receiver
    permits: asyncio.Semaphore
    open_now: int = 0
    most_open: int = 0
    paths: list[str] = field(default_factory=list)
    """In the order in which the requests came."""


@asynccontextmanager
async def gate(permits: int = 0) -> AsyncIterator[Gate]:
    async def script(connection: Connection) -> None:
        made.open_now += 1
        made.most_open = max(made.most_open, made.open_now)
        try:
            while True:
                request = await connection.request()
                made.paths.append(request.line.split()[1])
                await made.permits.acquire()
                await connection.answer()
        finally:
            made.open_now -= 1

    async with receiving(script) as receiver:
        made = Gate(receiver, asyncio.Semaphore(permits))
        yield made


def start(transport: HttpClient, url: str, timeout_ms: int = PATIENCE_MS) -> asyncio.Task[Outcome]:
    return asyncio.create_task(transport.deliver(a_request(url), an_identity(), timeout_ms))


async def test_deliveries_at_once_have_a_connection_each(transport: HttpClient) -> None:
    async with gate() as held:
        deliveries = [start(transport, held.receiver.url(f"/{number}")) for number in range(5)]
        await wait_until(lambda: len(held.paths) == 5)
        assert held.open_now == 5
        for _ in deliveries:
            held.permits.release()
        assert all(outcome.succeeded for outcome in await asyncio.gather(*deliveries))


async def test_a_hosts_bound_is_kept_and_all_get_their_turn(make_transport: MakeTransport) -> None:
    transport = make_transport(max_connections_per_host=2)
    async with gate(permits=1000) as held:
        outcomes = await asyncio.gather(*(start(transport, held.receiver.url()) for _ in range(20)))
        assert held.receiver.connections == 2
    assert all(outcome.succeeded for outcome in outcomes)


async def test_a_hosts_bound_does_not_hold_up_others(make_transport: MakeTransport) -> None:
    transport = make_transport(max_connections_per_host=1)
    async with gate() as held, receiving(answering()) as other:
        stuck = [start(transport, held.receiver.url()) for _ in range(3)]
        await wait_until(lambda: held.paths)
        assert (await start(transport, other.url())).succeeded
        held.permits.release()
        held.permits.release()
        held.permits.release()
        assert all(outcome.succeeded for outcome in await asyncio.gather(*stuck))


async def test_those_who_wait_go_in_the_order_of_their_coming(make_transport: MakeTransport) -> None:
    transport = make_transport(max_connections_per_host=1)
    async with gate() as held:
        deliveries = []
        for number in range(6):
            deliveries.append(start(transport, held.receiver.url(f"/{number}")))
            await asyncio.sleep(0)
        for _ in deliveries:
            held.permits.release()
        await asyncio.gather(*deliveries)
        assert held.paths == [f"/{number}" for number in range(6)]


async def test_the_bound_of_all_is_kept_over_hosts(make_transport: MakeTransport) -> None:
    transport = make_transport(max_connections=2)
    async with gate() as one, gate() as two:
        deliveries = [start(transport, held.receiver.url()) for held in (one, two, one, two, one)]
        await wait_until(lambda: len(one.paths) + len(two.paths) == 2)
        assert one.open_now + two.open_now == 2
        for held in (one, two):
            for _ in deliveries:
                held.permits.release()
        assert all(outcome.succeeded for outcome in await asyncio.gather(*deliveries))


async def test_the_bound_of_all_lets_hosts_take_turns(make_transport: MakeTransport) -> None:
    transport = make_transport(max_connections=1, keep_alive_sec=60)
    async with gate() as one, gate() as two:
        deliveries = [start(transport, held.receiver.url()) for held in (one, two, one, two)]
        await wait_until(lambda: one.paths)
        for held in (one, two):
            for _ in deliveries:
                held.permits.release()
        assert all(outcome.succeeded for outcome in await asyncio.gather(*deliveries))


@pytest.mark.parametrize("client", ["httptools"])  # aiohttp's bound counts the connections in use, and idle ones on top
async def test_an_idle_connection_elsewhere_makes_room(make_transport: MakeTransport) -> None:
    transport = make_transport(max_connections=1, keep_alive_sec=60)
    async with receiving(answering()) as one, receiving(answering()) as two:
        for receiver in (one, two, one, two):
            assert (await start(transport, receiver.url())).succeeded
        assert (one.connections, two.connections) == (2, 2)
        await asyncio.wait_for(one.closed.get(), 5)
        await asyncio.wait_for(one.closed.get(), 5)
        await asyncio.wait_for(two.closed.get(), 5)


@pytest.mark.parametrize("bound", ["max_connections", "max_connections_per_host"])
async def test_who_gives_up_waiting_leaves_the_turn_to_the_next(make_transport: MakeTransport, bound: str) -> None:
    transport = make_transport(**{bound: 1})
    async with gate() as held:
        first = start(transport, held.receiver.url("/first"))
        await wait_until(lambda: held.paths)
        late = start(transport, held.receiver.url("/late"), timeout_ms=20)
        gone = start(transport, held.receiver.url("/gone"))
        last = start(transport, held.receiver.url("/last"))
        await late
        gone.cancel()
        held.permits.release()
        held.permits.release()
        assert (await first).succeeded
        assert (await last).succeeded
        assert held.paths == ["/first", "/last"]
    assert late.result().error is not None


@pytest.mark.parametrize("bound", ["max_connections", "max_connections_per_host"])
async def test_who_gives_up_in_the_moment_of_the_turn_passes_it_on(make_transport: MakeTransport, bound: str) -> None:
    transport = make_transport(**{bound: 1})
    async with gate(permits=3) as held:
        first = start(transport, held.receiver.url("/first"))
        await wait_until(lambda: held.paths)
        gone = start(transport, held.receiver.url("/gone"))
        last = start(transport, held.receiver.url("/last"))
        first.add_done_callback(lambda _: gone.cancel())
        assert (await first).succeeded
        assert (await asyncio.wait_for(last, 5)).succeeded


async def test_a_failed_connect_gives_its_room_back(make_transport: MakeTransport) -> None:
    transport = make_transport(max_connections=1, max_connections_per_host=1)
    async with receiving(answering()) as receiver:
        for _ in range(3):
            assert not (await start(transport, "http://127.0.0.1:1/")).succeeded
        assert (await start(transport, receiver.url())).succeeded


async def test_a_lost_connection_gives_its_room_back(make_transport: MakeTransport) -> None:
    async def closing(connection: Connection) -> None:
        await connection.request()

    transport = make_transport(max_connections=1)
    async with receiving(closing) as receiver:
        outcomes = await asyncio.gather(*(start(transport, receiver.url()) for _ in range(4)))
        assert len(receiver.requests) == 4
    assert not any(outcome.succeeded for outcome in outcomes)


async def test_what_is_sent_again_waits_for_room_too(make_transport: MakeTransport) -> None:
    async def closing_on_the_second(connection: Connection) -> None:
        await connection.request()
        await connection.answer()
        await connection.request()

    transport = make_transport(max_connections=1)
    async with receiving(closing_on_the_second) as receiver:
        outcomes = await asyncio.gather(*(start(transport, receiver.url()) for _ in range(6)))
    assert all(outcome.succeeded for outcome in outcomes)


async def test_an_idle_connection_is_closed_after_a_while(make_transport: MakeTransport) -> None:
    transport = make_transport(keep_alive_sec=0.05)
    async with receiving(answering()) as receiver:
        await start(transport, receiver.url())
        await asyncio.wait_for(receiver.closed.get(), 10)
        assert (await start(transport, receiver.url())).succeeded
        assert receiver.connections == 2


async def test_an_idle_connection_is_not_used_after_its_time_though_it_is_open(
    make_transport: MakeTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HttpPool, "_close_expired", lambda pool: None)  # as if that came late
    transport = make_transport(keep_alive_sec=0)
    async with receiving(answering()) as receiver:
        for _ in range(3):
            assert (await start(transport, receiver.url())).succeeded
        assert receiver.connections == 3


async def test_http_and_other_ports_are_other_places(transport: HttpClient) -> None:
    async with receiving(answering()) as one, receiving(answering()) as two:
        for receiver in (one, two, one, two):
            await start(transport, receiver.url())
        assert (one.connections, two.connections) == (1, 1)


async def test_closing_lets_go_of_idle_connections(transport: HttpClient) -> None:
    async with receiving(answering()) as receiver:
        await asyncio.gather(*(start(transport, receiver.url()) for _ in range(3)))
        await transport.close()
        for _ in range(receiver.connections):
            await asyncio.wait_for(receiver.closed.get(), 5)
