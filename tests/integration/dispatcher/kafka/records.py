"""Reads back what is in a topic."""

from __future__ import annotations

import asyncio
import time

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition


async def records(bootstrap_servers: str, topic: str) -> list[Message]:
    """All records of all partitions, those of each in order."""
    return await asyncio.to_thread(_read, bootstrap_servers, topic)


def _read(bootstrap_servers: str, topic: str) -> list[Message]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "tests",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        return _until_all_ends(consumer, set(partitions))
    finally:
        consumer.close()


def _until_all_ends(consumer: Consumer, open_partitions: set[int]) -> list[Message]:
    found = []
    deadline = time.monotonic() + 20
    while open_partitions:
        assert time.monotonic() < deadline, f"no end of partitions {open_partitions}"
        message = consumer.poll(0.5)
        if message is None:
            continue
        error = message.error()
        if error is None:
            found.append(message)
        elif error.code() == KafkaError._PARTITION_EOF:
            open_partitions.discard(message.partition())
    return found
