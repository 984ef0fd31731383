"""What Redis refuses, in its own words, and whether another attempt may do better."""

from __future__ import annotations

import asyncio

import pytest
import redis

from taskexecutor_dispatcher.endpoints.base import Outcome
from tests.integration.dispatcher.redis.conftest import Deliver, StartRedis
from tests.integration.dispatcher.redis.deliveries import STREAM
from tests.integration.dispatcher.redis.talking import answering
from tests.servers.redis import RedisUnderTest
from tests.support.waiting import wait_until

PASSWORD = "s3cr3t/p@ss"
ENCODED_PASSWORD = "s3cr3t%2Fp%40ss"


def assert_refused(outcome: Outcome, beginning: str, *, retryable: bool) -> None:
    assert outcome.error is not None
    assert outcome.error.type == "STREAM_ERROR"
    assert outcome.error.message.startswith(f"Redis answered: {beginning}"), outcome.error.message
    assert outcome.retryable is retryable


async def test_a_key_that_is_no_stream_is_not_tried_again(redis_server: RedisUnderTest, deliver: Deliver) -> None:
    redis_server.admin("SET", STREAM, "text")
    assert_refused(await deliver(redis_server.url()), "WRONGTYPE ", retryable=False)


async def test_a_full_redis_may_be_tried_again(start_redis: StartRedis, deliver: Deliver) -> None:
    server = start_redis("--maxmemory-policy", "noeviction")
    server.admin("CONFIG", "SET", "maxmemory", "1")
    assert_refused(await deliver(server.url()), "OOM ", retryable=True)
    server.admin("CONFIG", "SET", "maxmemory", "0")
    assert (await deliver(server.url())).succeeded


async def test_a_replica_may_be_tried_again(start_redis: StartRedis, deliver: Deliver) -> None:
    primary, replica = start_redis(), start_redis()
    replica.admin("REPLICAOF", "127.0.0.1", primary.port)
    assert_refused(await deliver(replica.url()), "READONLY ", retryable=True)
    replica.admin("REPLICAOF", "NO", "ONE")
    assert (await deliver(replica.url())).succeeded


async def test_a_replica_that_lost_its_primary_may_be_tried_again(start_redis: StartRedis, deliver: Deliver) -> None:
    replica = start_redis("--replica-serve-stale-data", "no")
    replica.admin("REPLICAOF", "127.0.0.1", 1)
    outcome = await deliver(replica.url())
    assert outcome.error is not None
    assert outcome.error.message.startswith(("Redis answered: MASTERDOWN ", "Redis answered: READONLY "))
    assert outcome.retryable


async def test_a_redis_that_runs_a_script_for_too_long_may_be_tried_again(
    start_redis: StartRedis, deliver: Deliver
) -> None:
    server = start_redis("--lua-time-limit", "1")
    script = asyncio.create_task(asyncio.to_thread(_run_for_ever, server))

    async def refusal() -> Outcome | None:
        outcome = await deliver(server.url())
        return None if outcome.succeeded else outcome

    refused = await wait_until(refusal)
    server.admin("SCRIPT", "KILL")
    await script
    assert_refused(refused, "BUSY ", retryable=True)


async def test_a_redis_that_loads_its_data_may_be_tried_again(deliver: Deliver) -> None:
    async with answering(b"-LOADING Redis is loading the dataset in memory\r\n") as loading:
        outcome = await deliver(loading.url())
        assert len(loading.commands) == 1
    assert_refused(outcome, "LOADING Redis is loading the dataset in memory", retryable=True)


@pytest.mark.parametrize(
    ("answer", "retryable"),
    [
        ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", True),
        ("CLUSTERDOWN Hash slot not served", True),
        ("TRYAGAIN Multiple keys request during rehashing of slot", True),
        ("MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk.", True),
        ("NOREPLICAS Not enough good replicas to write.", True),
        ("ERR max number of clients reached", True),
        ("ERR upstream failure", True),
        ("SOMETHING new", True),
        ("ERR unknown command 'XADD'", False),
        ("ERR wrong number of arguments for 'xadd' command", False),
        ("NOPERM this user has no permissions to run the 'xadd' command", False),
        ("DENIED Redis is running in protected mode", False),
    ],
)
async def test_answers_are_quoted_and_judged(deliver: Deliver, answer: str, retryable: bool) -> None:
    async with answering(f"-{answer}\r\n".encode()) as server:
        outcome = await deliver(server.url())
        assert len(server.commands) == 1
    assert_refused(outcome, answer, retryable=retryable)


async def test_the_right_password_opens(start_redis: StartRedis, deliver: Deliver) -> None:
    server = start_redis("--requirepass", PASSWORD)
    assert (await deliver(server.url(f":{ENCODED_PASSWORD}"))).succeeded


