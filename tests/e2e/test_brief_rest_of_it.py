"""What the brief asks for and no other file shows: its Kafka and Redis examples word for word but for addresses, its
defaults, its records' region, and the few sentences in between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest

from tests.e2e.calls import METHODS, over_rest
from tests.e2e.rest import Json, Rest
from tests.e2e.system import System, fresh, instant, now, retries
from tests.integration.dispatcher.kafka.records import records
from tests.servers.kafka import Broker, Cluster, KafkaUnavailable, MockCluster
from tests.servers.redis import RedisUnderTest, redis_version
from tests.support import components
from tests.support.receiver import Answer
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

TOPIC, STREAM = "order.events.v1", "notifications:outbound"
ORDER: Json = {"event_type": "created", "order_id": "order-1234", "amount": 12.5}
NOTE: Json = {"user_id": "u_abc", "title": "Weekly Summary", "body": "Here's your weekly report"}
KAFKA: Json = {
    "name": "publish-order-event",
    "type": "KAFKA",
    "payload_spec": "order-event-input",
    "config": "order-events",
    "spec": {
        "bootstrap_servers": "{{config.bootstrap_servers}}",
        "topic": "{{config.topic}}",
        "key_template": "{{input.order_id}}",
        "value_template": {
            "event_type": "{{input.event_type}}",
            "order_id": "{{input.order_id}}",
            "amount": "{{input.amount}}",
        },
        "headers": {"ce-type": "order.{{input.event_type}}", "ce-source": "task-executor"},
        "acks": "all",
        "timeout_ms": 10000,
    },
    "retry_policy": {"max_attempts": 5, "backoff": "exponential", "initial_delay_ms": 500, "max_delay_ms": 15000},
}
REDIS: Json = {
    "name": "push-notification",
    "type": "REDIS_STREAM",
    "payload_spec": "notification-input",
    "config": "notification-stream",
    "spec": {
        "redis_url": "{{config.redis_url}}",
        "stream": "{{config.stream_name}}",
        "fields_template": {"user_id": "{{input.user_id}}", "title": "{{input.title}}", "body": "{{input.body}}"},
        "max_len": "{{config.max_stream_length}}",
        "approximate_trimming": True,
        "timeout_ms": 3000,
    },
    "retry_policy": {"max_attempts": 3, "backoff": "exponential", "initial_delay_ms": 500, "max_delay_ms": 10000},
}
CRON: Json = {
    "endpoint": "push-notification",
    "trigger": "CRON",
    "cron": "0 9 * * MON",
    "timezone": "Asia/Kolkata",
    "starts_at": "2026-03-16T00:00:00Z",
    "ends_at": None,
    "input": NOTE,
}


def inputs(*names: str, **types: str) -> Json:
    """A schema that wants these strings, and values of other types."""
    properties = {name: {"type": "string"} for name in names} | {name: {"type": kind} for name, kind in types.items()}
    return {"type": "object", "properties": properties, "required": list(properties)}


async def register(rest: Rest, endpoint: Json, schema: Json, values: Json) -> Json:
    """The brief's three steps before an invocation; answers what the registration was answered with."""
    await rest.create("/payload-specs", {"name": endpoint["payload_spec"], "schema": schema})
    await rest.create("/configs", {"name": endpoint["config"], "values": values})
    return await rest.create("/endpoints", endpoint)


def as_registered(answer: Json) -> Json:
    """The answer less what the service adds to what was sent."""
    policy = {name: value for name, value in answer["retry_policy"].items() if name != "non_retryable_status_codes"}
    added = ("revision", "created_at", "updated_at", "flow_state")
    return {name: value for name, value in answer.items() if name not in added} | {"retry_policy": policy}


# --- the Kafka example ---


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A real broker where there can be one, else librdkafka's mock cluster; the summary says which it was."""
    started: Cluster
    try:
        started = Broker(tmp_path_factory.mktemp("kafka"))
        started.start()
    except KafkaUnavailable as reason:
        started = MockCluster(str(reason))
    components.note("Kafka", started.description)
    started.create_topic(TOPIC)
    yield started
    started.stop()


