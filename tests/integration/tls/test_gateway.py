"""The real Envoy speaks TLS on both sides: with the api it shows a certificate and looks at the api's."""

from __future__ import annotations

import asyncio
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from taskexecutor_common.config.tls_files import PEER_NAME, TlsFiles
from taskexecutor_common.rpc.server import RpcServer
from taskexecutor_common.rpc.tls import Tls
from taskexecutor_envoy import tls as gateway_tls
from taskexecutor_envoy.config import GatewayOptions, build_config
from taskexecutor_envoy.main import DESCRIPTOR, main
from tests.integration.envoy.gateway import Gateway
from tests.integration.tls.conftest import MakeFiles
from tests.support.certificates import Authority, Issued
from tests.support.peers import PATIENCE_SEC
from tests.support.waiting import wait_until

SERVING = health_pb2.HealthCheckResponse.SERVING


def upstream(files: TlsFiles) -> dict[str, str]:
    """GatewayOptions of a gateway with these files towards the api."""
    return {"upstream_cert": files.certificate, "upstream_key": files.key, "upstream_ca": files.authority}


@asynccontextmanager
async def api_with(tls: Tls | None, listen: str = "127.0.0.1:0") -> AsyncIterator[str]:
    """The port of an api, as far as TLS is concerned: health and reflection are all that it has. Yields its address."""
    server = RpcServer(listen, grace_sec=0, tls=tls)
    await server.start()
    try:
        yield f"127.0.0.1:{server.port}" if server.port else listen
    finally:
        await server.stop()


@asynccontextmanager
async def gateway_to(address: str, **settings: Any) -> AsyncIterator[Gateway]:
    gateway = Gateway(address, **settings)
    await gateway.start()
    try:
        yield gateway
    finally:
        gateway.stop()


def is_ready(gateway: Gateway) -> Callable[[], Awaitable[bool]]:
    """Whether the gateway's health checks reach the api."""

    async def ready() -> bool:
        async with aiohttp.ClientSession() as session, session.get(f"http://{gateway.address}/readyz") as answer:
            return answer.status == 200

    return ready


async def check_health(channel: grpc.aio.Channel) -> int:
    answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE_SEC)
    return int(answer.status)


async def test_calls_reach_an_api_that_speaks_tls(tls: Tls, make_files: MakeFiles) -> None:
    async with api_with(tls) as address, gateway_to(address, **upstream(make_files())) as gateway:
        await wait_until(is_ready(gateway))
        async with grpc.aio.insecure_channel(gateway.address) as channel:
            assert await check_health(channel) == SERVING
        assert await gateway.counter("cluster.api.ssl.handshake") >= 1


async def test_a_unix_socket_stays_in_clear_text(tls: Tls) -> None:
    with tempfile.TemporaryDirectory(prefix="te-api-") as folder:
        async with api_with(tls, f"unix:{folder}/api.sock") as address, gateway_to(address) as gateway:
            await wait_until(is_ready(gateway))


async def assert_never_ready(gateway: Gateway, counter: str) -> None:
    """The gateway has tried, as that counter shows, and has not found the api well."""

    async def tried() -> bool:
        return await gateway.counter(counter) >= 1

    await wait_until(tried, what=counter)
    assert not await is_ready(gateway)()


async def test_an_api_of_another_authority_is_not_used(
    make_files: MakeFiles, stranger: Authority, authority: Authority
) -> None:
    impostor = Tls(make_files(by=stranger, trusting=authority))
    async with api_with(impostor) as address, gateway_to(address, **upstream(make_files())) as gateway:
        await assert_never_ready(gateway, "cluster.api.ssl.fail_verify_error")


async def test_an_api_without_the_systems_name_is_not_used(make_files: MakeFiles) -> None:
    other = Tls(make_files(names=["api.test"]))
    async with api_with(other) as address, gateway_to(address, **upstream(make_files())) as gateway:
        await assert_never_ready(gateway, "cluster.api.ssl.fail_verify_san")


