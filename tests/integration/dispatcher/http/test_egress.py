"""Which addresses deliveries reach, whatever the URL calls them."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp.abc import ResolveResult

from taskexecutor_dispatcher.endpoints.base import Outcome
from taskexecutor_dispatcher.endpoints.resolver import AllowedAddresses
from tests.integration.dispatcher.http.deliveries import PATIENCE_MS, HttpClient, MakeTransport, a_request, an_identity
from tests.integration.dispatcher.http.receivers import answering, receiving
from tests.integration.dispatcher.names import Names


async def deliver_once(transport: HttpClient, url: str) -> Outcome:
    try:
        return await transport.deliver(a_request(url), an_identity(), PATIENCE_MS)
    finally:
        await transport.close()


async def test_this_machine_is_reached_only_where_the_setting_says_so(make_transport: MakeTransport) -> None:
    async with receiving(answering()) as receiver:
        refused = await deliver_once(make_transport(allow=""), receiver.url())
        assert receiver.connections == 0
        allowed = await deliver_once(make_transport(allow="loopback"), receiver.url())
    assert refused.error is not None
    assert refused.error.to_json() == {
        "type": "ADDRESS_REFUSED",
        "message": "127.0.0.1 is not allowed as a destination: loopback.",
    }
    assert not refused.retryable
    assert allowed.succeeded


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "017700000001",
        "0177.0.0.1",
        "127.0.0.1.",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "0.0.0.0",
        "0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "[fe80::1%25lo]",
        "①②⑦.0.0.1",
        "example.test@127.0.0.1",
        "%31%32%37.0.0.1",
        "127.0.1",
        "0x7f.1",
        "00000177.0x0.0.1",
        "127。0。0。1",
        "１２７.0.0.1",
        "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
        "[::1%25lo]",
        "[::ffff:127.0.0.1%25lo]",
        "[::ffff:0:127.0.0.1]",
        "[64:ff9b:1::7f00:1]",
        "[2001:0:7f00:1::]",
        "[2a00:1450::5efe:127.0.0.1]",
        "169.254.169.254.",
        "2852039166",
        "0xa9fea9fe",
        "user:password@localhost",
        "example.test:80@localhost",
        "example.test%2f@localhost",
    ],
)
async def test_no_spelling_of_this_machine_gets_past_the_policy(make_transport: MakeTransport, host: str) -> None:
    async with receiving(answering(), host="") as receiver:
        outcome = await deliver_once(make_transport(allow=""), f"http://{host}:{receiver.port}/")
        assert receiver.connections == 0
    assert outcome.error is not None
    assert outcome.error.type in {"ADDRESS_REFUSED", "INVALID_DESTINATION", "CONNECTION_ERROR"}


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "0x7f000001", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254"]
)
async def test_a_refused_address_is_called_so(make_transport: MakeTransport, host: str) -> None:
    outcome = await deliver_once(make_transport(allow=""), f"http://{host}:1/")
    assert outcome.error is not None
    assert outcome.error.type == "ADDRESS_REFUSED"
    assert not outcome.retryable


async def test_a_name_with_refused_addresses_only_is_refused(make_transport: MakeTransport) -> None:
    transport = make_transport(allow="loopback", resolver=Names("10.0.0.1", "169.254.169.254"))
    outcome = await deliver_once(transport, "http://inside.test/")
    assert outcome.error is not None
    assert outcome.error.type == "ADDRESS_REFUSED"


@pytest.mark.parametrize("host", ["metadata", "metadata.google.internal", "instance-data.ec2.internal", "METADATA."])
async def test_a_metadata_service_by_name_is_refused_by_its_address(make_transport: MakeTransport, host: str) -> None:
    transport = make_transport(allow="loopback,private", resolver=Names("169.254.169.254"))
    outcome = await deliver_once(transport, f"http://{host}/latest/meta-data/")
    assert outcome.error is not None
    assert outcome.error.type == "ADDRESS_REFUSED"
    assert not outcome.retryable


async def test_of_several_addresses_the_allowed_are_used(make_transport: MakeTransport) -> None:
    transport = make_transport(allow="loopback", resolver=Names("10.0.0.1", "127.0.0.1", "169.254.169.254"))
    async with receiving(answering()) as receiver:
        outcome = await deliver_once(transport, f"http://mixed.test:{receiver.port}/")
    assert outcome.succeeded


async def test_an_unreachable_allowed_address_beside_refused_ones_may_be_tried_again(
    make_transport: MakeTransport,
) -> None:
    transport = make_transport(allow="loopback", resolver=Names("127.0.0.1", "10.0.0.1"))
    outcome = await deliver_once(transport, "http://mixed.test:1/")
    assert outcome.error is not None
    assert outcome.error.type == "CONNECTION_ERROR"
    assert outcome.retryable


async def test_every_address_is_judged_again_where_the_socket_is_opened(
    make_transport: MakeTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look_the_other_way(resolver: AllowedAddresses, host: str, *_: int, **__: int) -> list[ResolveResult]:
        return await Names("127.0.0.1", "127.0.0.2").resolve(host, receiver.port)

    monkeypatch.setattr(AllowedAddresses, "resolve", look_the_other_way)
    transport = make_transport(allow="")
    async with receiving(answering()) as receiver:
        outcome = await deliver_once(transport, f"http://rebound.test:{receiver.port}/")
        assert receiver.connections == 0
    assert outcome.error is not None
    assert outcome.error.type == "ADDRESS_REFUSED"


async def test_a_redirect_to_a_refused_address_leads_nowhere(make_transport: MakeTransport) -> None:
    async with receiving(answering(status=302, headers="Location: http://169.254.169.254/\r\n")) as receiver:
        outcome = await deliver_once(make_transport(), receiver.url())
    assert outcome.error is not None
    assert outcome.error.status_code == 302


async def test_proxies_from_the_environment_are_not_used(
    make_transport: MakeTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiving(answering()) as proxy, receiving(answering()) as receiver:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url())
        outcome = await deliver_once(make_transport(), receiver.url())
        assert proxy.connections == 0
    assert outcome.succeeded


async def test_names_are_looked_up_by_the_system(make_transport: MakeTransport) -> None:
    async with receiving(answering()) as receiver:
        outcome = await deliver_once(make_transport(), f"http://localhost:{receiver.port}/")
    assert outcome.succeeded


async def test_ipv6_is_spoken(make_transport: MakeTransport) -> None:
    async with receiving(answering(), host="::1") as receiver:
        outcome = await deliver_once(make_transport(), f"http://[::1]:{receiver.port}/")
        assert receiver.requests[0].header("Host") == f"[::1]:{receiver.port}"
    assert outcome.succeeded


async def test_names_that_hang_do_not_hold_up_others(make_transport: MakeTransport) -> None:
    hang = asyncio.Event()

    class Partly(Names):
        async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
            if host == "dead.test":
                await hang.wait()
            return await super().resolve(host, port, family)

    transport = make_transport(resolver=Partly("127.0.0.1"))
    async with receiving(answering()) as receiver:
        url = f"http://dead.test:{receiver.port}/"
        stuck = [asyncio.create_task(transport.deliver(a_request(url), an_identity(), PATIENCE_MS)) for _ in range(100)]
        living = f"http://living.test:{receiver.port}/"
        outcome = await transport.deliver(a_request(living), an_identity(), PATIENCE_MS)
        hang.set()
        await asyncio.gather(*stuck)
        await transport.close()
    assert outcome.succeeded
