"""A Kafka cluster for the tests of Kafka deliveries, brokers of a test's own, and a transport to them."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from taskexecutor_dispatcher.endpoints.base import Outcome
from taskexecutor_dispatcher.endpoints.kafka import KafkaTransport
from tests.integration.dispatcher.kafka.deliveries import PATIENCE_MS, a_request, a_transport, an_identity
from tests.servers.kafka import Broker, Cluster, KafkaUnavailable, MockCluster
from tests.support import components

Deliver = Callable[..., Awaitable[Outcome]]
MakeTopic = Callable[..., str]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A real broker where there can be one, else librdkafka's mock cluster; the summary says which it was."""
    started: Cluster
    try:
        started = _start_broker(tmp_path_factory.mktemp("kafka"))
    except KafkaUnavailable as reason:
        started = MockCluster(str(reason))
    components.note("Kafka", started.description)
    yield started
    started.stop()


@pytest.fixture
def real_cluster(cluster: Cluster) -> Cluster:
    """For what the mock cluster does not do."""
    if not cluster.is_real:
        pytest.skip(f"needs a real Kafka; this is {cluster.description}")
    return cluster


@pytest.fixture
def make_topic(cluster: Cluster) -> MakeTopic:
    """Makes a topic that nobody else uses, and gives its name."""

    def make(*, on: Cluster = cluster, **settings: Any) -> str:
        name = f"t-{uuid.uuid4().hex[:12]}"
        on.create_topic(name, **settings)
        return name

    return make


@pytest.fixture(scope="session")
def second_broker(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker | None]:
    """A broker besides the cluster that everybody uses; none where there is no real Kafka."""
    broker = _start_broker(tmp_path_factory.mktemp("kafka")) if cluster.is_real else None
    yield broker
    if broker is not None:
        broker.stop()


@pytest.fixture
def mortal_broker(real_cluster: Cluster, second_broker: Broker) -> Iterator[Broker]:
    """A running broker that the test may freeze and kill."""
    if not second_broker.is_running:
        second_broker.start()
    yield second_broker
    if second_broker.is_running:
        second_broker.thaw()


@pytest.fixture
async def transport() -> AsyncIterator[KafkaTransport]:
    """May reach this machine."""
    made = a_transport()
    yield made
    await made.close()


@pytest.fixture
def deliver(transport: KafkaTransport) -> Deliver:
    """Delivers to a topic of a cluster; keywords change the request, `timeout_ms` and `attempt` the rest."""

    async def send(
        bootstrap_servers: str, topic: str, *, timeout_ms: int = PATIENCE_MS, attempt: int = 1, **changes: Any
    ) -> Outcome:
        request = a_request(bootstrap_servers, topic, **changes)
        return await transport.deliver(request, an_identity(attempt), timeout_ms)

    return send


def _start_broker(folder: Path) -> Broker:
    broker = Broker(folder)
    try:
        broker.start()
    except BaseException:
        broker.stop()
        raise
    return broker
