"""Whatever a caller writes into a request, the gateway leads to the public services and to nothing else.

The server behind this gateway has the internal services too (a real api has not): a call of theirs would be seen. What is
sent is written by hand, byte by byte, because no client would send it.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

import aiohttp
import grpc.aio
import pytest

from taskexecutor.internal.v1 import dispatcher_pb2, scheduler_pb2
from taskexecutor.v1 import job_pb2
from tests.integration.envoy.gateway import Gateway
from tests.integration.envoy.scripted_api import ScriptedApi, answers

PATIENCE_SEC = 10.0
INTERNAL = [
    f"/{service.full_name}/{method.name}"
    for file in (dispatcher_pb2.DESCRIPTOR, scheduler_pb2.DESCRIPTOR)
    for service in file.services_by_name.values()
    for method in service.methods
]
WAKE = "taskexecutor.internal.v1.DispatcherService/Wake"
EMPTY_MESSAGE = b"\x00\x00\x00\x00\x00"  # as gRPC frames it: not compressed, no bytes
GRPC = {"content-type": "application/grpc", "te": "trailers"}


@dataclass(frozen=True)
class Answered:
    """What came back; status 0 for a connection that was closed without a word."""

    status: int
    grpc_status: str | None
    head: str


async def send(
    gateway: Gateway,
    target: str,
    *,
    method: str = "POST",
    headers: dict[str, str] | None = None,
    body: bytes = EMPTY_MESSAGE,
) -> Answered:
    """One HTTP/1.1 request, whose target goes out as it is."""
    sent = {"host": "gateway", "content-length": str(len(body)), **(headers or {}), "connection": "close"}
    if "upgrade" in sent:
        sent["connection"] = "upgrade, http2-settings"
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    try:
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        async with asyncio.timeout(PATIENCE_SEC):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return Answered(0, None, "")
    finally:
        writer.transport.abort()
    told = re.search(r"^grpc-status: (\d+)\r$", head, re.MULTILINE)
    return Answered(int(head.split()[1]), told and told[1], head)


def assert_refused(answered: Answered, api: ScriptedApi) -> None:
    """No method was called, and the answer is not one of success."""
    assert api.calls == []
    assert answered.status in (0, *range(400, 500)) or answered.grpc_status not in (None, "0"), answered


@pytest.mark.parametrize("path", INTERNAL)
async def test_no_internal_method_is_reached_over_grpc(api: ScriptedApi, channel: grpc.aio.Channel, path: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await channel.unary_unary(path)(b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert api.calls == []


@pytest.mark.parametrize(
    "content_type", ["application/grpc-web+proto", "application/grpc-web-text", "application/json"]
)
@pytest.mark.parametrize("path", INTERNAL)
async def test_no_internal_method_is_reached_from_a_browser(
    api: ScriptedApi, gateway: Gateway, path: str, content_type: str
) -> None:
    assert_refused(await send(gateway, path, headers={"content-type": content_type}), api)


TARGETS = [
    f"/{WAKE}",
    f"//{WAKE}",
    f"/./{WAKE}",
    f"/../{WAKE}",
    f"/jobs/../{WAKE}",
    f"/jobs/%2e%2e/{WAKE}",
    f"/jobs/.%2E/{WAKE}",
    f"/jobs/..%2f{WAKE}",
    f"/jobs/..%5c{WAKE}",
    f"/jobs/..\\{WAKE}",
    f"/jobs/..;/{WAKE}",
    f"/jobs/%252e%252e/{WAKE}",
    f"/taskexecutor.v1.JobService/../{WAKE}",
    f"/taskexecutor.v1.JobService/%2e%2e/{WAKE}",
    f"/taskexecutor.v1.JobService/%2e%2e%2f{WAKE}",
    f"/taskexecutor.v1.JobService//{WAKE}",
    f"/grpc.health.v1.Health/../{WAKE}",
    f"/grpc.reflection.v1alpha.ServerReflection/..%2F{WAKE}",
    "/taskexecutor%2einternal%2ev1.DispatcherService/Wake",
    "/taskexecutor.v1%2f..%2ftaskexecutor.internal.v1.DispatcherService/Wake",
    f"/{WAKE}?x=/taskexecutor.v1.JobService/GetJob",
    f"/{WAKE};/taskexecutor.v1.JobService/GetJob",
    f"/{WAKE}#/taskexecutor.v1.JobService/GetJob",
    f"http://127.0.0.1:50053/{WAKE}",
    f"http://dispatcher:50053/{WAKE}",
    f"http://gateway/{WAKE}",
    f"https://gateway/{WAKE}",
    f"file:///{WAKE}",
    f"{WAKE}",
    "*",
]


@pytest.mark.parametrize("target", TARGETS)
async def test_no_spelling_of_a_path_leads_inside(api: ScriptedApi, gateway: Gateway, target: str) -> None:
    assert_refused(await send(gateway, target, headers=GRPC), api)


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "dispatcher:50053"},
        {"host": "127.0.0.1:50053"},
        {"x-original-url": f"/{WAKE}", "x-rewrite-url": f"/{WAKE}"},
        {"x-envoy-original-path": f"/{WAKE}", "x-envoy-decorator-operation": "inside"},
        {"x-forwarded-host": "dispatcher", "x-forwarded-port": "50053", "x-forwarded-prefix": f"/{WAKE}"},
        {"forwarded": "host=dispatcher:50053"},
        {"x-http-method-override": "POST", "x-grpc-method": f"/{WAKE}"},
    ],
    ids=lambda headers: next(iter(headers)) + "=" + next(iter(headers.values())),
)
async def test_no_header_leads_elsewhere(api: ScriptedApi, gateway: Gateway, headers: dict[str, str]) -> None:
    api.on("GetJob", answers(job_pb2.Job()))
    answered = await send(gateway, "/jobs/x", method="GET", headers=headers, body=b"")
    assert (answered.status, [call.method for call in api.calls]) == (200, ["GetJob"])


PLACES = [
    *("/metrics", "/stats", "/stats/prometheus", "/config_dump", "/clusters", "/server_info", "/listeners", "/certs"),
    *("/memory", "/runtime", "/logging", "/quitquitquit", "/drain_listeners", "/healthcheck/fail", "/reset_counters"),
    *("/debug/pprof", "/admin", "/.env", "/etc/envoy/envoy.json"),
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_neither_metrics_nor_the_admin_interface_are_served(
    api: ScriptedApi, gateway: Gateway, rest: aiohttp.ClientSession, method: str, place: str
) -> None:
    async with rest.request(method, place) as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (404, "NOT_FOUND")
    assert api.calls == []
    assert gateway.process.poll() is None


@pytest.mark.parametrize("target", ["127.0.0.1:50053", "dispatcher:50053", "gateway:8080", "169.254.169.254:80"])
async def test_no_tunnel_is_opened(api: ScriptedApi, gateway: Gateway, target: str) -> None:
    """Status 200 to a CONNECT would be one."""
    assert_refused(await send(gateway, target, method="CONNECT", headers={"host": target}, body=b""), api)


@pytest.mark.parametrize("method", ["TRACE", "TRACK", "DEBUG", "PRI", "PROPFIND"])
async def test_odd_methods_are_refused(api: ScriptedApi, gateway: Gateway, method: str) -> None:
    assert_refused(await send(gateway, "/jobs", method=method, body=b""), api)


@pytest.mark.parametrize("protocol", ["h2c", "websocket", "tcp", "connect-udp", "TLS/1.0"])
@pytest.mark.parametrize("target", ["/jobs/x", f"/{WAKE}"])
async def test_no_connection_becomes_another_protocol(
    api: ScriptedApi, gateway: Gateway, protocol: str, target: str
) -> None:
    """h2c would carry requests past the gateway's routes, a websocket bytes past its filters."""
    api.on("GetJob", answers(job_pb2.Job()))
    headers = {"upgrade": protocol, "http2-settings": "AAMAAABkAARAAAAAAAIAAAAA"}
    answered = await send(gateway, target, method="GET", headers=headers, body=b"")
    assert answered.status not in (0, 101)
    assert {call.method for call in api.calls} <= {"GetJob"}
