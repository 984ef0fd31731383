"""Hints go between services of one system, and nobody else is heard on an internal port."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from taskexecutor.internal.v1 import dispatcher_pb2, dispatcher_pb2_grpc
from taskexecutor_common.config.tls_files import TlsFiles
from taskexecutor_common.observability import metrics
from taskexecutor_common.rpc.hints import DispatcherHints
from taskexecutor_common.rpc.tls import Tls
from tests.integration.tls.conftest import MakeFiles
from tests.support.certificates import Authority
from tests.support.peers import PATIENCE_SEC, Dispatcher, channel_of, listening, refusal_of
from tests.support.waiting import wait_until

QUEUE = uuid.uuid4()
WAKE = dispatcher_pb2.DispatcherServiceWakeRequest(queues=[QUEUE.bytes])

MakeCredentials = Callable[[Authority, Authority], grpc.ChannelCredentials | None]

INTRUDERS: dict[str, MakeCredentials] = {
    "in clear text": lambda ours, theirs: None,
    "without a certificate": lambda ours, theirs: grpc.ssl_channel_credentials(ours.file.read_bytes()),
    "with a certificate of its own authority": lambda ours, theirs: showing(ours, theirs, days=1),
    "with an expired certificate": lambda ours, theirs: showing(ours, ours, days=-1),
}


def showing(trusted: Authority, by: Authority, *, days: int) -> grpc.ChannelCredentials:
    """Of a caller that trusts one authority and has a certificate of another."""
    issued = by.issue(days=days)
    return grpc.ssl_channel_credentials(
        trusted.file.read_bytes(), issued.key.read_bytes(), issued.certificate.read_bytes()
    )


def certificate_of(files: TlsFiles) -> bytes:
    return Path(files.certificate).read_bytes()


async def test_a_hint_arrives_from_a_service_with_a_certificate_of_its_own(tls: Tls, make_files: MakeFiles) -> None:
    caller = make_files()
    async with listening(tls) as dispatcher:
        hints = DispatcherHints(dispatcher.find, Tls(caller))
        hints.wake([QUEUE])
        assert await dispatcher.next_wake() == QUEUE
        assert dispatcher.callers == [certificate_of(caller)]
        await hints.stop()


async def test_without_tls_hints_are_as_before() -> None:
    async with listening(None) as dispatcher:
        hints = DispatcherHints(dispatcher.find)
        hints.wake([QUEUE])
        assert await dispatcher.next_wake() == QUEUE
        assert dispatcher.callers == []
        await hints.stop()


@pytest.mark.parametrize("intruder", INTRUDERS)
async def test_a_caller_is_refused(tls: Tls, authority: Authority, stranger: Authority, intruder: str) -> None:
    async with (
        listening(tls) as dispatcher,
        channel_of(dispatcher.address, INTRUDERS[intruder](authority, stranger)) as channel,
    ):
        stub = dispatcher_pb2_grpc.DispatcherServiceStub(channel)
        assert await refusal_of(lambda: stub.Wake(iter([WAKE]), timeout=PATIENCE_SEC)) is grpc.StatusCode.UNAVAILABLE
        assert dispatcher.woken.empty()


async def test_health_and_reflection_of_an_internal_port_are_closed_to_strangers(
    tls: Tls, authority: Authority
) -> None:
    anonymous = grpc.ssl_channel_credentials(authority.file.read_bytes())
    async with listening(tls) as dispatcher, channel_of(dispatcher.address, anonymous) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        reflection = reflection_pb2_grpc.ServerReflectionStub(channel)
        asked = iter([reflection_pb2.ServerReflectionRequest(list_services="")])

        async def list_services() -> None:
            async for _ in reflection.ServerReflectionInfo(asked, timeout=PATIENCE_SEC):
                raise AssertionError("it answered")

        check = health_pb2.HealthCheckRequest()
        assert await refusal_of(lambda: health.Check(check, timeout=PATIENCE_SEC)) is grpc.StatusCode.UNAVAILABLE
        assert await refusal_of(list_services) is grpc.StatusCode.UNAVAILABLE


async def fails_to_reach(dispatcher: Dispatcher, caller: Tls) -> None:
    """Hints fail there, and are counted as failed."""
    failed = metrics.HINTS.labels(target="dispatcher", result="failed")
    before = failed._value.get()
    hints = DispatcherHints(dispatcher.find, caller)
    hints.wake([QUEUE])
    await wait_until(lambda: failed._value.get() > before, what="a failed hint")
    await hints.stop()
    assert dispatcher.woken.empty()


async def test_a_hint_is_not_told_to_a_server_of_another_authority(
    tls: Tls, make_files: MakeFiles, stranger: Authority, authority: Authority
) -> None:
    async with listening(Tls(make_files(by=stranger, trusting=authority))) as impostor:
        await fails_to_reach(impostor, tls)


async def test_a_hint_is_not_told_to_a_server_without_the_systems_name(tls: Tls, make_files: MakeFiles) -> None:
    async with listening(Tls(make_files(names=["receiver.test"], addresses=["127.0.0.1"]))) as other:
        await fails_to_reach(other, tls)


async def test_a_hint_is_not_told_in_clear_text(tls: Tls) -> None:
    async with listening(None) as open_to_all:
        await fails_to_reach(open_to_all, tls)
