"""Where an answer ends, and what it must not be taken for when it does not end there."""

from __future__ import annotations

import asyncio

import pytest

from taskexecutor_dispatcher.endpoints.base import Outcome
from taskexecutor_dispatcher.endpoints.bodies import KEPT_BYTES
from tests.integration.dispatcher.http.conftest import Deliver
from tests.integration.dispatcher.http.receivers import Connection, Script, receiving, saying

BY_LENGTH = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"
BY_CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\nX-Sum: 1\r\n\r\n"
BY_CLOSING = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhello"
NO_BODY = b"HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n"
AFTER_INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + BY_LENGTH

only_httptools = pytest.mark.parametrize("client", ["httptools"])
"""For bounds that aiohttp does not have: it reads on until the time is up."""


def repeating(answer: bytes) -> Script:
    """Answers each request of a connection with the same bytes."""

    async def script(connection: Connection) -> None:
        while True:
            await connection.request()
            await connection.write(answer)

    return script


def dribbling(answer: bytes) -> Script:
    """Answers byte by byte, each in a packet of its own as far as the kernels allow."""

    async def script(connection: Connection) -> None:
        await connection.request()
        for index in range(len(answer)):
            await connection.write(answer[index : index + 1])
            await asyncio.sleep(0)

    return script


def assert_hello(outcome: Outcome) -> None:
    assert outcome.error is None
    assert outcome.output == {"status_code": 200, "body": "hello"}


def assert_lost(outcome: Outcome, *messages: str) -> None:
    assert outcome.error is not None
    assert outcome.error.type == "CONNECTION_ERROR"
    assert outcome.retryable
    assert not messages or outcome.error.message in messages


@pytest.mark.parametrize("answer", [BY_LENGTH, BY_CHUNKS, BY_CLOSING, AFTER_INTERIM])
async def test_a_whole_answer_is_a_whole_answer(deliver: Deliver, answer: bytes) -> None:
    async with receiving(saying(answer)) as receiver:
        assert_hello(await deliver(receiver.url()))


@pytest.mark.parametrize("answer", [BY_LENGTH, BY_CHUNKS, BY_CLOSING, AFTER_INTERIM])
async def test_an_answer_may_come_byte_by_byte(deliver: Deliver, answer: bytes) -> None:
    async with receiving(dribbling(answer)) as receiver:
        assert_hello(await deliver(receiver.url()))


@pytest.mark.parametrize(
    ("answer", "first_complete"),
    [
        (BY_LENGTH, len(BY_LENGTH)),
        (BY_CHUNKS, len(BY_CHUNKS)),
        (BY_CLOSING, BY_CLOSING.index(b"\r\n\r\n") + 4),
        (NO_BODY, len(NO_BODY)),
        (AFTER_INTERIM, len(AFTER_INTERIM)),
    ],
    ids=["by length", "by chunks", "by closing", "no body", "after an interim one"],
)
async def test_an_answer_that_is_cut_anywhere_is_no_success(
    deliver: Deliver, answer: bytes, first_complete: int
) -> None:
    cuts: list[int] = list(range(len(answer) + 1))

    async def cutting(connection: Connection) -> None:
        await connection.request()
        await connection.write(answer[: cuts[len(connection.receiver.requests) - 1]])

    async with receiving(cutting) as receiver:
        for cut in cuts:
            outcome = await deliver(receiver.url(), expected_status_codes=frozenset({200, 204}))
            assert outcome.succeeded == (cut >= first_complete), cut
            if cut < first_complete:
                assert_lost(outcome)
        assert len(receiver.requests) == len(cuts)


@pytest.mark.parametrize("client", ["httptools"])  # aiohttp takes any end for the end of the body
async def test_a_body_that_ends_with_a_reset_is_cut(deliver: Deliver) -> None:
    async def resetting(connection: Connection) -> None:
        await connection.request()
        await connection.write(BY_CLOSING)
        connection.reset()

    async with receiving(resetting) as receiver:
        assert_lost(await deliver(receiver.url()))


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/3.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"<html>HTTP/1.1 200 OK\r\n\r\n",
    ],
)
async def test_an_answer_that_contradicts_itself_is_none(deliver: Deliver, answer: bytes) -> None:
    async with receiving(saying(answer)) as receiver:
        outcome = await deliver(receiver.url())
    assert_lost(outcome, "The answer is not valid HTTP.", "The connection ended before the answer was complete.")


