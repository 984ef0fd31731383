"""What becomes of answers."""

from __future__ import annotations

import base64
import gzip

from taskexecutor_dispatcher.endpoints.bodies import DRAINED_BYTES, KEPT_BYTES
from tests.integration.dispatcher.http.conftest import Deliver
from tests.integration.dispatcher.http.receivers import Connection, answering, receiving, saying


async def test_an_expected_status_is_success_with_status_and_body(deliver: Deliver) -> None:
    async with receiving(answering(b"OK")) as receiver:
        outcome = await deliver(receiver.url())
    assert outcome.succeeded
    assert outcome.output == {"status_code": 200, "body": "OK"}


async def test_any_expected_status_counts_as_success(deliver: Deliver) -> None:
    async with receiving(answering(b"", status=418)) as receiver:
        outcome = await deliver(receiver.url(), expected_status_codes=frozenset({418}))
    assert outcome.succeeded


async def test_a_json_answer_stays_text(deliver: Deliver) -> None:
    async with receiving(answering(b'{"a":1}', headers="Content-Type: application/json\r\n")) as receiver:
        outcome = await deliver(receiver.url())
    assert outcome.output == {"status_code": 200, "body": '{"a":1}'}


async def test_an_answer_without_a_body_has_an_empty_one(deliver: Deliver) -> None:
    async with receiving(saying(b"HTTP/1.1 204 No Content\r\n\r\n")) as receiver:
        outcome = await deliver(receiver.url(), expected_status_codes=frozenset({204}))
    assert outcome.output == {"status_code": 204, "body": ""}


async def test_a_chunked_answer_is_put_together(deliver: Deliver) -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    async with receiving(saying(chunked)) as receiver:
        outcome = await deliver(receiver.url())
    assert outcome.output == {"status_code": 200, "body": "abcde"}


async def test_an_answer_that_ends_with_its_connection_is_complete(deliver: Deliver) -> None:
    async with receiving(saying(b"HTTP/1.0 200 OK\r\n\r\nold", b" school")) as receiver:
        outcome = await deliver(receiver.url())
    assert outcome.output == {"status_code": 200, "body": "old school"}


