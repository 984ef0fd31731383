"""Where a scenario's deliveries go, and the log that is kept there."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Protocol

from tests.chaos.audit import Sent
from tests.chaos.receivers import SILENT_END, TIMEOUT_MS, unruly
from tests.e2e.rest import Json
from tests.e2e.system import retries
from tests.integration.dispatcher.kafka.records import records
from tests.servers.kafka import Broker
from tests.servers.redis import RedisUnderTest
from tests.support.receiver import Answer, Received, Receiver

RETRIES = retries(20, 200)
# What the limits of endpoints and retries must survive, too: one of the HTTP endpoints has them.
LIMITS = {"max_in_flight": 8, "rate_limit": {"per_second": 200, "burst": 50}}
STREAM = "chaos"


class Targets(Protocol):
    """Endpoints of one scenario."""

    def wanted(self) -> list[Json]:
        """What is registered, as requests have it."""

    async def sent(self) -> list[Sent]:
        """What has arrived."""

    dropped: set[Sent]
    """Of these, what the receiver hung up on without a byte."""


class HttpTargets:
    """Four HTTP endpoints, one of them with limits, whose receivers misbehave by the dice."""

    def __init__(self, receiver: Receiver, name: str, seed: int, unruliness: float) -> None:
        self._receiver = receiver
        self.names = [f"{name}-{number}" for number in range(4)]
        self.dropped: set[Sent] = set()
        for number, endpoint in enumerate(self.names):
            self._answer(endpoint, unruly(seed + number, unruliness))

    def answer_with(self, answer: Answer) -> None:
        """What receivers do from now on, every time."""
        for name in self.names:
            self._answer(name, lambda _: answer)

    def _answer(self, name: str, choose: Callable[[Received], Answer]) -> None:
        def noted(request: Received) -> Answer:
            answer = choose(request)
            if answer is SILENT_END:
                self.dropped.add(_sent(request))
            return answer

        self._receiver.choose(f"/{name}", noted)

    def wanted(self) -> list[Json]:
        """See Targets."""
        wanted: list[Json] = [
            {
                "name": name,
                "type": "HTTP",
                "spec": {"url": self._receiver.url(f"/{name}"), "method": "POST", "timeout_ms": TIMEOUT_MS},
                "retry_policy": RETRIES,
            }
            for name in self.names
        ]
        wanted[0]["flow_control"] = LIMITS
        return wanted

    @property
    def count(self) -> int:
        """How many requests have arrived."""
        return sum(len(self._receiver.requests(f"/{name}")) for name in self.names)

    async def sent(self) -> list[Sent]:
        """See Targets."""
        return [_sent(request) for name in self.names for request in self._receiver.requests(f"/{name}")]


def _sent(request: Received) -> Sent:
    return request.key, int(request.headers["Task-Executor-Attempt"])


class BrokerTargets:
    """A Kafka topic and a Redis stream."""

    def __init__(self, broker: Broker | None, redis: RedisUnderTest) -> None:
        self._broker = broker
        self._redis = redis
        self.dropped: set[Sent] = set()
        self._topic = f"chaos-{random.randrange(10**9)}"
        if broker is not None:
            broker.create_topic(self._topic, partitions=3)

    def wanted(self) -> list[Json]:
        """See Targets."""
        entry = {"execution": "{{execution.id}}", "attempt": "{{execution.attempt}}"}
        stream = {"redis_url": self._redis.url(), "stream": STREAM, "fields_template": entry, "timeout_ms": TIMEOUT_MS}
        wanted: list[Json] = [{"name": "stream", "type": "REDIS_STREAM", "spec": stream, "retry_policy": RETRIES}]
        if self._broker is not None:
            spec = {
                "bootstrap_servers": self._broker.bootstrap,
                "topic": self._topic,
                "value_template": {"number": "{{input.number}}"},
                "timeout_ms": 2 * TIMEOUT_MS,
            }
            wanted.append({"name": "topic", "type": "KAFKA", "spec": spec, "retry_policy": RETRIES})
        return wanted

    async def sent(self) -> list[Sent]:
        """See Targets."""
        return [*self._entries(), *(await self._records())]

    def _entries(self) -> Sequence[Sent]:
        entries = self._redis.admin("XRANGE", STREAM, "-", "+")
        fields = [dict(zip(flat[::2], flat[1::2], strict=True)) for _, flat in entries]
        return [(entry["execution"], int(entry["attempt"])) for entry in fields]

    async def _records(self) -> Sequence[Sent]:
        if self._broker is None:
            return []
        headers = [dict(record.headers() or ()) for record in await records(self._broker.bootstrap, self._topic)]
        return [
            (header["Idempotency-Key"].decode(), int(header["Task-Executor-Attempt"].decode())) for header in headers
        ]
