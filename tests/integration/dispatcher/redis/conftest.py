"""Real Redis servers for the tests of Redis deliveries, and a transport to them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from taskexecutor_dispatcher.endpoints.base import Outcome
from taskexecutor_dispatcher.endpoints.redis_stream import RedisStreamTransport
from tests.integration.dispatcher.redis.deliveries import PATIENCE_MS, a_request, a_transport, an_identity
from tests.servers.redis import RedisUnderTest, redis_version
from tests.support import components

Deliver = Callable[..., Awaitable[Outcome]]
StartRedis = Callable[..., RedisUnderTest]


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisUnderTest]:
    """A server for all tests that do not harm it."""
    server = RedisUnderTest(tmp_path_factory.mktemp("redis"))
    server.start()
    components.note("Redis", redis_version())
    yield server
    server.stop()


@pytest.fixture
def redis_server(shared_redis: RedisUnderTest) -> RedisUnderTest:
    """The shared server, empty."""
    shared_redis.admin("FLUSHALL")
    return shared_redis


@pytest.fixture
def start_redis(tmp_path: Path) -> Iterator[StartRedis]:
    """Starts servers of the test's own, with options."""
    started: list[RedisUnderTest] = []

    def start(*options: str) -> RedisUnderTest:
        folder = tmp_path / f"redis-{len(started)}"
        folder.mkdir()
        server = RedisUnderTest(folder, *options)
        started.append(server)
        server.start()
        components.note("Redis", redis_version())
        return server

    yield start
    for server in started:
        server.stop()


@pytest.fixture
async def transport() -> AsyncIterator[RedisStreamTransport]:
    """May reach this machine."""
    made = a_transport()
    yield made
    await made.close()


@pytest.fixture
def deliver(transport: RedisStreamTransport) -> Deliver:
    """Delivers to a URL; keywords change the request and `timeout_ms`."""

    async def send(url: str, *, timeout_ms: int = PATIENCE_MS, **changes: Any) -> Outcome:
        return await transport.deliver(a_request(url, **changes), an_identity(), timeout_ms)

    return send
