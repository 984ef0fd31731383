"""Browsers: no page may call unless its origin was named."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from taskexecutor.v1 import job_pb2
from tests.integration.envoy.gateway import Gateway
from tests.integration.envoy.scripted_api import ScriptedApi, answers

CONSOLE = "https://console.example.com"


@pytest.fixture(scope="module")
def gateway_settings() -> dict[str, Any]:
    return {"cors_origins": (CONSOLE, "http://localhost:3000")}


def preflight(origin: str) -> dict[str, str]:
    """The headers a browser sends ahead of a PUT."""
    return {"origin": origin, "access-control-request-method": "PUT"}


@pytest.mark.parametrize("path", ["/jobs/x", "/taskexecutor.v1.JobService/GetJob"])
async def test_a_preflight_of_a_named_origin_is_answered(
    api: ScriptedApi, rest: aiohttp.ClientSession, path: str
) -> None:
    async with rest.options(path, headers=preflight(CONSOLE)) as answer:
        assert answer.status == 200
        assert answer.headers["access-control-allow-origin"] == CONSOLE
        assert answer.headers["access-control-allow-methods"] == "DELETE, GET, POST, PUT"
    assert api.calls == []


async def test_a_call_of_a_named_origin_may_be_read(api: ScriptedApi, rest: aiohttp.ClientSession) -> None:
    api.on("GetJob", answers(job_pb2.Job()))
    async with rest.get("/jobs/x", headers={"origin": CONSOLE}) as answer:
        assert answer.headers["access-control-allow-origin"] == CONSOLE
        assert "x-request-id" in answer.headers["access-control-expose-headers"]


@pytest.mark.parametrize("origin", ["https://evil.example.com", "https://console.example.com.evil", "null"])
async def test_other_origins_get_no_permission(api: ScriptedApi, rest: aiohttp.ClientSession, origin: str) -> None:
    async with rest.options("/jobs/x", headers=preflight(origin)) as answer:
        assert answer.status == 405
        assert "access-control-allow-origin" not in answer.headers
    assert api.calls == []


async def test_without_named_origins_there_is_no_cors(api: ScriptedApi) -> None:
    gateway = Gateway(api.address)
    await gateway.start()
    try:
        async with (
            aiohttp.ClientSession(f"http://{gateway.address}") as rest,
            rest.options("/jobs/x", headers=preflight(CONSOLE)) as answer,
        ):
            assert answer.status == 405
            assert "access-control-allow-origin" not in answer.headers
    finally:
        gateway.stop()
