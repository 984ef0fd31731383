"""The head of a request has the lines that were meant, whatever is in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskexecutor_common.endpoint_types.base import DeliveryIdentity
from taskexecutor_common.endpoint_types.http import HttpRequest
from taskexecutor_dispatcher.endpoints.http_destinations import Destination
from taskexecutor_dispatcher.endpoints.http_headers import delivery_headers
from taskexecutor_dispatcher.endpoints.http_heads import RequestHeads, UnsendableHeader

HEADS = RequestHeads("Test/1.0 (100 %)")
URL = "http://receiver.test:8080/path?a=b"
NAMES = st.sampled_from(["X-A", "X-B", "accept", "Content-Type", "Content-Length", "webhook-id", "Host", "X:A", ""])
TEXTS = st.text(st.sampled_from("ab\r\n\0\t :é\x7f\x1f\ud800"), max_size=8)


def write(url: str = URL, execution_id: str = "exec_1", method: str = "POST", **changes: object) -> bytes:
    fields = {"headers": (), "body": b"{}", "expected_status_codes": frozenset({200}), "signing_secret": None}
    request = HttpRequest(method=method, url=url, **(fields | changes))  # type: ignore[arg-type]
    identity = DeliveryIdentity(execution_id, "job_1", 1, "2026-03-15T10:00:00Z")
    return HEADS.write(request, identity, 1_800_000_000, Destination.parse(url))


@given(st.lists(st.tuples(st.one_of(NAMES, TEXTS), TEXTS), max_size=4, unique_by=lambda header: header[0].lower()))
def test_no_header_makes_another_line(headers: list[tuple[str, str]]) -> None:
    try:
        head = write(headers=tuple(headers))
    except UnsendableHeader:
        return
    lines = head.split(b"\r\n")
    assert lines[-2:] == [b"", b""]
    assert not any(byte in line for line in lines for byte in b"\r\n\0\x1f\x7f")
    request = HttpRequest("POST", URL, tuple(headers), b"{}", frozenset({200}), None)
    identity = DeliveryIdentity("exec_1", "job_1", 1, "2026-03-15T10:00:00Z")
    ours = delivery_headers(request, identity, 1_800_000_000, "Test/1.0 (100 %)")
    added = not any(name.lower() == "accept" for name, _ in headers)
    assert len(lines) == 2 + len(ours) + added + 1 + 2  # request line and Host, length, the empty line, the end


@pytest.mark.parametrize("text", ["a\r\nX: b", "a\nb", "a\rb", "a\0b", "a\x01b", "a\x7fb", "\ud800"])
def test_no_value_of_our_own_makes_another_line_either(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # any will do: deliveries treat them alike
        write(execution_id=text)
    with pytest.raises(UnsendableHeader):
        write(method=text)


@given(st.text(max_size=20))
def test_no_url_makes_another_line(text: str) -> None:
    try:
        head = write(f"http://receiver.test/{text}")
    except ValueError:
        return
    lines = len(write().split(b"\r\n")) - 1
    assert head.count(b"\r\n") == head.count(b"\n") == head.count(b"\r") == lines
    assert head.startswith(b"POST /")


@pytest.mark.parametrize(
    ("method", "body", "length"),
    [
        ("GET", None, None),
        ("GET", b"", None),
        ("GET", b"{}", b"2"),
        ("POST", None, b"0"),
        ("POST", b"", b"0"),
        ("PUT", b"12345", b"5"),
        ("DELETE", None, b"0"),
    ],
)
def test_the_length_is_said_where_a_body_may_be_expected(method: str, body: bytes | None, length: bytes | None) -> None:
    lines = write(method=method, body=body).split(b"\r\n")
    said = [line for line in lines if line.lower().startswith(b"content-length")]
    assert said == ([] if length is None else [b"Content-Length: " + length])