async def test_user_and_password_open(redis_server: RedisUnderTest, deliver: Deliver) -> None:
    redis_server.admin("ACL", "SETUSER", "writer", "on", f">{PASSWORD}", "~*", "+xadd")
    assert (await deliver(redis_server.url(f"writer:{ENCODED_PASSWORD}"))).succeeded


async def test_a_user_without_the_right_is_not_tried_again(redis_server: RedisUnderTest, deliver: Deliver) -> None:
    redis_server.admin("ACL", "SETUSER", "reader", "on", f">{PASSWORD}", "~*", "+xrange")
    assert_refused(await deliver(redis_server.url(f"reader:{ENCODED_PASSWORD}")), "NOPERM ", retryable=False)


async def test_a_wrong_password_may_be_tried_again_and_is_not_shown(start_redis: StartRedis, deliver: Deliver) -> None:
    server = start_redis("--requirepass", "other")
    outcome = await deliver(server.url(f":{ENCODED_PASSWORD}"))
    assert_refused(outcome, "WRONGPASS ", retryable=True)
    assert outcome.error is not None
    assert PASSWORD not in outcome.error.message
    assert ENCODED_PASSWORD not in outcome.error.message


async def test_a_missing_password_may_be_tried_again(start_redis: StartRedis, deliver: Deliver) -> None:
    server = start_redis("--requirepass", PASSWORD)
    assert_refused(await deliver(server.url()), "NOAUTH ", retryable=True)


@pytest.mark.parametrize(
    "answer",
    [
        f"ERR unknown command `AUTH`, with args beginning with: `{PASSWORD}`, ",
        f"ERR no such thing as {PASSWORD}",
    ],
)
async def test_a_server_that_repeats_the_password_does_not_get_it_shown(deliver: Deliver, answer: str) -> None:
    async with answering(f"-{answer}\r\n".encode()) as server:
        outcome = await deliver(server.url(f":{ENCODED_PASSWORD}"))
    assert outcome.error is not None
    assert outcome.error.type == "STREAM_ERROR"
    assert PASSWORD not in outcome.error.message


@pytest.mark.parametrize("answer", [b"$-1\r\n", b":1\r\n", b"*0\r\n"])
async def test_an_answer_that_is_no_id_is_no_success(deliver: Deliver, answer: bytes) -> None:
    async with answering(answer) as server:
        outcome = await deliver(server.url())
    assert outcome.error is not None
    assert outcome.error.type == "CONNECTION_ERROR"


async def test_the_node_of_a_cluster_that_has_the_stream_gets_the_entry(
    start_redis: StartRedis, deliver: Deliver
) -> None:
    with_cluster = ("--cluster-enabled", "yes", "--cluster-node-timeout", "5000")
    first, second = start_redis(*with_cluster), start_redis(*with_cluster)
    first.admin("CLUSTER", "ADDSLOTS", *range(8192))
    second.admin("CLUSTER", "ADDSLOTS", *range(8192, 16384))
    first.admin("CLUSTER", "MEET", "127.0.0.1", second.port)
    await wait_until(lambda: all(_is_in_cluster(node) for node in (first, second)), 20)
    for stream in ("a", "b", "c", "d", "e"):
        outcome = await deliver(first.url(), stream=stream)
        assert outcome.succeeded, (stream, outcome)
    assert first.admin("DBSIZE") > 0
    assert second.admin("DBSIZE") > 0
    assert first.admin("DBSIZE") + second.admin("DBSIZE") == 5


async def test_a_slot_on_the_move_is_asked_for_where_it_goes(redis_server: RedisUnderTest, deliver: Deliver) -> None:
    async with (
        answering(b"+OK\r\n", b"$15\r\n1700000000000-7\r\n") as new_home,
        answering(f"-ASK 866 127.0.0.1:{new_home.port}\r\n".encode()) as old_home,
    ):
        outcome = await deliver(old_home.url())
    assert outcome.output == {"message_id": "1700000000000-7", "stream": STREAM}
    assert [command[0] for command in new_home.commands] == ["ASKING", "XADD"]


async def test_a_node_that_names_itself_is_left_at_last(deliver: Deliver) -> None:
    async with answering(*[b"-MOVED 866 :%(port)d\r\n"] * 10) as server:
        outcome = await deliver(server.url())
        assert len(server.commands) == 6
    assert_refused(outcome, "MOVED 866 ", retryable=True)


def _run_for_ever(server: RedisUnderTest) -> None:
    try:
        server.admin("EVAL", "while true do end", "0")
    except redis.ResponseError:
        pass  # killed, as it should be


def _is_in_cluster(node: RedisUnderTest) -> bool:
    return "cluster_state:ok" in node.admin("CLUSTER", "INFO")
