"""What arrives in the stream, and what is reported of it."""

from __future__ import annotations

import asyncio
import re

import pytest

from tests.integration.dispatcher.redis.conftest import Deliver
from tests.integration.dispatcher.redis.deliveries import STREAM
from tests.servers.redis import RedisUnderTest


def entries(server: RedisUnderTest, stream: str = STREAM) -> list[tuple[str, dict[str, str]]]:
    return [
        (id_, dict(zip(flat[::2], flat[1::2], strict=True))) for id_, flat in server.admin("XRANGE", stream, "-", "+")
    ]


async def test_the_output_names_the_entry_that_is_in_the_stream(redis_server: RedisUnderTest, deliver: Deliver) -> None:
    outcome = await deliver(redis_server.url())
    assert outcome.succeeded
    ((message_id, _),) = entries(redis_server)
    assert re.fullmatch(r"\d{13}-\d+", message_id)
    assert outcome.output == {"message_id": message_id, "stream": STREAM}


async def test_an_entry_holds_the_users_fields_in_order_and_nothing_else(
    redis_server: RedisUnderTest, deliver: Deliver
) -> None:
    fields = (("z", "last first"), ("a", ""), ("emoji", "🎈"), ("lines", "1\r\n2\0"), ("z", "again"))
    await deliver(redis_server.url(), fields=fields)
    ((_, flat),) = redis_server.admin("XRANGE", STREAM, "-", "+")
    assert flat == [text for field in fields for text in field]


async def test_a_large_entry_arrives_whole(redis_server: RedisUnderTest, deliver: Deliver) -> None:
    outcome = await deliver(redis_server.url(), fields=(("blob", "ä" * 2_000_000),))
    assert outcome.succeeded
    assert entries(redis_server)[0][1]["blob"] == "ä" * 2_000_000


async def test_the_database_of_the_url_is_used(redis_server: RedisUnderTest, deliver: Deliver) -> None:
    await deliver(redis_server.url(database="/3"))
    await deliver(redis_server.url(database="?db=3"))
    assert redis_server.info("keyspace") == {"db3": {"keys": 1, "expires": 0, "avg_ttl": 0}}


async def test_exact_trimming_keeps_exactly_so_many(redis_server: RedisUnderTest, deliver: Deliver) -> None:
    for _ in range(12):
        await deliver(redis_server.url(), max_len=7, approximate=False)
    assert redis_server.admin("XLEN", STREAM) == 7


async def test_approximate_trimming_keeps_whole_nodes(redis_server: RedisUnderTest, deliver: Deliver) -> None:
    redis_server.admin("CONFIG", "SET", "stream-node-max-entries", "10")
    for _ in range(60):
        await deliver(redis_server.url(), max_len=25, approximate=True)
    assert 25 < redis_server.admin("XLEN", STREAM) <= 35


async def test_without_max_len_nothing_is_trimmed(redis_server: RedisUnderTest, deliver: Deliver) -> None:
    for _ in range(300):
        await deliver(redis_server.url())
    assert redis_server.admin("XLEN", STREAM) == 300


async def test_many_deliveries_at_once_share_a_bounded_number_of_connections(
    redis_server: RedisUnderTest, deliver: Deliver
) -> None:
    before = redis_server.info("stats")["total_connections_received"]
    outcomes = await asyncio.gather(*(deliver(redis_server.url()) for _ in range(400)))
    assert all(outcome.succeeded for outcome in outcomes)
    assert len({message_id for message_id, _ in entries(redis_server)}) == 400
    assert redis_server.info("stats")["total_connections_received"] - before <= 52


@pytest.mark.parametrize("max_len", [0, 2**63 - 1])
async def test_the_bounds_of_max_len_are_redis_own(
    redis_server: RedisUnderTest, deliver: Deliver, max_len: int
) -> None:
    outcome = await deliver(redis_server.url(), max_len=max_len, approximate=False)
    assert outcome.succeeded
