"""Kafka and Redis go away and come back."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import Iterator

import pytest

from tests.chaos.conftest import Begin
from tests.chaos.scenario import JOBS, PER_SEC
from tests.chaos.targets import BrokerTargets
from tests.servers.kafka import Broker, KafkaUnavailable
from tests.servers.redis import RedisUnderTest, redis_version
from tests.support import components
from tests.support.waiting import wait_until


@pytest.fixture
def broker(tmp_path: pathlib.Path) -> Iterator[Broker]:
    """A real Kafka."""
    folder = tmp_path / "kafka"
    folder.mkdir()
    try:
        broker = Broker(folder)
    except KafkaUnavailable as reason:
        pytest.skip(f"needs a real Kafka: {reason}")
    broker.start()
    components.note("Kafka", broker.description)
    yield broker
    broker.stop()


@pytest.fixture
def redis(tmp_path: pathlib.Path) -> Iterator[RedisUnderTest]:
    """A real Redis that keeps what it has answered for."""
    folder = tmp_path / "redis"
    folder.mkdir()
    server = RedisUnderTest(folder, "--appendonly", "yes", "--appendfsync", "always")
    server.start()
    components.note("Redis", redis_version())
    yield server
    server.stop()


async def test_kafka_and_redis_are_killed_and_frozen(begin: Begin, broker: Broker, redis: RedisUnderTest) -> None:
    async with begin(BrokerTargets(broker, redis)) as running:
        load = asyncio.create_task(running.load.run(JOBS, PER_SEC))
        for share in (0.2, 0.5):
            await wait_until(lambda least=JOBS * share: len(running.load.accepted) > least, 60, "the moment")
            for server in (broker, redis):
                server.freeze()
                running.fault()
            await asyncio.sleep(3)
            for server in (broker, redis):
                server.kill()
                await asyncio.to_thread(server.start)
                running.fault()
        await load