@pytest.fixture(scope="module")
async def kafka_endpoint(system: System, kafka: Cluster) -> Json:
    """The answer to the registration."""
    schema = inputs("event_type", "order_id", amount="number")
    return await register(system.rest, KAFKA, schema, {"bootstrap_servers": kafka.bootstrap, "topic": TOPIC})


async def test_the_kafka_endpoint_is_answered_as_it_was_registered(kafka_endpoint: Json) -> None:
    assert as_registered(kafka_endpoint) == KAFKA


async def test_the_kafka_example_puts_one_record_into_its_topic(
    system: System, kafka: Cluster, kafka_endpoint: Json
) -> None:
    execution = await system.run(kafka_endpoint["name"], input=ORDER)
    (record,) = await records(kafka.bootstrap, TOPIC)
    assert (execution["status"], execution["endpoint_type"]) == ("SUCCESS", "KAFKA")
    assert execution["output"] == {"partition": record.partition(), "offset": record.offset()}
    assert record.key() == b"order-1234"
    assert json.loads(record.value()) == ORDER  # a Struct keeps no order of its keys
    headers = dict(record.headers())
    assert (headers["ce-type"], headers["ce-source"]) == (b"order.created", b"task-executor")


# --- the Redis example ---


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisUnderTest]:
    """A real server."""
    server = RedisUnderTest(tmp_path_factory.mktemp("redis"))
    server.start()
    components.note("Redis", redis_version())
    yield server
    server.stop()


@pytest.fixture(scope="module")
async def redis_endpoint(system: System, redis: RedisUnderTest) -> Json:
    """The answer to the registration."""
    values = {"redis_url": redis.url(), "stream_name": STREAM, "max_stream_length": 100_000}
    return await register(system.rest, REDIS, inputs("user_id", "title", "body"), values)


async def test_the_redis_endpoint_is_answered_as_it_was_registered(redis_endpoint: Json) -> None:
    assert as_registered(redis_endpoint) == REDIS


async def test_the_redis_example_puts_one_entry_into_its_stream(
    system: System, redis: RedisUnderTest, redis_endpoint: Json
) -> None:
    execution = await system.run(redis_endpoint["name"], input=NOTE)
    ((message_id, fields),) = redis.admin("XRANGE", STREAM, "-", "+")
    assert (execution["status"], execution["endpoint_type"]) == ("SUCCESS", "REDIS_STREAM")
    assert execution["output"] == {"message_id": message_id, "stream": STREAM}
    assert dict(zip(fields[::2], fields[1::2], strict=True)) == NOTE


async def test_the_cron_example_names_the_redis_endpoint_and_its_next_firing(rest: Rest, redis_endpoint: Json) -> None:
    job = await rest.create("/jobs", CRON)
    assert (job["endpoint"], job["endpoint_type"], job["status"]) == (redis_endpoint["name"], "REDIS_STREAM", "ACTIVE")
    next_run = instant(job["next_run_at"])
    assert (next_run.strftime("%a %H:%M"), job["next_run_at"][-1]) == ("Mon 03:30", "Z")  # 09:00 in Kolkata
    assert timedelta(0) < next_run - now() <= timedelta(days=7)
    await rest.post(f"/jobs/{job['job_id']}/cancel")


async def test_the_cron_example_appears_in_its_status(rest: Rest, redis_endpoint: Json) -> None:
    job = await rest.create("/jobs", {**CRON, "endpoint": redis_endpoint["name"]})
    status = await rest.get(f"/jobs/{job['job_id']}/status")
    assert status["cron"] == {"expression": "0 9 * * MON", "next_run_at": job["next_run_at"]}
    assert (status["endpoint_type"], status["trigger"], status["version"]) == ("REDIS_STREAM", "CRON", 1)
    await rest.post(f"/jobs/{job['job_id']}/cancel")


# --- who may call, what is filled in, what is sent ---


