"""One real Envoy per test module, in front of a gRPC server that does what each test says."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import grpc.aio
import pytest

from tests.integration.envoy.gateway import Gateway
from tests.integration.envoy.scripted_api import ScriptedApi


@pytest.fixture(scope="module")
def gateway_settings() -> dict[str, Any]:
    """GatewayOptions that differ from the defaults; modules override it."""
    return {}


@pytest.fixture(scope="module")
async def running_api() -> AsyncIterator[ScriptedApi]:
    with tempfile.TemporaryDirectory(prefix="te-api-") as folder:
        api = ScriptedApi(f"unix:{folder}/api.sock")
        await api.start()
        yield api
        await api.die()


@pytest.fixture(scope="module")
async def gateway(running_api: ScriptedApi, gateway_settings: dict[str, Any]) -> AsyncIterator[Gateway]:
    gateway = Gateway(running_api.address, **gateway_settings)
    await gateway.start()
    yield gateway
    gateway.stop()


@pytest.fixture
def api(running_api: ScriptedApi) -> ScriptedApi:
    """The server behind the gateway, without scripts and calls of earlier tests."""
    running_api.reset()
    return running_api


@pytest.fixture
async def rest(gateway: Gateway) -> AsyncIterator[aiohttp.ClientSession]:
    timeout = aiohttp.ClientTimeout(total=20)
    async with aiohttp.ClientSession(f"http://{gateway.address}", timeout=timeout) as session:
        yield session


@pytest.fixture
async def channel(gateway: Gateway) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(gateway.address) as channel:
        yield channel
