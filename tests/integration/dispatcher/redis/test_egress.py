"""Which servers are reached, whatever the URL calls them."""

from __future__ import annotations

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from taskexecutor_dispatcher.endpoints.base import Outcome
from taskexecutor_dispatcher.endpoints.resolver import AllowedAddresses
from tests.integration.dispatcher.names import Names
from tests.integration.dispatcher.redis.deliveries import PATIENCE_MS, a_request, a_transport, an_identity
from tests.integration.dispatcher.redis.talking import answering, silent
from tests.servers.redis import RedisUnderTest


async def deliver_once(url: str, allow: str = "", resolver: AbstractResolver | None = None) -> Outcome:
    transport = a_transport(allow, resolver=resolver)
    try:
        return await transport.deliver(a_request(url), an_identity(), PATIENCE_MS)
    finally:
        await transport.close()


def assert_address_refused(outcome: Outcome) -> None:
    assert outcome.error is not None
    assert outcome.error.type == "ADDRESS_REFUSED", outcome
    assert not outcome.retryable


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
@pytest.mark.parametrize("host", ["127.0.0.1", "0x7f000001", "localhost", "0.0.0.0", "169.254.169.254"])
async def test_a_refused_address_is_not_connected_to(scheme: str, host: str) -> None:
    async with silent() as server:
        assert_address_refused(await deliver_once(f"{scheme}://:pass@{host}:{server.port}"))
        assert server.connections == 0


async def test_of_several_addresses_the_allowed_are_used(redis_server: RedisUnderTest) -> None:
    resolver = Names("10.0.0.1", "127.0.0.1", "169.254.169.254")
    outcome = await deliver_once(f"redis://mixed.test:{redis_server.port}", "loopback", resolver)
    assert outcome.succeeded


async def test_every_address_is_judged_again_where_the_socket_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    async def look_the_other_way(resolver: AllowedAddresses, host: str, *_: int, **__: int) -> list[ResolveResult]:
        return await Names("127.0.0.1").resolve(host, server.port)

    monkeypatch.setattr(AllowedAddresses, "resolve", look_the_other_way)
    async with silent() as server:
        assert_address_refused(await deliver_once(f"redis://rebound.test:{server.port}"))
        assert server.connections == 0


@pytest.mark.parametrize("kind", [b"MOVED", b"ASK"])
@pytest.mark.parametrize(
    "node", [b"169.254.169.254:80", b"10.0.0.1:6379", b"0xa9fea9fe:80", b"2852039166:80", b"::ffff:169.254.169.254:80"]
)
async def test_a_cluster_that_points_to_a_refused_address_leads_nowhere(kind: bytes, node: bytes) -> None:
    async with answering(b"-%b 866 %b\r\n" % (kind, node)) as server:
        assert_address_refused(await deliver_once(server.url(), "loopback"))
