"""What becomes of deliveries that get no answer."""

from __future__ import annotations

import asyncio
import socket

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from taskexecutor_dispatcher.endpoints.base import Outcome
from tests.integration.dispatcher.http.conftest import Deliver
from tests.integration.dispatcher.http.deliveries import PATIENCE_MS, MakeTransport, a_request, an_identity
from tests.integration.dispatcher.http.receivers import Connection, answering, receiving, saying
from tests.support.open_files import no_more_files


async def hanging(connection: Connection) -> None:
    """Reads the request and says nothing until the other side goes away."""
    await connection.request()
    await connection.ended()


def assert_failed(outcome: Outcome, error_type: str, message: str, *, retryable: bool = True) -> None:
    assert outcome.error is not None
    assert outcome.error.to_json() == {"type": error_type, "message": message}
    assert outcome.retryable is retryable


async def test_a_closed_port_is_a_connection_error(deliver: Deliver) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    outcome = await deliver(f"http://127.0.0.1:{port}/")
    assert_failed(outcome, "CONNECTION_ERROR", f"Could not connect to 127.0.0.1:{port}: Connection refused.")


async def test_an_unknown_name_is_a_connection_error(make_transport: MakeTransport) -> None:
    class NoSuchName(AbstractResolver):
        async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        async def close(self) -> None:
            pass

    transport = make_transport(resolver=NoSuchName())
    outcome = await transport.deliver(a_request("http://nowhere.test/"), an_identity(), PATIENCE_MS)
    assert_failed(outcome, "CONNECTION_ERROR", "nowhere.test could not be resolved: Name or service not known.")


@pytest.mark.parametrize("name", ["a" * 64 + ".test", "a..test"])
async def test_a_name_that_cannot_be_one_is_a_connection_error(deliver: Deliver, name: str) -> None:
    outcome = await deliver(f"http://{name}/")
    assert_failed(outcome, "CONNECTION_ERROR", f"{name} could not be resolved: not a host name.")


async def test_a_name_without_addresses_is_a_connection_error(make_transport: MakeTransport) -> None:
    class NoAddress(AbstractResolver):
        async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
            return []

        async def close(self) -> None:
            pass

    transport = make_transport(resolver=NoAddress())
    outcome = await transport.deliver(a_request("http://nowhere.test/"), an_identity(), PATIENCE_MS)
    assert_failed(outcome, "CONNECTION_ERROR", "nowhere.test could not be resolved: no address.")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
async def test_a_receiver_that_closes_before_answering_is_asked_once(deliver: Deliver, method: str) -> None:
    async with receiving(saying()) as receiver:
        outcome = await deliver(receiver.url(), method=method)
        assert len(receiver.requests) == 1
        assert receiver.connections == 1
    message = f"The connection to 127.0.0.1:{receiver.port} ended before an answer came."
    assert_failed(outcome, "CONNECTION_ERROR", message)


async def test_a_receiver_that_closes_at_once_is_connected_to_once(deliver: Deliver) -> None:
    async def closing(connection: Connection) -> None:
        pass

    async with receiving(closing) as receiver:
        outcome = await deliver(receiver.url())
        assert receiver.connections == 1
    message = f"The connection to 127.0.0.1:{receiver.port} ended before an answer came."
    assert_failed(outcome, "CONNECTION_ERROR", message)


async def test_a_reset_is_a_connection_error(deliver: Deliver) -> None:
    async def reset(connection: Connection) -> None:
        await connection.request()
        connection.reset()

    async with receiving(reset) as receiver:
        outcome = await deliver(receiver.url())
    message = f"The connection to 127.0.0.1:{receiver.port} ended before an answer came."
    assert_failed(outcome, "CONNECTION_ERROR", message)


@pytest.mark.parametrize(
    "cut",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    ],
)
async def test_an_answer_that_stops_in_its_body_is_a_connection_error(deliver: Deliver, cut: bytes) -> None:
    async with receiving(saying(cut)) as receiver:
        outcome = await deliver(receiver.url())
    assert_failed(outcome, "CONNECTION_ERROR", "The connection ended before the answer was complete.")


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"\x00\x01\x02\x03\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-Many: x\r\n" * 1000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
    ],
    ids=["another protocol", "binary", "huge header", "too many headers", "negative length"],
)
async def test_an_answer_that_is_not_http_is_a_connection_error(deliver: Deliver, garbage: bytes) -> None:
    async with receiving(saying(garbage)) as receiver:
        outcome = await deliver(receiver.url())
    assert_failed(outcome, "CONNECTION_ERROR", "The answer is not valid HTTP.")


async def test_a_connection_that_our_own_machine_cannot_open_is_not_the_receivers_fault(deliver: Deliver) -> None:
    async with receiving(answering()) as receiver:
        with no_more_files():
            outcome = await deliver(receiver.url())
        assert not outcome.was_begun
        assert not outcome.is_receivers_fault
        assert outcome.error is not None
        assert outcome.error.to_json() == {
            "type": "INTERNAL_ERROR",
            "message": "the dispatcher could not open a connection: Too many open files",
        }
        assert (await deliver(receiver.url())).succeeded


async def test_an_early_refusal_of_a_large_body_is_the_answer(deliver: Deliver) -> None:
    async def refusing(connection: Connection) -> None:
        await connection.reader.readuntil(b"\r\n\r\n")
        await connection.answer(b"too large", status=413)
        await connection.ended()

    async with receiving(refusing) as receiver:
        outcome = await deliver(receiver.url(), body=b"x" * 20_000_000)
    assert outcome.output == {"status_code": 413, "body": "too large"}


