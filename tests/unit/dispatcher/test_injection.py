"""Whatever an input holds, it stays in the place that its template gives it, up to the bytes that go over the wire."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from taskexecutor_common.endpoint_types.base import DeliveryIdentity, InvalidDestination
from taskexecutor_common.endpoint_types.registry import kind_of
from taskexecutor_common.model.endpoint import EndpointType
from taskexecutor_dispatcher.endpoints.http_destinations import Destination
from taskexecutor_dispatcher.endpoints.http_heads import RequestHeads
from taskexecutor_dispatcher.endpoints.redis_urls import RedisServer

HEADS = RequestHeads("Test/1.0")
IDENTITY = DeliveryIdentity("exec_1", "job_1", 1, "2026-03-15T10:00:00Z")
CONTROLS = ["\r", "\n", "\r\n", "\0", "\x0b", "\x1f", "\x7f", "\u0085", "\u2028"]
HOSTILE = [
    *CONTROLS,
    "a\r\nX-Evil: 1",
    "a\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    "\r\nTransfer-Encoding: chunked",
    " HTTP/1.1\r\nX: ",
    "../../admin",
    "..%2f..%2fadmin",
    "%0d%0aX-Evil:1",
    "%00",
    "?admin=1",
    "#",
    "&admin=1",
    ";admin",
    "//evil.test/",
    "@evil.test",
    "evil.test:80#",
    "\\evil.test",
    "。evil。test",
    "e\u0301vil\u200b\u202e",
    "{{secret.token}}",
    "{{config.host}}",
    '"}, {"admin": true, "a": "',
    "-2",
    "*3\r\n$3\r\nSET\r\n",
]
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
SCOPE: dict[str, Any] = {"config": {"host": "example.com"}, "secret": {"token": "t0ken"}}


def render(endpoint_type: EndpointType, value: Any, **spec: Any) -> Any:
    return kind_of(endpoint_type).compile(spec).render({**SCOPE, "input": {"x": value}})


def head(request: Any) -> list[str]:
    """The lines of a request's head as they are written, the empty line at its end left out."""
    written = HEADS.write(request, IDENTITY, 1_800_000_000, Destination.parse(request.url))
    assert written.endswith(b"\r\n\r\n")
    return written.decode("latin-1")[:-4].split("\r\n")


URL = "http://example.com/a/{{input.x}}/b?q={{input.x}}#{{input.x}}"
PLAIN = head(render(EndpointType.HTTP, "plain", url=URL, method="POST"))


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_text_stays_in_its_part_of_the_url(value: str) -> None:
    assert_in_its_place(value)


@given(texts.filter(lambda text: text not in (".", "..")))
@example("\r\n")
@example("%")
def test_any_text_stays_in_its_part_of_the_url(value: str) -> None:
    assert_in_its_place(value)


def assert_in_its_place(value: str) -> None:
    request = render(EndpointType.HTTP, value, url=URL, method="POST")
    lines = head(request)
    assert lines[1:] == PLAIN[1:], "nothing but the target may change"
    method, target, version = lines[0].split(" ")
    assert (method, version) == ("POST", "HTTP/1.1")
    parts = urlsplit(target)
    assert unquote(parts.path) == f"/a/{value}/b"
    assert parts.path.count("/") == 3
    assert parse_qs(parts.query, keep_blank_values=True, separator="&") == {"q": [value]}
    assert "#" not in target, "fragments are not sent"


@pytest.mark.parametrize("value", [*HOSTILE, ".", "..", "127.0.0.1", "evil.test", "[::1]", "a.b", ""])
def test_an_input_before_a_domain_cannot_leave_that_domain(value: str) -> None:
    try:
        request = render(EndpointType.HTTP, value, url="http://{{input.x}}.example.com:8080/a", method="GET")
        origin = Destination.parse(request.url).origin
    except (InvalidDestination, ValueError):
        return
    assert origin.host.endswith(".example.com")
    assert origin.port == 8080


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_text_in_user_and_password_is_user_and_password(value: str) -> None:
    request = render(EndpointType.HTTP, value, url="http://u{{input.x}}:p{{input.x}}@example.com/", method="GET")
    try:
        destination = Destination.parse(request.url)
    except ValueError:
        return  # not in the alphabet of Basic authentication
    assert destination.origin == ("http", "example.com", 80)
    assert len(head(request)) == len(PLAIN)  # one line for them, and none for the length


