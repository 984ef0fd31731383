"""What is left when deliveries end early: nothing."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from tests.integration.dispatcher.http.deliveries import PATIENCE_MS, HttpClient, MakeTransport, a_request, an_identity
from tests.integration.dispatcher.http.receivers import Connection, Script, receiving


def reporting(arrived: asyncio.Event) -> Script:
    """Says when a request is there, and never answers it."""

    async def script(connection: Connection) -> None:
        await connection.request()
        arrived.set()
        await connection.ended()

    return script


async def test_cancelling_closes_the_connection(transport: HttpClient) -> None:
    arrived = asyncio.Event()
    async with receiving(reporting(arrived)) as receiver:
        delivery = asyncio.create_task(transport.deliver(a_request(receiver.url()), an_identity(), PATIENCE_MS))
        await arrived.wait()
        delivery.cancel()
        with pytest.raises(asyncio.CancelledError):
            await delivery
        await asyncio.wait_for(receiver.closed.get(), 5)


async def test_a_timeout_closes_the_connection(transport: HttpClient) -> None:
    async with receiving(reporting(asyncio.Event())) as receiver:
        await transport.deliver(a_request(receiver.url()), an_identity(), 50)
        await asyncio.wait_for(receiver.closed.get(), 5)


async def test_deliveries_in_flight_fail_when_the_transport_closes(make_transport: MakeTransport) -> None:
    transport = make_transport()
    arrived = asyncio.Event()
    async with receiving(reporting(arrived)) as receiver:
        delivery = asyncio.create_task(transport.deliver(a_request(receiver.url()), an_identity(), PATIENCE_MS))
        await arrived.wait()
        await transport.close()
        outcome = await delivery
    assert outcome.error is not None
    assert outcome.error.type == "CONNECTION_ERROR"
    assert outcome.retryable


async def test_deliveries_that_wait_for_a_connection_fail_when_the_transport_closes(
    make_transport: MakeTransport,
) -> None:
    transport = make_transport(max_connections_per_host=1)
    arrived = asyncio.Event()
    async with receiving(reporting(arrived)) as receiver:
        deliveries = [
            asyncio.create_task(transport.deliver(a_request(receiver.url()), an_identity(), PATIENCE_MS))
            for _ in range(3)
        ]
        await arrived.wait()
        await transport.close()
        outcomes = await asyncio.gather(*deliveries)
    assert [outcome.error and outcome.error.type for outcome in outcomes] == ["CONNECTION_ERROR"] * 3


async def test_deliveries_that_wait_for_a_name_fail_when_the_transport_closes(make_transport: MakeTransport) -> None:
    asked = asyncio.Event()

    class Silent(AbstractResolver):
        async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
            asked.set()
            return await asyncio.get_running_loop().create_future()

        async def close(self) -> None:
            pass

    transport = make_transport(resolver=Silent())
    deliveries = [
        asyncio.create_task(transport.deliver(a_request("http://slow.test/"), an_identity(), PATIENCE_MS))
        for _ in range(2)
    ]
    await asked.wait()
    await transport.close()
    outcomes = await asyncio.gather(*deliveries)
    assert [outcome.error and outcome.error.type for outcome in outcomes] == ["CONNECTION_ERROR"] * 2


async def test_a_closed_transport_sends_nothing(make_transport: MakeTransport) -> None:
    transport = make_transport()
    await transport.close()
    outcome = await transport.deliver(a_request("http://127.0.0.1:1/"), an_identity(), PATIENCE_MS)
    assert outcome.error is not None
    assert outcome.error.message == "The dispatcher is shutting down."


async def test_closing_twice_is_harmless(make_transport: MakeTransport) -> None:
    transport = make_transport()
    await transport.close()
    await transport.close()