@pytest.mark.parametrize("length", [b"", b"Content-Length: 5\r\n"])
@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
async def test_answers_that_have_no_body_end_with_their_head(deliver: Deliver, status: bytes, length: bytes) -> None:
    async with receiving(repeating(b"HTTP/1.1 " + status + b"\r\n" + length + b"\r\n")) as receiver:
        for _ in range(2):
            outcome = await deliver(receiver.url(), expected_status_codes=frozenset({204, 304}))
            assert outcome.output == {"status_code": int(status[:3]), "body": ""}
        assert receiver.connections == 1


@pytest.mark.parametrize(
    ("answer", "connections"),
    [
        (BY_LENGTH, 1),
        (BY_CHUNKS, 1),
        (AFTER_INTERIM, 1),
        (BY_LENGTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), 2),
        (BY_CHUNKS.replace(b"chunked\r\n", b"chunked\r\nConnection: Close\r\n"), 2),
        (BY_LENGTH.replace(b"HTTP/1.1", b"HTTP/1.0"), 2),
        (BY_LENGTH.replace(b"HTTP/1.1", b"HTTP/1.0").replace(b"\r\n\r\n", b"\r\nConnection: keep-alive\r\n\r\n"), 1),
    ],
    ids=["length", "chunks", "interim", "close", "chunks, close", "1.0", "1.0, keep-alive"],
)
async def test_a_connection_is_kept_when_the_answer_allows_it(
    deliver: Deliver, answer: bytes, connections: int
) -> None:
    async with receiving(repeating(answer)) as receiver:
        for _ in range(2):
            assert_hello(await deliver(receiver.url()))
        assert receiver.connections == connections


async def test_what_comes_behind_an_answer_is_not_the_next_one(deliver: Deliver) -> None:
    extra = b"HTTP/1.1 500 Not asked\r\nContent-Length: 0\r\n\r\n"
    async with receiving(repeating(BY_LENGTH + extra)) as receiver:
        for _ in range(2):
            assert_hello(await deliver(receiver.url()))
        assert receiver.connections == 2


@pytest.mark.parametrize("client", ["httptools"])  # aiohttp takes it for the beginning of the next answer
@pytest.mark.parametrize("extra", [b"H", b"HTTP/1.1 500 N", b"\0"])
async def test_not_even_a_byte_behind_an_answer_is_the_next_ones(deliver: Deliver, extra: bytes) -> None:
    async with receiving(repeating(BY_LENGTH + extra)) as receiver:
        for _ in range(2):
            assert_hello(await deliver(receiver.url()))
        assert receiver.connections == 2


async def test_what_an_interim_answer_says_is_not_said_by_the_answer(deliver: Deliver) -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\nRetry-After: 7\r\nContent-Type: a/b; charset=latin-1\r\n\r\n"
    async with receiving(saying(interim + b"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\n\xc3\xa9")) as receiver:
        outcome = await deliver(receiver.url())
    assert outcome.output == {"status_code": 503, "body": "é"}
    assert outcome.retry_after_ms is None


async def test_a_connection_with_half_a_request_on_it_carries_no_other(deliver: Deliver) -> None:
    async def answering_early(connection: Connection) -> None:
        await connection.reader.readuntil(b"\r\n\r\n")
        await connection.write(BY_LENGTH)
        await connection.ended()

    async with receiving(answering_early) as receiver:
        for _ in range(3):
            assert_hello(await deliver(receiver.url(), body=b"x" * 30_000_000))
        assert receiver.connections == 3


