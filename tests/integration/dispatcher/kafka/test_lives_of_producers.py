"""How producers come and go, and that nothing is left of them."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest
import uvloop

from taskexecutor_dispatcher.endpoints.kafka import KafkaTransport
from tests.integration.dispatcher.kafka.conftest import Deliver, MakeTopic
from tests.integration.dispatcher.kafka.deliveries import PATIENCE_MS, a_request, a_transport, an_identity
from tests.integration.dispatcher.kafka.records import records
from tests.servers.kafka import Broker, Cluster
from tests.support.waiting import wait_until

DEAD = "127.0.0.1:1"


def polling_threads() -> int:
    return sum(thread.name == "kafka-poll" for thread in threading.enumerate())


@pytest.fixture(autouse=True)
async def no_producer_is_left_from_before() -> None:
    """A thread outlives its producer by a moment."""
    await wait_until(lambda: polling_threads() == 0)


async def test_deliveries_share_a_producer_where_they_can(
    cluster: Cluster, make_topic: MakeTopic, deliver: Deliver
) -> None:
    first, second = make_topic(), make_topic()
    await asyncio.gather(*(deliver(cluster.bootstrap, topic) for topic in (first, second) for _ in range(5)))
    assert polling_threads() == 1
    await deliver(cluster.bootstrap, first, acks="1")
    assert polling_threads() == 2


async def test_idle_producers_are_closed(cluster: Cluster, make_topic: MakeTopic) -> None:
    transport = a_transport(idle_sec=0)
    await transport.deliver(a_request(cluster.bootstrap, make_topic()), an_identity(), PATIENCE_MS)
    await wait_until(lambda: polling_threads() == 0)
    await transport.close()


async def test_no_more_producers_than_allowed_are_kept(cluster: Cluster, make_topic: MakeTopic) -> None:
    topic = make_topic()
    transport = a_transport(max_producers=2)
    for acks in ("0", "1", "all"):
        await transport.deliver(a_request(cluster.bootstrap, topic, acks=acks), an_identity(), PATIENCE_MS)
    await wait_until(lambda: polling_threads() == 2)
    await transport.close()
    await wait_until(lambda: polling_threads() == 0)


async def test_a_producer_in_use_is_not_closed_to_make_room(cluster: Cluster, make_topic: MakeTopic) -> None:
    topic = make_topic()
    transport = a_transport(max_producers=1)
    requests = [a_request(cluster.bootstrap, topic, acks=acks) for acks in ("0", "1", "all")]
    outcomes = await asyncio.gather(
        *(transport.deliver(request, an_identity(), PATIENCE_MS) for request in requests for _ in range(20))
    )
    await transport.close()
    assert all(outcome.succeeded for outcome in outcomes)


async def test_silent_brokers_are_looked_up_anew(transport: KafkaTransport, deliver: Deliver) -> None:
    await deliver(DEAD, "t", timeout_ms=200)
    await wait_until(lambda: polling_threads() == 0)


async def test_deliveries_in_flight_fail_when_the_transport_closes(
    mortal_broker: Broker, make_topic: MakeTopic
) -> None:
    topic = make_topic(on=mortal_broker)
    transport = a_transport()
    assert (await transport.deliver(a_request(mortal_broker.bootstrap, topic), an_identity(), PATIENCE_MS)).succeeded
    mortal_broker.freeze()
    waiting = [
        asyncio.create_task(transport.deliver(a_request(servers, topic), an_identity(), PATIENCE_MS))
        for servers in (mortal_broker.bootstrap, DEAD)
    ]
    await asyncio.wait(waiting, timeout=0.1)
    async with asyncio.timeout(10):
        await transport.close()
    outcomes = await asyncio.gather(*waiting)
    assert [outcome.error and outcome.error.to_json() for outcome in outcomes] == [
        {"type": "BROKER_ERROR", "message": "The dispatcher is shutting down."}
    ] * 2
    assert all(outcome.retryable for outcome in outcomes)


async def test_a_closed_transport_sends_nothing(cluster: Cluster, make_topic: MakeTopic) -> None:
    topic = make_topic()
    transport = a_transport()
    await transport.close()
    await transport.close()
    outcome = await transport.deliver(a_request(cluster.bootstrap, topic), an_identity(), PATIENCE_MS)
    assert outcome.error is not None
    assert outcome.error.message == "The dispatcher is shutting down."
    assert await records(cluster.bootstrap, topic) == []


async def test_cancelling_one_delivery_leaves_the_others_alone(
    cluster: Cluster, make_topic: MakeTopic, deliver: Deliver
) -> None:
    topic = make_topic()
    cancelled = asyncio.create_task(deliver(cluster.bootstrap, topic, value=b"cancelled"))
    other = asyncio.create_task(deliver(cluster.bootstrap, topic, value=b"other"))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert (await other).succeeded


async def test_librdkafka_writes_nothing_on_its_own(
    deliver: Deliver, cluster: Cluster, make_topic: MakeTopic, capfd: pytest.CaptureFixture[str]
) -> None:
    await deliver(DEAD, "t", timeout_ms=300)
    await deliver(cluster.bootstrap, make_topic())
    assert capfd.readouterr() == ("", "")


async def test_it_works_under_uvloop(cluster: Cluster, make_topic: MakeTopic) -> None:
    topic = make_topic()

    async def deliver_some() -> list[bool]:
        transport = a_transport()
        outcomes = [
            await transport.deliver(a_request(servers, topic), an_identity(), 1500)
            for servers in (cluster.bootstrap, DEAD)
        ]
        await transport.close()
        return [outcome.succeeded for outcome in outcomes]

    def run() -> list[bool]:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(deliver_some())

    assert await asyncio.to_thread(run) == [True, False]
    gc.collect()  # an unclosed socket would warn here, which is an error
