"""Produces Kafka records: one record an attempt, through producers that are shared, and success on the broker's word."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from aiohttp.abc import AbstractResolver
from confluent_kafka import KafkaError, KafkaException

from taskexecutor_common.egress import EgressPolicy
from taskexecutor_common.endpoint_types.base import DeliveryIdentity
from taskexecutor_common.endpoint_types.kafka import KafkaRequest
from taskexecutor_dispatcher.endpoints.base import Outcome
from taskexecutor_dispatcher.endpoints.deadlines import Deadlines
from taskexecutor_dispatcher.endpoints.kafka_brokers import BrokerGate
from taskexecutor_dispatcher.endpoints.kafka_failures import (
    broker_error,
    invalid_destination,
    is_timeout,
    names_unknown_topic,
    not_produced,
    not_reached,
    timed_out,
)
from taskexecutor_dispatcher.endpoints.kafka_headers import record_headers
from taskexecutor_dispatcher.endpoints.kafka_producer import (
    KafkaProducer,
    ProducerClosed,
    ProducerKey,
    Record,
    Report,
)
from taskexecutor_dispatcher.endpoints.resolver import AllowedAddresses, SystemResolver
from taskexecutor_dispatcher.endpoints.shared_clients import SharedClients

MAX_PRODUCERS = 32
IDLE_SEC = 120.0
# librdkafka looks once a second for messages whose time is up, and only its report makes it certain that it will not
# send one any more. So a report is waited for that much longer than the attempt may take.
REPORT_LAG_SEC = 1.5
_CLOSING = "The dispatcher is shutting down."


class KafkaTransport:
    """The Transport of Kafka endpoints. Made inside the running event loop; closed by `close`.

    `max_producers` bounds the producers (one for each bootstrap servers, acks and timeout), except that those in use are
    never closed; one that was not used for `idle_sec` seconds is.
    """

    def __init__(
        self,
        *,
        egress: EgressPolicy,
        max_producers: int = MAX_PRODUCERS,
        idle_sec: float = IDLE_SEC,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._resolver = AllowedAddresses(resolver or SystemResolver(), egress)
        self._gate = BrokerGate(self._resolver)
        self._producers = SharedClients(self._make_producer, limit=max_producers, idle_sec=idle_sec)
        self._deadlines = Deadlines()

    async def deliver(self, request: KafkaRequest, identity: DeliveryIdentity, timeout_ms: int) -> Outcome:
        """Produces one record and waits for the broker's report, which may take REPORT_LAG_SEC longer than `timeout_ms`
        to say that there is none."""
        if self._deadlines.are_over:
            return broker_error(_CLOSING)
        key = ProducerKey(request.bootstrap_servers, request.acks, timeout_ms)
        record = Record(request.topic, request.key, request.value, record_headers(request.headers, identity))
        with self._producers.borrow(key) as producer:
            attempt = _Attempt(producer, record, timeout_ms, self._deadlines)
            outcome = await attempt.run()
            if attempt.spoilt:
                self._producers.drop(key, producer)
            return outcome

    async def close(self) -> None:
        """Gives up what was not sent yet and closes all producers; in-flight deliveries fail."""
        await self._deadlines.end_all()
        await self._producers.close()
        await self._resolver.close()

    def _make_producer(self, key: ProducerKey) -> KafkaProducer:
        return KafkaProducer(key, self._gate)


@dataclass(slots=True, repr=False)
class _Attempt:
    """One record's way to the broker."""

    producer: KafkaProducer
    record: Record
    timeout_ms: int
    deadlines: Deadlines
    spoilt: bool = False
    """The producer is of no use to others: its brokers are silent (those that its servers' names lead to by now may not
    be), forbidden, or it has failed for good."""

    async def run(self) -> Outcome:
        """Finds the topic, produces, judges. Never raises for what brokers do."""
        ends_at = asyncio.get_running_loop().time() + self.timeout_ms / 1000
        try:
            return await self._meet() or await self._send(ends_at)
        except ValueError as fault:
            return invalid_destination(f"bootstrap_servers {fault}.")
        except OSError as failure:
            self.spoilt = True
            return not_reached(failure)
        except KafkaException as failure:
            return self._judge(failure.args[0])
        except BufferError:
            return broker_error("Too many records wait for this cluster.")
        except ProducerClosed:
            return broker_error("The producer was closed before a broker confirmed the record.")

    async def _meet(self) -> Outcome | None:
        """Nothing is sent as long as this lasts."""
        try:
            async with self.deadlines.within(self.timeout_ms / 1000):
                await self.producer.meet(self.record.topic)
        except TimeoutError:
            return self._out_of_time("No broker answered")
        return None

    async def _send(self, ends_at: float) -> Outcome:
        left_sec = ends_at - asyncio.get_running_loop().time()
        try:
            async with self.deadlines.within(left_sec + REPORT_LAG_SEC):
                report = await self.producer.send(self.record)
        except TimeoutError:
            # Finding the topic took so long that librdkafka would go on trying after our time is up.
            self.producer.give_up()
            return self._out_of_time("No broker confirmed the record")
        return self._judge(report.error) if report.error is not None else _success(report)

    def _judge(self, error: KafkaError) -> Outcome:
        if names_unknown_topic(error):
            self.producer.forget(self.record.topic)
        outcome = not_produced(error, self.record.topic, self.timeout_ms)
        self.spoilt = is_timeout(error) or error.fatal() or error.code() == KafkaError._FATAL
        return outcome

    def _out_of_time(self, what_is_missing: str) -> Outcome:
        if self.deadlines.are_over:
            return broker_error(_CLOSING)
        self.spoilt = True
        return timed_out(what_is_missing, self.timeout_ms)


def _success(report: Report) -> Outcome:
    output = {"partition": report.partition}
    if report.offset is not None and report.offset >= 0:
        output["offset"] = report.offset
    return Outcome(output=output)