@pytest.mark.parametrize("framing", [b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n", b"HTTP/1.0 503 Busy\r\n"])
async def test_an_answer_before_the_question_is_the_answer(deliver: Deliver, framing: bytes) -> None:
    async def overloaded(connection: Connection) -> None:
        await connection.write(framing + b"Retry-After: 7\r\n\r\nbusy")
        connection.writer.write_eof()
        await connection.ended()

    async with receiving(overloaded) as receiver:
        outcome = await deliver(receiver.url())
    assert outcome.output == {"status_code": 503, "body": "busy"}
    assert outcome.retry_after_ms == 7000


async def test_line_feeds_alone_end_lines_too(deliver: Deliver) -> None:
    async with receiving(saying(BY_LENGTH.replace(b"\r\n", b"\n"))) as receiver:
        assert_hello(await deliver(receiver.url()))


async def test_a_head_of_some_size_is_read(deliver: Deliver) -> None:
    lines = b"".join(b"X-%d: %s\r\n" % (number, b"v" * 500) for number in range(100))
    async with receiving(saying(BY_LENGTH.replace(b"\r\n\r\n", b"\r\n" + lines + b"\r\n"))) as receiver:
        assert_hello(await deliver(receiver.url()))


@only_httptools
@pytest.mark.parametrize("chunk", [65536, 2_000_000], ids=["in parts", "at once"])
async def test_a_head_beyond_measure_is_no_answer(deliver: Deliver, chunk: int) -> None:
    lines = b"".join(b"X-%d: %s\r\n" % (number, b"v" * 1000) for number in range(100))
    head = BY_LENGTH.replace(b"\r\n\r\n", b"\r\n" + lines + b"\r\n")
    async with receiving(saying(*(head[start : start + chunk] for start in range(0, len(head), chunk)))) as receiver:
        assert_lost(await deliver(receiver.url()), "The answer is not valid HTTP.")


@only_httptools
@pytest.mark.parametrize(
    ("beginning", "more"),
    [
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 50),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"x" * 4000),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: x\r\n" * 500),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x" * 4000),
    ],
    ids=["interim answers", "a trailer", "trailers", "a chunk's extension"],
)
async def test_an_answer_that_never_gets_anywhere_is_given_up(deliver: Deliver, beginning: bytes, more: bytes) -> None:
    async def endless(connection: Connection) -> None:
        await connection.request()
        await connection.write(beginning)
        while True:
            await connection.write(more)

    async with receiving(endless) as receiver:
        assert_lost(await deliver(receiver.url()), "The answer is not valid HTTP.")
        await receiver.closed.get()


async def test_many_small_chunks_are_cut_at_the_kept_size_too(deliver: Deliver) -> None:
    chunks = b"1\r\nx\r\n" * (KEPT_BYTES + 1)
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    async with receiving(repeating(answer)) as receiver:
        for _ in range(2):
            outcome = await deliver(receiver.url())
            assert outcome.output == {"status_code": 200, "body": "x" * KEPT_BYTES, "truncated": True}
        assert receiver.connections == 1


async def test_a_body_that_never_ends_within_its_time_is_a_timeout(deliver: Deliver) -> None:
    async def slow(connection: Connection) -> None:
        await connection.request()
        await connection.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while True:
            await connection.write(b"x")
            await asyncio.sleep(0.01)

    async with receiving(slow) as receiver:
        outcome = await deliver(receiver.url(), timeout_ms=500)
        await receiver.closed.get()
    assert outcome.error is not None
    assert outcome.error.to_json() == {
        "type": "TIMEOUT",
        "message": "The receiver answered 200, but the answer was not complete within 500 ms.",
    }


async def test_a_later_delivery_with_less_time_ends_earlier(deliver: Deliver) -> None:
    async def answering_once(connection: Connection) -> None:
        await connection.request()
        await connection.write(BY_LENGTH)
        await connection.request()
        await connection.ended()

    async with receiving(answering_once) as receiver:
        assert_hello(await deliver(receiver.url(), timeout_ms=600_000))
        outcome = await asyncio.wait_for(deliver(receiver.url(), timeout_ms=50), 10)
        assert receiver.connections == 1
    assert outcome.error is not None
    assert outcome.error.type == "TIMEOUT"


async def test_a_kept_connection_does_not_inherit_an_earlier_deadline(deliver: Deliver) -> None:
    async def second_one_slower(connection: Connection) -> None:
        await connection.request()
        await connection.write(BY_LENGTH)
        await connection.request()
        await asyncio.sleep(1.2)
        await connection.write(BY_LENGTH)

    async with receiving(second_one_slower) as receiver:
        assert_hello(await deliver(receiver.url(), timeout_ms=1000))
        assert_hello(await deliver(receiver.url(), timeout_ms=10_000))
        assert receiver.connections == 1


@pytest.mark.parametrize("client", ["httptools"])  # aiohttp writes before it looks
async def test_an_answer_before_the_question_confirms_nothing(deliver: Deliver) -> None:
    async def greeting(connection: Connection) -> None:
        await connection.write(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nwelcome")
        while True:
            await connection.request()
            await connection.answer(status=500)

    async with receiving(greeting) as receiver:
        outcomes = [await deliver(receiver.url()) for _ in range(3)]
        assert receiver.connections == 3
    for outcome in outcomes:
        assert outcome.error is not None
        assert outcome.error.to_json() == {
            "type": "HTTP_ERROR",
            "status_code": 200,
            "message": "The receiver answered 200 before it was sent anything.",
        }
        assert outcome.retryable