async def test_a_large_body_arrives_whole(deliver: Deliver) -> None:
    async with receiving(answering()) as receiver:
        await deliver(receiver.url(), body=b"x" * 3_000_000)
        assert receiver.requests[0].body == b"x" * 3_000_000


async def test_a_timeout_before_the_answer_says_so(deliver: Deliver) -> None:
    async with receiving(hanging) as receiver:
        outcome = await deliver(receiver.url(), timeout_ms=500)
    assert_failed(outcome, "TIMEOUT", "The receiver did not answer within 500 ms.")


async def test_a_timeout_within_the_headers_says_so(deliver: Deliver) -> None:
    async def trickling(connection: Connection) -> None:
        await connection.request()
        await connection.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        await connection.ended()

    async with receiving(trickling) as receiver:
        outcome = await deliver(receiver.url(), timeout_ms=500)
    assert_failed(outcome, "TIMEOUT", "The receiver did not answer within 500 ms.")


async def test_a_timeout_within_the_body_says_so(deliver: Deliver) -> None:
    async def stopping(connection: Connection) -> None:
        await connection.request()
        await connection.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        await connection.ended()

    async with receiving(stopping) as receiver:
        outcome = await deliver(receiver.url(), timeout_ms=500)
    assert_failed(outcome, "TIMEOUT", "The receiver answered 200, but the answer was not complete within 500 ms.")


async def test_the_timeout_covers_the_name_lookup(make_transport: MakeTransport) -> None:
    class Silent(AbstractResolver):
        async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
            return await asyncio.get_running_loop().create_future()

        async def close(self) -> None:
            pass

    transport = make_transport(resolver=Silent())
    outcome = await transport.deliver(a_request("http://slow.test/"), an_identity(), 50)
    assert_failed(outcome, "TIMEOUT", "No connection came about within 50 ms.")


async def test_the_timeout_covers_the_wait_for_a_free_connection(make_transport: MakeTransport) -> None:
    transport = make_transport(max_connections_per_host=1)
    async with receiving(hanging) as receiver:
        async with asyncio.TaskGroup() as group:
            first = group.create_task(transport.deliver(a_request(receiver.url()), an_identity(), 500))
            second = group.create_task(transport.deliver(a_request(receiver.url()), an_identity(), 50))
        assert len(receiver.requests) == 1
        assert_failed(first.result(), "TIMEOUT", "The receiver did not answer within 500 ms.")
    assert_failed(second.result(), "TIMEOUT", "No connection came about within 50 ms.")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "/relative",
        "//127.0.0.1/",
        "ftp://127.0.0.1/",
        "ws://127.0.0.1/",
        "tcp://127.0.0.1:1/",
        "unix:///run/docker.sock",
        "http://",
        "http:///path",
        "http://:80/",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:http/",
        "http://[::1/",
        "http://[nonsense]/",
    ],
)
async def test_what_is_no_http_url_is_refused_for_good(deliver: Deliver, url: str) -> None:
    outcome = await deliver(url)
    assert outcome.error is not None
    assert outcome.error.type == "INVALID_DESTINATION"
    assert not outcome.retryable


@pytest.mark.parametrize(
    "headers",
    [(("X-A", "1\r\nX-B: 2"),), (("X-A", "1\n2"),), (("X-A: 1\r\nX-B", "2"),)],
)
async def test_a_header_that_would_break_the_request_is_refused_for_good(
    deliver: Deliver, headers: tuple[tuple[str, str], ...]
) -> None:
    async with receiving(answering()) as receiver:
        outcome = await deliver(receiver.url(), headers=headers)
        assert receiver.requests == []
    assert_failed(outcome, "INVALID_DESTINATION", "A header cannot be sent over HTTP.", retryable=False)


async def test_a_bad_signing_secret_is_refused_for_good(deliver: Deliver) -> None:
    outcome = await deliver("http://127.0.0.1:1/", signing_secret="whsec_a")
    message = "The URL or the signing secret is not valid."
    assert_failed(outcome, "INVALID_DESTINATION", message, retryable=False)


async def test_failures_show_neither_user_nor_password_nor_query(deliver: Deliver) -> None:
    async with receiving(saying()) as receiver:
        outcomes = [
            await deliver(f"http://alice:s3cret@127.0.0.1:{receiver.port}/p4th?token=t0ken"),
            await deliver("http://alice:s3cret@127.0.0.1:1/p4th?token=t0ken"),
            await deliver("http://alice:s3cret@127.0.0.1:99999/p4th?token=t0ken"),
        ]
    shown = " ".join(str(outcome.error) for outcome in outcomes)
    assert not any(word in shown for word in ("alice", "s3cret", "p4th", "t0ken"))


async def test_a_user_and_password_in_the_url_become_basic_authentication(deliver: Deliver) -> None:
    async with receiving(answering()) as receiver:
        await deliver(f"http://alice:s3cret@127.0.0.1:{receiver.port}/")
        assert receiver.requests[0].header("Authorization") == "Basic YWxpY2U6czNjcmV0"


@pytest.mark.parametrize(
    "target", ["/a%2Fb?sig=a%3D%3D&x=1+2%20c", "/a;b=c/~d?e=f/g?h", "/?redirect=http://x.test/%7E"]
)
async def test_an_encoded_url_goes_out_to_the_letter(deliver: Deliver, target: str) -> None:
    async with receiving(answering()) as receiver:
        await deliver(receiver.url(target))
        assert receiver.requests[0].line == f"POST {target} HTTP/1.1"


async def test_a_url_with_other_letters_is_encoded(deliver: Deliver) -> None:
    async with receiving(answering()) as receiver:
        await deliver(receiver.url("/straße"))
        assert receiver.requests[0].line == "POST /stra%C3%9Fe HTTP/1.1"