@pytest.mark.parametrize("name", METHODS)
async def test_nothing_is_answered_without_a_key(rest: Rest, name: str) -> None:
    anything = {"name": "x", "job_id": "x", "execution_id": "x", "key_id": "x"}
    request = {field: value for field, value in anything.items() if field in METHODS[name].input_type.fields_by_name}
    answered = await over_rest(rest, name, request, {"authorization": ""})
    assert (answered.status, answered.code) == (401, "UNAUTHORIZED")


async def test_a_retry_policy_that_is_left_out_is_filled_in(system: System, rest: Rest) -> None:
    name = await system.endpoint()
    assert (await rest.get(f"/endpoints/{name}"))["retry_policy"] == {
        "max_attempts": 1,
        "backoff": "exponential",
        "initial_delay_ms": 1000,
        "max_delay_ms": 60000,
        "non_retryable_status_codes": [],
    }


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
async def test_a_delivery_uses_the_endpoints_method(system: System, method: str) -> None:
    name = await system.endpoint(method=method)
    assert (await system.run(name))["status"] == "SUCCESS"
    assert [request.method for request in system.receiver.requests(f"/{name}")] == [method]


async def test_a_duration_is_in_true_milliseconds(system: System) -> None:
    name = await system.endpoint()
    system.receiver.script(f"/{name}", Answer(delay_sec=0.15))
    execution = await system.run(name)
    (attempt,) = await system.attempts(execution["execution_id"])
    assert 150 <= attempt["duration_ms"] == execution["duration_ms"] < 5000
    assert execution["duration_ms"] % 1000 != 0


async def test_a_job_whose_failures_are_few_is_degraded(
    system: System, rest: Rest, database: psycopg.AsyncConnection
) -> None:
    name = await system.endpoint()
    system.receiver.script(f"/{name}", Answer(500), Answer(200))
    job = await system.cron(name, cron="0 0 * * *")
    midnight = now().replace(hour=0, minute=0, second=0, microsecond=0)
    # Four midnights that no scheduler saw: as if all had been down.
    await database.execute(
        "UPDATE cron_jobs SET next_run_at = %s WHERE job_id = %s",
        (midnight - timedelta(days=3), UUID(hex=job["job_id"].removeprefix("job_"))),
    )

    async def all_ended() -> Json | None:
        status = await rest.get(f"/jobs/{job['job_id']}/status")
        return status if status["stats"]["last_24h"]["total"] == 4 else None

    status = await wait_until(all_ended, what="four firings")
    assert (status["health"], status["stats"]["last_24h"]["failed"]) == ("DEGRADED", 1)


# --- regions ---


@pytest.mark.parametrize("table", ["jobs", "executions", "attempts", "execution_logs"])
async def test_every_record_carries_the_region(system: System, database: psycopg.AsyncConnection, table: str) -> None:
    name = await system.endpoint(retry_policy=retries(2, 10))
    system.receiver.script(f"/{name}", Answer(500))
    execution = await system.run(name, idempotency_key=fresh("key"))
    own_id = "job_id" if table == "jobs" else "execution_id"
    cursor = await database.execute(
        f"SELECT DISTINCT region FROM {table} WHERE {own_id} = %s",
        (UUID(hex=execution[own_id].partition("_")[2]),),
    )
    assert await cursor.fetchall() == [("default",)]


async def test_every_service_beats_in_its_region(system: System, database: psycopg.AsyncConnection) -> None:
    cursor = await database.execute(
        "SELECT component, region FROM region_heartbeats WHERE status = 'ALIVE' AND last_beat_at > now() - interval '15 s'"
    )
    assert set(await cursor.fetchall()) == {(name, "default") for name in ("api", "scheduler", "dispatcher")}


async def test_the_one_region_is_alive(system: System, database: psycopg.AsyncConnection) -> None:
    cursor = await database.execute("SELECT region, alive, failed_at, adopted_by FROM region_status")
    assert await cursor.fetchall() == [("default", True, None, None)]
