"""What deliveries do when brokers hang, die, and come back."""

from __future__ import annotations

import asyncio
import time

import pytest

from taskexecutor_dispatcher.endpoints.kafka import REPORT_LAG_SEC
from tests.integration.dispatcher.kafka.conftest import Deliver, MakeTopic
from tests.integration.dispatcher.kafka.deliveries import PATIENCE_MS
from tests.integration.dispatcher.kafka.records import records
from tests.servers.kafka import Broker, Cluster

DEAD = "127.0.0.1:1"
SHORT_MS = 3000  # short for a delivery, and enough for a first one on a busy machine
MACHINE_LAG_SEC = 5.0


@pytest.mark.parametrize("acks", ["0", "1", "all"])
async def test_brokers_that_are_not_there_are_a_timeout(deliver: Deliver, acks: str) -> None:
    outcome = await deliver(DEAD, "t", timeout_ms=300, acks=acks)
    assert outcome.error is not None
    assert outcome.error.to_json() == {"type": "TIMEOUT", "message": "No broker answered within 300 ms."}
    assert outcome.retryable


async def test_dead_brokers_do_not_hold_up_living_ones(
    cluster: Cluster, make_topic: MakeTopic, deliver: Deliver
) -> None:
    topic = make_topic()
    stuck = [asyncio.create_task(deliver(f"127.0.0.1:{port}", f"t{n}")) for port in range(1, 21) for n in range(10)]
    await asyncio.sleep(0)
    began = time.monotonic()
    assert (await deliver(cluster.bootstrap, topic)).succeeded
    assert (await deliver(cluster.bootstrap, topic)).succeeded
    assert time.monotonic() - began < MACHINE_LAG_SEC
    assert not any(task.done() for task in stuck)
    for task in stuck:
        task.cancel()
    await asyncio.gather(*stuck, return_exceptions=True)


async def test_a_frozen_broker_is_a_timeout_and_stores_no_record_twice(
    mortal_broker: Broker, make_topic: MakeTopic, deliver: Deliver
) -> None:
    topic = make_topic(on=mortal_broker)
    assert (await deliver(mortal_broker.bootstrap, topic, value=b"before", timeout_ms=SHORT_MS)).succeeded
    mortal_broker.freeze()
    began = time.monotonic()
    outcomes = await asyncio.gather(
        *(deliver(mortal_broker.bootstrap, topic, value=b"%d" % n, timeout_ms=SHORT_MS) for n in range(3))
    )
    assert time.monotonic() - began < SHORT_MS / 1000 + REPORT_LAG_SEC + MACHINE_LAG_SEC
    for outcome in outcomes:
        assert outcome.error is not None
        assert outcome.error.to_json() == {
            "type": "TIMEOUT",
            "message": f"No broker confirmed the record within {SHORT_MS} ms.",
        }
        assert outcome.retryable
    mortal_broker.thaw()
    assert (await deliver(mortal_broker.bootstrap, topic, value=b"after")).succeeded
    values = [record.value() for record in await records(mortal_broker.bootstrap, topic)]
    assert len(values) == len(set(values)), values
    assert values[0] == b"before"
    assert values[-1] == b"after"


@pytest.mark.parametrize("acks", ["1", "all"])
async def test_a_broker_that_is_killed_while_it_is_waited_for_fails_the_attempt_and_the_next_one_finds_it_again(
    mortal_broker: Broker, make_topic: MakeTopic, deliver: Deliver, acks: str
) -> None:
    topic = make_topic(on=mortal_broker)
    assert (await deliver(mortal_broker.bootstrap, topic, value=b"before", acks=acks, timeout_ms=SHORT_MS)).succeeded
    mortal_broker.freeze()
    delivery = asyncio.create_task(
        deliver(mortal_broker.bootstrap, topic, value=b"lost", acks=acks, timeout_ms=SHORT_MS)
    )
    done, _ = await asyncio.wait([delivery], timeout=0.2)
    assert not done
    mortal_broker.kill()
    outcome = await delivery
    assert outcome.error is not None
    assert outcome.error.type in {"BROKER_ERROR", "TIMEOUT"}
    assert outcome.retryable
    mortal_broker.start()
    assert (await deliver(mortal_broker.bootstrap, topic, value=b"after", acks=acks)).succeeded
    values = [record.value() for record in await records(mortal_broker.bootstrap, topic)]
    assert values == [b"before", b"after"]


async def test_a_delivery_waits_for_a_broker_that_restarts(
    mortal_broker: Broker, make_topic: MakeTopic, deliver: Deliver
) -> None:
    topic = make_topic(on=mortal_broker)
    assert (await deliver(mortal_broker.bootstrap, topic, timeout_ms=30_000)).succeeded
    mortal_broker.kill()
    delivery = asyncio.create_task(deliver(mortal_broker.bootstrap, topic, timeout_ms=30_000))
    await asyncio.to_thread(mortal_broker.start)
    assert (await delivery).succeeded
    assert len(await records(mortal_broker.bootstrap, topic)) == 2


async def test_a_record_that_timed_out_is_not_sent_when_the_broker_comes_back(
    mortal_broker: Broker, make_topic: MakeTopic, deliver: Deliver
) -> None:
    topic = make_topic(on=mortal_broker)
    assert (await deliver(mortal_broker.bootstrap, topic, value=b"before", timeout_ms=SHORT_MS)).succeeded
    mortal_broker.kill()
    outcome = await deliver(mortal_broker.bootstrap, topic, value=b"late", timeout_ms=SHORT_MS)
    assert outcome.error is not None
    assert outcome.error.type == "TIMEOUT"
    await asyncio.to_thread(mortal_broker.start)
    assert (await deliver(mortal_broker.bootstrap, topic, value=b"after", timeout_ms=PATIENCE_MS)).succeeded
    assert [record.value() for record in await records(mortal_broker.bootstrap, topic)] == [b"before", b"after"]
