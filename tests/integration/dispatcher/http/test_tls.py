"""Whom deliveries trust."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from taskexecutor_dispatcher.endpoints.base import Outcome
from taskexecutor_dispatcher.endpoints.http_rules import verifying_tls
from tests.integration.dispatcher.http.deliveries import PATIENCE_MS, MakeTransport, a_request, an_identity
from tests.integration.dispatcher.http.receivers import Connection, Receiver, answering, receiving, saying
from tests.integration.dispatcher.names import Names
from tests.support.certificates import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def deliver_to(make_transport: MakeTransport, receiver: Receiver, *, trusted: Authority | None) -> Outcome:
    transport = make_transport(tls=trusted.trusting() if trusted else None)
    return await transport.deliver(a_request(receiver.url(scheme="https")), an_identity(), PATIENCE_MS)


def assert_tls_failed(outcome: Outcome, receiver: Receiver, *reasons: str) -> None:
    assert outcome.error is not None
    assert outcome.error.type == "CONNECTION_ERROR"
    assert outcome.error.message.startswith(f"TLS with 127.0.0.1:{receiver.port} failed: ")
    assert any(reason in outcome.error.message for reason in reasons), outcome.error.message
    assert receiver.requests == []


async def test_a_receiver_with_a_trusted_certificate_is_sent_to(
    make_transport: MakeTransport, authority: Authority
) -> None:
    async with receiving(answering(), tls=authority.serving()) as receiver:
        outcome = await deliver_to(make_transport, receiver, trusted=authority)
    assert outcome.succeeded


async def test_an_unknown_authority_is_refused(make_transport: MakeTransport, authority: Authority) -> None:
    async with receiving(answering(), tls=authority.serving()) as receiver:
        outcome = await deliver_to(make_transport, receiver, trusted=None)
    assert_tls_failed(outcome, receiver, "unable to get local issuer certificate")


async def test_a_certificate_for_somebody_else_is_refused(make_transport: MakeTransport, authority: Authority) -> None:
    async with receiving(answering(), tls=authority.serving(address="127.0.0.9")) as receiver:
        outcome = await deliver_to(make_transport, receiver, trusted=authority)
    assert_tls_failed(outcome, receiver, "IP address mismatch")


async def test_an_expired_certificate_is_refused(make_transport: MakeTransport, authority: Authority) -> None:
    async with receiving(answering(), tls=authority.serving(days=-1)) as receiver:
        outcome = await deliver_to(make_transport, receiver, trusted=authority)
    assert_tls_failed(outcome, receiver, "certificate has expired")


async def test_a_receiver_without_tls_is_a_connection_error(
    make_transport: MakeTransport, authority: Authority
) -> None:
    async def plain(connection):  # type: ignore[no-untyped-def]  # a test's script
        await connection.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with receiving(plain) as receiver:
        outcome = await deliver_to(make_transport, receiver, trusted=authority)
    assert_tls_failed(outcome, receiver, "wrong version number", "record layer failure")


async def test_a_trusted_receiver_that_closes_early_is_asked_once(
    make_transport: MakeTransport, authority: Authority
) -> None:
    async with receiving(saying(), tls=authority.serving()) as receiver:
        outcome = await deliver_to(make_transport, receiver, trusted=authority)
        assert len(receiver.requests) == 1
    assert outcome.error is not None
    assert outcome.error.type == "CONNECTION_ERROR"


@pytest.mark.parametrize("host", ["receiver.test", "receiver.test.", "RECEIVER.test"])
async def test_a_receiver_is_asked_for_by_its_name(
    make_transport: MakeTransport, authority: Authority, host: str
) -> None:
    asked: list[str | None] = []
    serving = authority.serving(name="receiver.test")
    serving.sni_callback = lambda _tls, name, _context: asked.append(name)
    transport = make_transport(tls=authority.trusting(), resolver=Names("127.0.0.1"))
    async with receiving(answering(), tls=serving) as receiver:
        url = f"https://{host}:{receiver.port}/"
        outcome = await transport.deliver(a_request(url), an_identity(), PATIENCE_MS)
    assert outcome.succeeded
    assert [name and name.lower() for name in asked] == ["receiver.test"]


async def test_a_name_with_somebody_elses_certificate_is_refused(
    make_transport: MakeTransport, authority: Authority
) -> None:
    transport = make_transport(tls=authority.trusting(), resolver=Names("127.0.0.1"))
    async with receiving(answering(), tls=authority.serving(name="other.test")) as receiver:
        url = f"https://receiver.test:{receiver.port}/"
        outcome = await transport.deliver(a_request(url), an_identity(), PATIENCE_MS)
        assert receiver.requests == []
    assert outcome.error is not None
    assert "Hostname mismatch" in outcome.error.message


async def test_http_1_1_is_what_is_agreed_on(make_transport: MakeTransport, authority: Authority) -> None:
    agreed: list[str | None] = []

    async def noting(connection: Connection) -> None:
        agreed.append(connection.writer.get_extra_info("ssl_object").selected_alpn_protocol())
        await answering()(connection)

    serving = authority.serving()
    serving.set_alpn_protocols(["h2", "http/1.1"])
    trusting = verifying_tls()
    trusting.load_verify_locations(cadata=authority.pem)
    transport = make_transport(tls=trusting)
    async with receiving(noting, tls=serving) as receiver:
        await transport.deliver(a_request(receiver.url(scheme="https")), an_identity(), PATIENCE_MS)
    assert agreed == ["http/1.1"]


async def test_old_tls_is_not_spoken(make_transport: MakeTransport, authority: Authority) -> None:
    serving = authority.serving()
    serving.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        serving.minimum_version, serving.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    async with receiving(answering(), tls=serving) as receiver:
        outcome = await deliver_to(make_transport, receiver, trusted=authority)
        assert receiver.requests == []
    assert outcome.error is not None
    assert outcome.error.message.startswith(f"TLS with 127.0.0.1:{receiver.port} failed")


async def test_tls_connections_are_used_again_and_large_bodies_go_both_ways(
    make_transport: MakeTransport, authority: Authority
) -> None:
    transport = make_transport(tls=authority.trusting())
    async with receiving(answering(b"x" * 60_000), tls=authority.serving()) as receiver:
        for _ in range(3):
            request = a_request(receiver.url(scheme="https"), body=b"y" * 1_000_000)
            outcome = await transport.deliver(request, an_identity(), PATIENCE_MS)
            assert outcome.output == {"status_code": 200, "body": "x" * 60_000}
        assert receiver.connections == 1
        assert all(request.body == b"y" * 1_000_000 for request in receiver.requests)


async def test_a_tls_connection_that_was_closed_when_idle_costs_nothing(
    make_transport: MakeTransport, authority: Authority
) -> None:
    async def one_each(connection: Connection) -> None:
        await connection.request()
        await connection.answer()

    transport = make_transport(tls=authority.trusting())
    async with receiving(one_each, tls=authority.serving()) as receiver:
        for _ in range(10):
            request = a_request(receiver.url(scheme="https"))
            assert (await transport.deliver(request, an_identity(), PATIENCE_MS)).succeeded
        assert len(receiver.requests) == 10


async def test_a_receiver_that_never_finishes_tls_is_a_timeout(
    make_transport: MakeTransport, authority: Authority
) -> None:
    async def mute(connection: Connection) -> None:
        await connection.ended()

    transport = make_transport(tls=authority.trusting())
    async with receiving(mute) as receiver:
        outcome = await transport.deliver(a_request(receiver.url(scheme="https")), an_identity(), 50)
        await receiver.closed.get()
    assert outcome.error is not None
    assert outcome.error.message == "No connection came about within 50 ms."
