"""What arrives in the topic, and what is reported of it."""

from __future__ import annotations

import asyncio

import pytest
from confluent_kafka import Message

from taskexecutor_dispatcher.endpoints.http_headers import traceparent
from tests.integration.dispatcher.kafka.conftest import Deliver, MakeTopic
from tests.integration.dispatcher.kafka.deliveries import EXECUTION_ID, JOB_ID, SCHEDULED_AT
from tests.integration.dispatcher.kafka.records import records
from tests.servers.kafka import Cluster
from tests.support.waiting import wait_until


@pytest.mark.parametrize("acks", ["0", "1", "all"])
async def test_the_output_says_where_the_record_is(
    cluster: Cluster, make_topic: MakeTopic, deliver: Deliver, acks: str
) -> None:
    topic = make_topic(partitions=3)
    outcomes = [await deliver(cluster.bootstrap, topic, acks=acks, value=b"%d" % n) for n in range(3)]

    async def all_records() -> list[Message] | None:
        arrived = await records(cluster.bootstrap, topic)
        return arrived if len(arrived) >= 3 else None

    # Without an acknowledgement it is only known that they were sent.
    arrived = await wait_until(all_records) if acks == "0" else await records(cluster.bootstrap, topic)
    assert len(arrived) == 3
    found = {record.value(): record for record in arrived}
    for n, outcome in enumerate(outcomes):
        record = found[b"%d" % n]
        expected = {"partition": record.partition(), "offset": record.offset()}
        if acks == "0":
            del expected["offset"]  # nobody told it
        assert outcome.output == expected


async def test_key_value_and_headers_arrive_with_the_deliverys_identity(
    cluster: Cluster, make_topic: MakeTopic, deliver: Deliver
) -> None:
    topic = make_topic()
    users = (("ce-type", b"order.created"), ("note", "Grüße".encode()), ("ce-type", b"again"))
    await deliver(cluster.bootstrap, topic, key=b"order-7", value="{'ü'}".encode(), headers=users, attempt=3)
    (record,) = await records(cluster.bootstrap, topic)
    assert (record.key(), record.value()) == (b"order-7", "{'ü'}".encode())
    assert record.headers() == [
        ("Idempotency-Key", EXECUTION_ID.encode()),
        ("webhook-id", EXECUTION_ID.encode()),
        ("Task-Executor-Attempt", b"3"),
        ("Task-Executor-Job-Id", JOB_ID.encode()),
        ("Task-Executor-Scheduled-At", SCHEDULED_AT.encode()),
        ("traceparent", traceparent(EXECUTION_ID, 3).encode()),
        *users,
    ]


async def test_a_record_without_key_has_none(cluster: Cluster, make_topic: MakeTopic, deliver: Deliver) -> None:
    topic = make_topic()
    await deliver(cluster.bootstrap, topic, key=None, value=b"")
    (record,) = await records(cluster.bootstrap, topic)
    assert record.key() is None


async def test_a_key_lands_where_javas_producers_put_it(
    real_cluster: Cluster, make_topic: MakeTopic, deliver: Deliver
) -> None:
    topic = make_topic(partitions=10)
    placed = {}
    for key in (b"21", b"foobar", b"a-little-bit-long-string"):
        outcome = await deliver(real_cluster.bootstrap, topic, key=key)
        assert outcome.output is not None
        placed[key] = outcome.output["partition"]
    # murmur2 of these keys as in org.apache.kafka.common.utils.UtilsTest, made positive, modulo 10
    hashes = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    assert placed == {key: (value & 0x7FFFFFFF) % 10 for key, value in hashes.items()}


async def test_many_deliveries_at_once_each_store_one_record(
    cluster: Cluster, make_topic: MakeTopic, deliver: Deliver
) -> None:
    topic = make_topic(partitions=4)
    outcomes = await asyncio.gather(*(deliver(cluster.bootstrap, topic, key=None, value=b"%d" % n) for n in range(500)))
    assert all(outcome.succeeded for outcome in outcomes)
    found = await records(cluster.bootstrap, topic)
    assert sorted(int(record.value() or b"") for record in found) == list(range(500))
    places = {(outcome.output["partition"], outcome.output["offset"]) for outcome in outcomes if outcome.output}
    assert places == {(record.partition(), record.offset()) for record in found}


async def test_servers_may_be_several_with_some_of_them_gone(
    cluster: Cluster, make_topic: MakeTopic, deliver: Deliver
) -> None:
    topic = make_topic()
    servers = f"nowhere.invalid, 127.0.0.1:1 ,PLAINTEXT://{cluster.bootstrap.split(',')[0]},"
    assert (await deliver(servers, topic)).succeeded