@pytest.mark.parametrize("value", ["80@evil.test", "80/", "80#", "\r\n", "0x50", "99999", "-1", "٣"])
def test_a_port_is_a_number_or_nothing_is_sent(value: str) -> None:
    with pytest.raises(InvalidDestination, match=r"^spec\.url: is not a URL"):
        render(EndpointType.HTTP, value, url="http://example.com:{{input.x}}/", method="GET")


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_text_in_a_header_is_refused_or_stays_in_its_line(value: str) -> None:
    assert_in_one_line(value)


@given(texts)
@example("\r\n")
def test_any_text_in_a_header_is_refused_or_stays_in_its_line(value: str) -> None:
    assert_in_one_line(value)


def assert_in_one_line(value: str) -> None:
    spec: dict[str, Any] = {"url": "http://example.com/", "method": "GET", "headers": {"X-A": "[{{input.x}}]"}}
    if any((char < " " and char != "\t") or char == "\x7f" for char in value):
        with pytest.raises(InvalidDestination, match=r"^spec\.headers\.X-A: must hold no line breaks"):
            render(EndpointType.HTTP, value, **spec)
        return
    request = render(EndpointType.HTTP, value, **spec)
    lines = head(request)
    assert len(lines) == len(PLAIN)
    assert [line for line in lines if line.startswith("X-A")] == [f"X-A: [{value}]".encode().decode("latin-1")]


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_text_in_json_is_a_string(value: str) -> None:
    template = {"a": "{{input.x}}", "b": ["<{{input.x}}>"]}
    for body in (
        render(EndpointType.HTTP, value, url="http://example.com/", method="POST", body_template=template).body,
        render(EndpointType.KAFKA, value, bootstrap_servers="k:9092", topic="t", value_template=template).value,
    ):
        assert json.loads(body) == {"a": value, "b": [f"<{value}>"]}


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_text_in_a_record_is_bytes_and_never_a_topic(value: str) -> None:
    spec = {"bootstrap_servers": "k:9092", "value_template": "{{input.x}}"}
    headers, key = {"h": "{{input.x}}"}, "{{input.x}}"
    request = render(EndpointType.KAFKA, value, **spec, topic="t", key_template=key, headers=headers)
    assert (request.key, request.value, request.headers) == (value.encode(), value.encode(), (("h", value.encode()),))
    if value == "-2":
        assert render(EndpointType.KAFKA, value, **spec, topic="{{input.x}}").topic == value
    else:
        with pytest.raises(InvalidDestination, match=r"^spec\.topic: "):
            render(EndpointType.KAFKA, value, **spec, topic="{{input.x}}")


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_text_for_redis_is_one_word_of_the_command(value: str) -> None:
    spec = {"redis_url": "redis://u:{{input.x}}@r:6379/0", "stream": "s:{{input.x}}"}
    request = render(EndpointType.REDIS_STREAM, value, **spec, fields_template={"f": "{{input.x}}"})
    assert (request.stream, request.fields) == (f"s:{value}", (("f", value),))
    server = RedisServer.parse(request.redis_url)
    assert (server.host, server.port, server.username, server.password, server.database) == ("r", 6379, "u", value, 0)
    with pytest.raises(InvalidDestination, match=r"^spec\.max_len: "):
        render(EndpointType.REDIS_STREAM, value, **spec, fields_template={"f": "x"}, max_len="{{input.x}}")


@pytest.mark.parametrize("value", ["?ssl_cert_reqs=none", "0?db=5", "/1", "-1", "1/2"])
def test_an_input_in_the_place_of_the_database_is_a_number_or_nothing_is_sent(value: str) -> None:
    request = render(
        EndpointType.REDIS_STREAM, value, redis_url="redis://r/{{input.x}}", stream="s", fields_template={"f": "x"}
    )
    with pytest.raises(ValueError, match="must name its database by one number"):
        RedisServer.parse(request.redis_url)
