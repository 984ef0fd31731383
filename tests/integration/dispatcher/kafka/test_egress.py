"""Which brokers are reached, as far as that can be decided here."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from taskexecutor_dispatcher.endpoints.base import Outcome
from tests.integration.dispatcher.kafka.conftest import MakeTopic
from tests.integration.dispatcher.kafka.deliveries import a_request, a_transport, an_identity
from tests.integration.dispatcher.kafka.records import records
from tests.servers.kafka import Broker, Cluster


class Names(AbstractResolver):
    """Knows some names; any other is an address."""

    def __init__(self, **addresses: list[str]) -> None:
        self._addresses = addresses

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=0)
            for address in self._addresses.get(host, [host])
        ]

    async def close(self) -> None:
        pass


async def deliver_once(servers: str, topic: str, allow: str, resolver: AbstractResolver | None = None) -> Outcome:
    transport = a_transport(allow, resolver=resolver)
    try:
        return await transport.deliver(a_request(servers, topic), an_identity(), 5000)
    finally:
        await transport.close()


@dataclass
class Forwarder:
    """A port whose connections go on to another port of this machine; -1: they end there."""

    port: int = 0
    to: int = -1
    connections: int = 0


@asynccontextmanager
async def forwarding(address: str) -> AsyncIterator[Forwarder]:
    """Forwards while the block runs."""
    forwarder = Forwarder()
    connections: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(asyncio.current_task())
        forwarder.connections += 1
        try:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", forwarder.to)
            await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer))
        except (OSError, OverflowError, asyncio.CancelledError):
            pass  # either side is gone, or the test is over
        finally:
            writer.close()

    server = await asyncio.start_server(handle, address, 0)
    forwarder.port = server.sockets[0].getsockname()[1]
    yield forwarder
    server.close()
    for connection in connections:
        connection.cancel()
    await asyncio.gather(*connections)
    await server.wait_closed()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


def assert_address_refused(outcome: Outcome) -> None:
    assert outcome.error is not None
    assert outcome.error.type == "ADDRESS_REFUSED", outcome
    assert not outcome.retryable


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "0x7f000001", "0177.0.0.1", "2130706433", "localhost", "LOCALHOST"),
        *("[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "0.0.0.0", "169.254.169.254", "PLAINTEXT://127.0.0.1"),
    ],
)
async def test_a_refused_bootstrap_server_is_not_connected_to(host: str) -> None:
    async with forwarding("127.0.0.1") as forwarder:
        assert_address_refused(await deliver_once(f"{host}:{forwarder.port}", "t", ""))
        assert forwarder.connections == 0


async def test_one_refused_bootstrap_server_is_enough() -> None:
    assert_address_refused(await deliver_once("127.0.0.1:1,169.254.169.254:80", "t", "loopback"))


async def test_librdkafka_goes_to_the_address_that_was_judged_and_not_to_the_name(
    cluster: Cluster, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    port = cluster.bootstrap.split(",")[0].rpartition(":")[2]
    # A name that only our resolver knows, with a refused address beside the allowed one.
    resolver = Names(**{"kafka.test": ["10.0.0.1", "127.0.0.1"]})
    outcome = await deliver_once(f"kafka.test:{port}", topic, "loopback", resolver)
    assert outcome.succeeded


async def test_a_cluster_that_advertises_a_refused_address_gets_no_record(
    real_cluster: Cluster, tmp_path: Path
) -> None:
    async with forwarding("127.0.0.2") as forwarder:
        broker = Broker(tmp_path, advertised=f"127.0.0.2:{forwarder.port}")
        forwarder.to = broker.port
        await asyncio.to_thread(broker.start)
        try:
            await asyncio.to_thread(broker.create_topic, "t")
            outcome = await deliver_once(broker.bootstrap, "t", "127.0.0.1/32")
            found = await records(broker.bootstrap, "t")
        finally:
            broker.stop()
    assert_address_refused(outcome)
    assert found == []
