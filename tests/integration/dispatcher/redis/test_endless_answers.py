"""A server that is none, or means harm, cannot fill the dispatcher's memory with its answers."""

from __future__ import annotations

import pytest

from taskexecutor_dispatcher.endpoints.redis_connections import MAX_ANSWER_BYTES
from tests.integration.dispatcher.redis.conftest import Deliver
from tests.integration.dispatcher.redis.talking import answering, endless

ENDLESS = {
    "a text": (b"$500000000\r\n", b"x" * 65536),
    "a line": (b"+", b"x" * 65536),
    "an error": (b"-ERR ", b"x" * 65536),
    "numbers": (b"*100000000\r\n", b":1\r\n" * 16384),
    "arrays": (b"", b"*1000000\r\n" * 5000),
    "arrays behind an answer": (b"+OK\r\n", b"*1000000\r\n" * 5000),
    "maps": (b"%1000000\r\n", b":1\r\n" * 16384),
    "sets": (b"~1000000\r\n", b":1\r\n" * 16384),
    "an array of more than there can be": (b"*2147483647\r\n", b":1\r\n" * 16384),
    "texts that are not there": (b"*2147483647\r\n", b"$-1\r\n" * 16384),
}


@pytest.mark.parametrize("answer", ENDLESS)
@pytest.mark.parametrize("credentials", ["", ":pass"], ids=["to XADD", "to AUTH"])
async def test_an_answer_without_end_is_given_up(deliver: Deliver, answer: str, credentials: str) -> None:
    async with endless(*ENDLESS[answer]) as server:
        outcome = await deliver(server.url(credentials))
    assert outcome.error is not None
    assert outcome.error.to_json() == {
        "type": "CONNECTION_ERROR",
        "message": f"What 127.0.0.1:{server.port} answers is not the Redis protocol.",
    }
    assert outcome.retryable


async def test_a_long_error_is_within_the_bound_and_cut(deliver: Deliver) -> None:
    async with answering(b"-ERR " + b"x" * (MAX_ANSWER_BYTES - 100) + b"\r\n") as server:
        outcome = await deliver(server.url())
    assert outcome.error is not None
    assert outcome.error.type == "STREAM_ERROR"
    assert len(outcome.error.message) < 300


async def test_the_bound_is_for_each_answer_and_not_for_all_of_a_connection(deliver: Deliver) -> None:
    error = b"-ERR " + b"x" * (MAX_ANSWER_BYTES // 2) + b"\r\n"
    async with answering(*[error] * 5) as server:
        outcomes = [await deliver(server.url()) for _ in range(5)]
        assert server.connections == 1
    assert [outcome.error.type for outcome in outcomes if outcome.error] == ["STREAM_ERROR"] * 5