async def test_interim_answers_are_passed_over(deliver: Deliver) -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    async with receiving(saying(interim, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK")) as receiver:
        outcome = await deliver(receiver.url())
    assert outcome.output == {"status_code": 200, "body": "OK"}


async def test_a_folded_header_does_no_harm(deliver: Deliver) -> None:
    folded = b"HTTP/1.1 200 OK\r\nX-Long: one\r\n two\r\nContent-Length: 2\r\n\r\nOK"
    async with receiving(saying(folded)) as receiver:
        outcome = await deliver(receiver.url())
    assert outcome.output == {"status_code": 200, "body": "OK"}


async def test_an_answer_is_decoded_by_its_charset(deliver: Deliver) -> None:
    latin = answering("café".encode("latin-1"), headers="Content-Type: text/plain; charset=ISO-8859-1\r\n")
    async with receiving(latin) as receiver:
        outcome = await deliver(receiver.url())
    assert outcome.output == {"status_code": 200, "body": "café"}


async def test_an_odd_content_type_does_no_harm(deliver: Deliver) -> None:
    async with receiving(answering(headers="Content-Type: ;utf-8*\r\n")) as receiver:
        outcome = await deliver(receiver.url())
    assert outcome.output == {"status_code": 200, "body": "OK"}


async def test_an_answer_that_is_no_text_is_kept_as_base64(deliver: Deliver) -> None:
    async with receiving(answering(b"\x89PNG\xff")) as receiver:
        outcome = await deliver(receiver.url())
    encoded = base64.b64encode(b"\x89PNG\xff").decode()
    assert outcome.output == {"status_code": 200, "body": encoded, "body_encoding": "base64"}


async def test_a_long_answer_is_cut_and_marked(deliver: Deliver) -> None:
    async with receiving(answering(b"x" * (KEPT_BYTES + 1))) as receiver:
        outcome = await deliver(receiver.url())
    assert outcome.output == {"status_code": 200, "body": "x" * KEPT_BYTES, "truncated": True}


async def test_an_answer_of_just_the_kept_size_is_not_marked(deliver: Deliver) -> None:
    async with receiving(answering(b"x" * KEPT_BYTES)) as receiver:
        outcome = await deliver(receiver.url())
    assert outcome.output == {"status_code": 200, "body": "x" * KEPT_BYTES}


async def test_a_somewhat_long_answer_leaves_the_connection_usable(deliver: Deliver) -> None:
    async with receiving(answering(b"x" * (KEPT_BYTES + DRAINED_BYTES))) as receiver:
        await deliver(receiver.url())
        await deliver(receiver.url())
        assert receiver.connections == 1


async def test_an_endless_answer_is_a_success_and_loses_its_connection(deliver: Deliver) -> None:
    async def endless(connection: Connection) -> None:
        await connection.request()
        await connection.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            await connection.write(b"x" * 65536)

    async with receiving(endless) as receiver:
        outcome = await deliver(receiver.url())
        await receiver.closed.get()
    assert outcome.output == {"status_code": 200, "body": "x" * KEPT_BYTES, "truncated": True}


async def test_a_packed_answer_is_never_unpacked(deliver: Deliver) -> None:
    bomb = gzip.compress(b"\0" * 30_000_000)
    async with receiving(answering(bomb, headers="Content-Encoding: gzip\r\n")) as receiver:
        outcome = await deliver(receiver.url())
        assert receiver.requests[0].header("Accept-Encoding") == "identity"
    assert outcome.output == {
        "status_code": 200,
        "body": base64.b64encode(bomb).decode(),
        "body_encoding": "base64",
    }


async def test_an_unexpected_status_fails_with_what_was_answered(deliver: Deliver) -> None:
    async with receiving(answering(b"overloaded", status=503)) as receiver:
        outcome = await deliver(receiver.url())
    assert outcome.error is not None
    assert outcome.error.to_json() == {
        "type": "HTTP_ERROR",
        "status_code": 503,
        "message": "The receiver answered 503 Service Unavailable.",
    }
    assert outcome.output == {"status_code": 503, "body": "overloaded"}
    assert outcome.retryable


async def test_an_unexpected_2xx_fails(deliver: Deliver) -> None:
    async with receiving(answering(status=202)) as receiver:
        outcome = await deliver(receiver.url())
    assert outcome.error is not None
    assert outcome.error.status_code == 202


async def test_a_status_without_a_name_is_reported(deliver: Deliver) -> None:
    async with receiving(answering(status=599)) as receiver:
        outcome = await deliver(receiver.url())
    assert outcome.error is not None
    assert outcome.error.message == "The receiver answered 599."


async def test_a_redirect_is_an_answer_and_not_followed(deliver: Deliver) -> None:
    async with (
        receiving(answering()) as other,
        receiving(answering(status=307, headers=f"Location: {other.url()}\r\n")) as receiver,
    ):
        outcome = await deliver(receiver.url())
        assert other.connections == 0
    assert outcome.error is not None
    assert outcome.error.status_code == 307


async def test_a_protocol_switch_is_an_answer(deliver: Deliver) -> None:
    async with receiving(
        saying(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
    ) as receiver:
        outcome = await deliver(receiver.url())
    assert outcome.error is not None
    assert outcome.error.status_code == 101


async def test_cookies_are_not_given_back(deliver: Deliver) -> None:
    async with receiving(answering(headers="Set-Cookie: a=1\r\n")) as receiver:
        await deliver(receiver.url())
        await deliver(receiver.url())
        assert receiver.requests[1].all("Cookie") == []


async def test_a_failed_answer_may_say_when_to_come_back(deliver: Deliver) -> None:
    async with receiving(answering(status=429, headers="Retry-After: 7\r\n")) as receiver:
        outcome = await deliver(receiver.url())
    assert outcome.retry_after_ms == 7000


async def test_a_date_to_come_back_at_is_read_by_the_receivers_own_clock(deliver: Deliver) -> None:
    dates = "Date: Mon, 03 Jan 2000 10:00:00 GMT\r\nRetry-After: Mon, 03 Jan 2000 10:01:30 GMT\r\n"
    async with receiving(answering(status=503, headers=dates)) as receiver:
        outcome = await deliver(receiver.url())
    assert outcome.retry_after_ms == 90_000


async def test_a_success_asks_for_no_delay(deliver: Deliver) -> None:
    async with receiving(answering(headers="Retry-After: 7\r\n")) as receiver:
        outcome = await deliver(receiver.url())
    assert outcome.retry_after_ms is None
