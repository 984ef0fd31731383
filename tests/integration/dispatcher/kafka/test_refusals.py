"""What brokers refuse, and whether another attempt may do better."""

from __future__ import annotations

import asyncio

import pytest
from confluent_kafka import KafkaError

from taskexecutor_dispatcher.endpoints.base import Outcome
from taskexecutor_dispatcher.endpoints.kafka_failures import not_produced
from tests.integration.dispatcher.kafka.conftest import Deliver, MakeTopic
from tests.servers.kafka import Cluster

SECRET = "hunter2"


def assert_failed(outcome: Outcome, kind: str, message: str, *, retryable: bool) -> None:
    assert outcome.error is not None
    assert outcome.error.to_json() == {"type": kind, "message": message}
    assert outcome.retryable is retryable


async def test_a_topic_that_is_not_there_may_be_tried_again(real_cluster: Cluster, deliver: Deliver) -> None:
    for _ in range(2):
        outcome = await deliver(real_cluster.bootstrap, "no-such-topic", timeout_ms=2000)
        assert_failed(
            outcome, "BROKER_ERROR", "The topic 'no-such-topic' does not exist, say the brokers.", retryable=True
        )


async def test_a_topic_that_is_made_meanwhile_is_found_by_the_next_attempt(
    real_cluster: Cluster, deliver: Deliver
) -> None:
    assert not (await deliver(real_cluster.bootstrap, "made-later", timeout_ms=3000)).succeeded
    real_cluster.create_topic("made-later")
    assert (await deliver(real_cluster.bootstrap, "made-later", timeout_ms=3000)).succeeded


async def test_a_missing_topic_does_not_hold_up_others(
    real_cluster: Cluster, make_topic: MakeTopic, deliver: Deliver
) -> None:
    topic = make_topic()
    missing = [asyncio.create_task(deliver(real_cluster.bootstrap, f"missing-{n}")) for n in range(50)]
    await asyncio.sleep(0)
    assert (await deliver(real_cluster.bootstrap, topic)).succeeded
    assert not any(task.done() for task in missing)
    outcomes = await asyncio.gather(*missing)
    assert {outcome.error and outcome.error.type for outcome in outcomes} == {"BROKER_ERROR"}


async def test_a_name_that_no_topic_can_have_is_not_tried_again(real_cluster: Cluster, deliver: Deliver) -> None:
    outcome = await deliver(real_cluster.bootstrap, "no such topic!")
    message = "The brokers refuse 'no such topic!' as the name of a topic."
    assert_failed(outcome, "INVALID_DESTINATION", message, retryable=False)


@pytest.mark.parametrize("acks", ["1", "all"])
async def test_a_record_that_is_too_large_for_the_topic_is_not_tried_again(
    real_cluster: Cluster, make_topic: MakeTopic, deliver: Deliver, acks: str
) -> None:
    topic = make_topic(max_message_bytes="20000")
    outcome = await deliver(real_cluster.bootstrap, topic, value=b"x" * 30_000, acks=acks)
    assert_failed(outcome, "BROKER_ERROR", "Broker: Message size too large.", retryable=False)


async def test_how_large_a_record_may_be_is_the_topics_to_say(
    real_cluster: Cluster, make_topic: MakeTopic, deliver: Deliver
) -> None:
    topic = make_topic(max_message_bytes="5000000")
    assert (await deliver(real_cluster.bootstrap, topic, value=b"x" * 4_000_000)).succeeded


async def test_a_compacted_topic_that_wants_a_key_is_not_tried_again(
    real_cluster: Cluster, make_topic: MakeTopic, deliver: Deliver
) -> None:
    topic = make_topic(cleanup_policy="compact")
    outcome = await deliver(real_cluster.bootstrap, topic, key=None)
    assert_failed(outcome, "BROKER_ERROR", "Broker: Broker failed to validate record.", retryable=False)
    assert (await deliver(real_cluster.bootstrap, topic, key=b"k")).succeeded


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        (KafkaError.NOT_ENOUGH_REPLICAS, "BROKER_ERROR", True),
        (KafkaError.NOT_LEADER_FOR_PARTITION, "BROKER_ERROR", True),
        (KafkaError.KAFKA_STORAGE_ERROR, "BROKER_ERROR", True),
        (KafkaError._INVALID_DIFFERENT_RECORD, "BROKER_ERROR", True),  # another record of the same batch was at fault
        (KafkaError._TRANSPORT, "BROKER_ERROR", True),
        (KafkaError._FATAL, "BROKER_ERROR", True),
        (KafkaError.REQUEST_TIMED_OUT, "TIMEOUT", True),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "BROKER_ERROR", False),
        (KafkaError.POLICY_VIOLATION, "BROKER_ERROR", False),
    ],
)
def test_what_one_broker_cannot_be_made_to_say_is_judged_by_its_code(code: int, kind: str, retryable: bool) -> None:
    outcome = not_produced(KafkaError(code, f"{SECRET}:9092/bootstrap: a broker's name"), "t", 1000)
    assert outcome.error is not None
    assert outcome.error.type == kind
    assert SECRET not in outcome.error.message
    assert outcome.retryable is retryable


@pytest.mark.parametrize(
    "servers",
    [
        "",
        " , ",
        f"{SECRET}:{SECRET}@127.0.0.1:9092",
        f"SASL_SSL://{SECRET}:9092",
        f"{SECRET}:0",
        f"{SECRET}:65536",
        f"http://{SECRET}:9092/",
    ],
)
async def test_servers_that_cannot_be_meant_are_refused_and_not_shown(deliver: Deliver, servers: str) -> None:
    outcome = await deliver(servers, "t")
    assert outcome.error is not None
    assert outcome.error.type == "INVALID_DESTINATION"
    assert SECRET not in outcome.error.message
    assert not outcome.retryable


async def test_names_that_are_not_known_may_be_tried_again(deliver: Deliver) -> None:
    outcome = await deliver(f"{SECRET}.invalid:9092,nowhere.invalid", "t")
    assert_failed(outcome, "BROKER_ERROR", "No bootstrap server could be resolved: no address.", retryable=True)