async def test_a_gateway_of_another_authority_is_not_served(
    tls: Tls, make_files: MakeFiles, stranger: Authority
) -> None:
    async with api_with(tls) as address, gateway_to(address, **upstream(make_files(by=stranger))) as gateway:
        await assert_never_ready(gateway, "cluster.api.health_check.failure")


async def test_a_gateway_in_clear_text_is_not_served(tls: Tls) -> None:
    async with api_with(tls) as address, gateway_to(address) as gateway:
        await assert_never_ready(gateway, "cluster.api.health_check.failure")


async def test_an_api_in_clear_text_is_not_used(make_files: MakeFiles) -> None:
    async with api_with(None) as address, gateway_to(address, **upstream(make_files())) as gateway:
        await assert_never_ready(gateway, "cluster.api.ssl.connection_error")


@pytest.fixture
def public(authority: Authority) -> Issued:
    """What callers see: a certificate for the gateway's own name, which any authority may have made."""
    return authority.issue(addresses=["127.0.0.1"])


@pytest.fixture
async def public_gateway(public: Issued) -> AsyncIterator[Gateway]:
    """A gateway that callers speak TLS with, before an api that does not."""
    async with (
        api_with(None) as address,
        gateway_to(address, tls_cert=str(public.certificate), tls_key=str(public.key)) as gateway,
    ):
        yield gateway


async def test_callers_speak_tls_when_the_gateway_has_a_certificate(
    public_gateway: Gateway, authority: Authority
) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"https://{public_gateway.address}/healthz", ssl=authority.trusting()) as answer,
    ):
        assert (answer.status, await answer.json()) == (200, {"status": "ok"})
    credentials = grpc.ssl_channel_credentials(authority.file.read_bytes())
    async with grpc.aio.secure_channel(public_gateway.address, credentials) as channel:
        assert await check_health(channel) == SERVING


async def test_callers_in_clear_text_are_refused_then(public_gateway: Gateway) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", public_gateway.port)
    writer.write(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
    async with asyncio.timeout(PATIENCE_SEC):
        assert b"HTTP/" not in await reader.read()
    writer.close()
    await writer.wait_closed()


async def test_old_tls_is_not_spoken_with_callers(public_gateway: Gateway, authority: Authority) -> None:
    old = authority.trusting()
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError):
        await asyncio.open_connection("127.0.0.1", public_gateway.port, ssl=old)


# --- options ---


def test_the_gateway_asks_for_the_name_that_the_services_have() -> None:
    assert gateway_tls.PEER_NAME == PEER_NAME


@pytest.mark.parametrize(
    "flags",
    [
        ["--tls-cert", "a.pem"],
        ["--tls-key", "a.key"],
        ["--upstream-ca", "ca.pem"],
        ["--upstream-cert", "a.pem", "--upstream-key", "a.key"],
        ["--upstream", "unix:/a.sock", "--upstream-ca", "c", "--upstream-cert", "a", "--upstream-key", "k"],
    ],
)
def test_files_that_are_of_no_use_are_refused(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*flags, "--out", "-"])
    assert ended.value.code == 2
    assert ("go together" in (said := capsys.readouterr().err)) or "unix socket" in said


def test_the_command_takes_every_file(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("tls-cert", "tls-key", "upstream-cert", "upstream-key", "upstream-ca")
    flags = [part for name in names for part in (f"--{name}", f"/{name}.pem")]
    assert main([*flags, "--descriptor", "inline", "--out", "-"]) == 0
    written = json.loads(capsys.readouterr().out)
    files = {name.replace("-", "_"): f"/{name}.pem" for name in names}
    options = GatewayOptions(DESCRIPTOR.read_bytes(), listen="0.0.0.0:8080", upstream="api:50051", **files)
    assert written == build_config(options)
