"""A receiver that means harm gets no more of the dispatcher than a connection, until the attempt's time is up."""

from __future__ import annotations

import asyncio
import base64
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.integration.dispatcher.http.conftest import Deliver
from tests.integration.dispatcher.http.receivers import Connection, Script, answering, receiving, saying

MEMORY_BYTES = 16 * 1024 * 1024
# aiohttp makes objects, of 12 KB each, of all the interim answers that one read of 256 KiB brings, before it looks.
AIOHTTP_INTERIM_BYTES = 128 * 1024 * 1024
BOMB = zlib.compress(b"\0" * 30_000_000)


@contextmanager
def bounded_memory(bound: int = MEMORY_BYTES) -> Iterator[None]:
    """What is allocated meanwhile, by the receiver too, is never more than this many bytes at once."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < bound
    finally:
        tracemalloc.stop()


def endless(beginning: bytes, more: bytes) -> Script:
    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.write(beginning)
        while True:
            await connection.write(more)

    return script


HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "interim answers": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 500),
    "header lines": (HEAD, b"X-A: b\r\n" * 2000),
    "a header line": (HEAD + b"X-A: ", b"x" * 65536),
    "a header name": (HEAD, b"x" * 65536),
    "a status line": (b"HTTP/1.1 200 ", b"x" * 65536),
    "blanks before a status line": (b"", b"\r\n" * 16384),
    "a chunk's extension": (CHUNKED + b"1;", b"x" * 65536),
    "a chunk's size": (CHUNKED, b"0" * 65536),
    "chunks": (CHUNKED, b"1\r\nx\r\n" * 10_000),
    "one chunk": (CHUNKED + b"FFFFFFFFFF\r\n", b"x" * 65536),
    "a trailer": (CHUNKED + b"0\r\nX: ", b"x" * 65536),
    "trailers": (CHUNKED + b"0\r\n", b"X: x\r\n" * 10_000),
    "a body by its length": (HEAD + b"Content-Length: 999999999999\r\n\r\n", b"x" * 65536),
    "a body by its end": (HEAD + b"\r\n", b"x" * 65536),
}


@pytest.mark.parametrize("answer", ENDLESS)
async def test_an_answer_without_end_costs_bounded_memory_and_time(deliver: Deliver, client: str, answer: str) -> None:
    makes_objects = (client, answer) == ("aiohttp", "interim answers")
    async with receiving(endless(*ENDLESS[answer])) as receiver:
        with bounded_memory(AIOHTTP_INTERIM_BYTES if makes_objects else MEMORY_BYTES):
            outcome = await asyncio.wait_for(deliver(receiver.url(), timeout_ms=300), 10)
        await receiver.closed.get()
    if outcome.error is not None:
        assert outcome.error.type in {"CONNECTION_ERROR", "TIMEOUT"}
    else:
        assert outcome.output is not None
        assert outcome.output["truncated"]


DRIPS = {
    "a status line": b"HTTP/1.1 200 OKKKKKKK",
    "a head": HEAD + b"X-Slow: " + b"x" * 50,
    "a body": HEAD + b"Content-Length: 100\r\n\r\n" + b"x" * 50,
    "a chunk": CHUNKED + b"64\r\n" + b"x" * 50,
}


@pytest.mark.parametrize("answer", DRIPS)
async def test_an_answer_that_drips_ends_with_the_time_of_the_attempt(deliver: Deliver, answer: str) -> None:
    async def dripping(connection: Connection) -> None:
        await connection.request()
        for byte in DRIPS[answer]:
            await connection.write(bytes([byte]))
            await asyncio.sleep(0.02)
        await connection.ended()

    async with receiving(dripping) as receiver:
        outcome = await asyncio.wait_for(deliver(receiver.url(), timeout_ms=200), 10)
        await receiver.closed.get()
    assert outcome.error is not None
    assert outcome.error.type == "TIMEOUT"


@pytest.mark.parametrize(
    "coding", ["gzip", "x-gzip", "deflate", "br", "zstd", "compress", "gzip, gzip", "identity, deflate"]
)
async def test_a_packed_body_is_kept_as_it_came(deliver: Deliver, coding: str) -> None:
    async with receiving(answering(BOMB, headers=f"Content-Encoding: {coding}\r\n")) as receiver:
        with bounded_memory():
            outcome = await deliver(receiver.url())
    encoded = base64.b64encode(BOMB).decode()
    assert outcome.output == {"status_code": 200, "body": encoded, "body_encoding": "base64"}


@pytest.mark.parametrize("coding", ["gzip, chunked", "deflate, chunked", "gzip"])
async def test_a_packed_transfer_is_not_unpacked_either(deliver: Deliver, coding: str) -> None:
    chunk = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BOMB), BOMB)
    body = chunk if coding.endswith("chunked") else BOMB
    answer = HEAD + f"Transfer-Encoding: {coding}\r\n\r\n".encode() + body
    async with receiving(saying(answer)) as receiver:
        with bounded_memory():
            outcome = await deliver(receiver.url())
    kept = (outcome.output or {}).get("body")
    assert kept in (None, base64.b64encode(BOMB).decode()), "an answer that is refused, or one that is kept as it came"
