"""One librdkafka producer as asyncio sees it: its reports arrive in a thread, its blocking calls run in another.

`confluent_kafka.aio` is not used: its producer gathers batches for up to a second and takes no headers.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from taskexecutor_dispatcher.endpoints.kafka_brokers import BrokerGate, parse_servers

# How long a topic that the brokers do not know is asked for again: one that they make on demand takes a moment.
_PROPAGATION_SEC = 2.0
_ASK_AGAIN_SEC = 0.1
# The longest that a blocking call may last, and with it the end of a producer whose brokers are gone.
_CALL_SEC = 1.0
_POLL_SEC = 0.25
_LONGEST_ANSWER_BYTES = 4 * 1024 * 1024
_NOT_THERE_YET = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE)
_NO_BROKER = (KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN)

# librdkafka's own lines name brokers, which may be secrets, and repeat what the attempts say: they go nowhere.
_silence = logging.Logger("librdkafka")
_silence.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True, repr=False)
class ProducerKey:
    """What deliveries must have in common to share a producer. librdkafka knows a message's timeout by its producer."""

    bootstrap_servers: str
    acks: str
    timeout_ms: int


@dataclass(frozen=True, slots=True, repr=False)
class Record:
    """What is produced."""

    topic: str
    key: bytes | None
    value: bytes
    headers: list[tuple[str, str | bytes | None]]


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a record. No offset where the broker was not asked for one (acks=0)."""

    error: KafkaError | None
    partition: int | None
    offset: int | None


class ProducerClosed(Exception):
    """The producer was closed while, or before, it was used."""


_Future = asyncio.Future[Report]


class KafkaProducer:
    """Produces to one cluster. Opens itself when first used, inside the running event loop."""

    def __init__(self, key: ProducerKey, gate: BrokerGate) -> None:
        self._key = key
        self._gate = gate
        self._loop = asyncio.get_running_loop()
        self._asking = asyncio.Lock()
        self._known_topics: set[str] = set()
        self._producer: Producer | None = None
        self._reports: list[tuple[_Future, Report]] = []
        self._calls = ThreadPoolExecutor(1, thread_name_prefix="kafka-call")
        self._poller = threading.Thread(target=self._poll, name="kafka-poll", daemon=True)
        self._closing = threading.Event()
        self._ended = asyncio.Event()

    async def meet(self, topic: str) -> None:
        """Waits until the cluster has told about the topic; goes on asking while no broker answers.

        Raises ValueError, gaierror or AddressRefused for brokers that cannot be gone to, KafkaException for a topic that
        cannot be produced to, ProducerClosed.
        """
        patience_sec = min(_PROPAGATION_SEC, self._key.timeout_ms / 2000)
        patience_ends: float | None = None
        while topic not in self._known_topics:
            async with self._asking:
                fault = None if topic in self._known_topics else await self._ask(topic)
            if fault is None:
                continue
            if fault.code() not in _NO_BROKER:
                patience_ends = patience_ends or self._loop.time() + patience_sec
                if fault.code() not in _NOT_THERE_YET or self._loop.time() > patience_ends:
                    raise KafkaException(fault)
            await asyncio.sleep(_ASK_AGAIN_SEC)

    async def send(self, record: Record) -> Report:
        """Produces, and waits for the report: `meet` comes first. Raises KafkaException, BufferError, ProducerClosed."""
        if self._closing.is_set() or self._producer is None:
            raise ProducerClosed
        future: _Future = self._loop.create_future()
        self._producer.produce(
            record.topic,
            key=record.key,
            value=record.value,
            headers=record.headers,
            on_delivery=partial(self._note_report, future),
        )
        return await future

    def forget(self, topic: str) -> None:
        """Has the topic asked for again before it is used: it is gone."""
        self._known_topics.discard(topic)

    def give_up(self) -> None:
        """Sends nothing more, at once; `close` must still be awaited. Whoever waits for a report gets one."""
        if self._producer is not None and not self._closing.is_set():
            self._producer.purge(blocking=False)
        self._closing.set()

    async def close(self) -> None:
        """Gives up what was not sent yet, and ends."""
        self.give_up()
        if self._producer is None:
            self._calls.shutdown(wait=False)
            return
        await self._ended.wait()

    async def _ask(self, topic: str) -> KafkaError | None:
        """What is wrong with the topic or the way to it. Has librdkafka learn about the topic, too, and about a broker
        that gives numbers to an idempotent producer, which costs it half a second otherwise."""
        producer = await self._open()
        try:
            metadata = await self._call(producer.list_topics, topic, _CALL_SEC)
        except KafkaException as failure:
            error: KafkaError = failure.args[0]
            return error
        await self._gate.check(broker.host for broker in metadata.brokers.values())
        fault: KafkaError | None = metadata.topics[topic].error
        if fault is None:
            self._known_topics.add(topic)
        return fault

    async def _open(self) -> Producer:
        if self._producer is None:
            addresses = await self._gate.resolve(parse_servers(self._key.bootstrap_servers))
            if self._closing.is_set():
                raise ProducerClosed
            self._producer = Producer(_settings(self._key, addresses), logger=_silence)
            self._poller.start()
        return self._producer

    async def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if self._closing.is_set():
            raise ProducerClosed
        return await self._loop.run_in_executor(self._calls, function, *arguments)

    def _note_report(self, future: _Future, error: KafkaError | None, message: Message) -> None:
        """Called by librdkafka, inside poll and so in its thread."""
        self._reports.append((future, Report(error, message.partition(), message.offset())))

    def _poll(self) -> None:
        """The life of the polling thread."""
        assert self._producer is not None
        try:
            while not self._closing.is_set():
                self._producer.poll(_POLL_SEC)
                self._hand_over()
            self._calls.shutdown(wait=True)  # nobody may be inside the producer when it ends
            self._producer.purge()
            self._producer.flush(_CALL_SEC)
            self._hand_over()
            self._producer.close()
        finally:
            self._tell_loop(self._ended.set)

    def _hand_over(self) -> None:
        if self._reports:
            reports, self._reports = self._reports, []
            self._tell_loop(_settle, reports)

    def _tell_loop(self, function: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            pass  # the event loop is closed, so nobody waits


def _settle(reports: list[tuple[_Future, Report]]) -> None:
    for future, report in reports:
        if not future.done():
            future.set_result(report)


def _settings(key: ProducerKey, addresses: str) -> dict[str, Any]:
    """librdkafka's configuration; TLS and SASL would be added here."""
    if key.acks == "all":
        # Brokers tell a repetition by its number, so the library's own repetitions store nothing twice.
        safety: dict[str, Any] = {"enable.idempotence": True}
    else:
        # Without numbers a repetition might: what is repeated is the attempt, by the retry policy.
        safety = {"enable.idempotence": False, "retries": 0}
    return {
        **safety,
        "bootstrap.servers": addresses,
        "client.id": "task-executor",
        "acks": key.acks,
        "message.timeout.ms": key.timeout_ms,
        "request.timeout.ms": key.timeout_ms,
        "topic.metadata.propagation.max.ms": int(_PROPAGATION_SEC * 1000),
        "linger.ms": 0,
        # A batch that is too large for its topic fails as a whole, since librdkafka does not divide it; this is what
        # Java's producers send. A single larger record goes alone, and how large it may be is the broker's to say.
        "batch.size": 16_384,
        "message.max.bytes": 100_000_000,
        # What a broker says to us is short: word of a topic, and of records. It must not fill our memory instead.
        "receive.message.max.bytes": _LONGEST_ANSWER_BYTES,
        "partitioner": "murmur2_random",  # as Java's producers do: a key lands on the partition where they put it
        "socket.connection.setup.timeout.ms": 5_000,
        "reconnect.backoff.max.ms": 1_000,
        "log_level": 0,
    }
