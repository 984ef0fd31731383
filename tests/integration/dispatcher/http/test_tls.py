"""Whom deliveries trust."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskexecutor_dispatcher.endpoints.base import Outcome
from tests.integration.dispatcher.http.certificates import Authority
from tests.integration.dispatcher.http.deliveries import PATIENCE_MS, a_request, a_transport, an_identity
from tests.integration.dispatcher.http.receivers import Receiver, answering, receiving, saying


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def deliver_to(receiver: Receiver, *, trusted: Authority | None) -> Outcome:
    transport = a_transport(tls=trusted.trusting() if trusted else None)
    try:
        return await transport.deliver(a_request(receiver.url(scheme="https")), an_identity(), PATIENCE_MS)
    finally:
        await transport.close()


def assert_tls_failed(outcome: Outcome, receiver: Receiver, *reasons: str) -> None:
    assert outcome.error is not None
    assert outcome.error.type == "CONNECTION_ERROR"
    assert outcome.error.message.startswith(f"TLS with 127.0.0.1:{receiver.port} failed: ")
    assert any(reason in outcome.error.message for reason in reasons), outcome.error.message
    assert receiver.requests == []


async def test_a_receiver_with_a_trusted_certificate_is_sent_to(authority: Authority) -> None:
    async with receiving(answering(), tls=authority.serving()) as receiver:
        outcome = await deliver_to(receiver, trusted=authority)
    assert outcome.succeeded


async def test_an_unknown_authority_is_refused(authority: Authority) -> None:
    async with receiving(answering(), tls=authority.serving()) as receiver:
        outcome = await deliver_to(receiver, trusted=None)
    assert_tls_failed(outcome, receiver, "unable to get local issuer certificate")


async def test_a_certificate_for_somebody_else_is_refused(authority: Authority) -> None:
    async with receiving(answering(), tls=authority.serving(address="127.0.0.9")) as receiver:
        outcome = await deliver_to(receiver, trusted=authority)
    assert_tls_failed(outcome, receiver, "IP address mismatch")


async def test_an_expired_certificate_is_refused(authority: Authority) -> None:
    async with receiving(answering(), tls=authority.serving(days=-1)) as receiver:
        outcome = await deliver_to(receiver, trusted=authority)
    assert_tls_failed(outcome, receiver, "certificate has expired")


async def test_a_receiver_without_tls_is_a_connection_error(authority: Authority) -> None:
    async def plain(connection):  # type: ignore[no-untyped-def]  # a test's script
        await connection.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with receiving(plain) as receiver:
        outcome = await deliver_to(receiver, trusted=authority)
    assert_tls_failed(outcome, receiver, "wrong version number", "record layer failure")


async def test_a_trusted_receiver_that_closes_early_is_asked_once(authority: Authority) -> None:
    async with receiving(saying(), tls=authority.serving()) as receiver:
        outcome = await deliver_to(receiver, trusted=authority)
        assert len(receiver.requests) == 1
    assert outcome.error is not None
    assert outcome.error.type == "CONNECTION_ERROR"
