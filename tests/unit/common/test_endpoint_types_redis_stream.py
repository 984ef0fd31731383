"""Promises of the Redis Stream endpoint's shape."""

from __future__ import annotations

from typing import Any

import pytest

from taskexecutor_common.endpoint_types.base import InvalidDestination
from taskexecutor_common.endpoint_types.redis_stream import RedisStreamKind, RedisStreamRequest
from taskexecutor_common.errors import InvalidRequest

KIND = RedisStreamKind()
EXAMPLE: dict[str, Any] = {
    "redis_url": "{{config.redis_url}}",
    "stream": "{{config.stream_name}}",
    "fields_template": {"user_id": "{{input.user_id}}", "title": "{{input.title}}", "body": "{{input.body}}"},
    "max_len": "{{config.max_stream_length}}",
    "approximate_trimming": True,
    "timeout_ms": 3000,
}
SCOPE: dict[str, Any] = {
    "input": {"user_id": 42, "title": "Hi", "body": {"a": [1, None]}},
    "config": {"redis_url": "redis://r:6379/0", "stream_name": "notifications", "max_stream_length": 1000},
    "secret": {},
}


def spec(**changes: Any) -> dict[str, Any]:
    return {"redis_url": "redis://r/0", "stream": "s", "fields_template": {"a": "b"}, **changes}


def render(changes: dict[str, Any], **scope: Any) -> RedisStreamRequest:
    return KIND.compile(spec(**changes)).render({**SCOPE, **scope})


def test_the_contracts_example_renders() -> None:
    compiled = KIND.compile(EXAMPLE)
    request = compiled.render(SCOPE)
    assert compiled.timeout_ms == 3_000
    assert request.redis_url == "redis://r:6379/0"
    assert request.stream == "notifications"
    assert request.fields == (("user_id", "42"), ("title", "Hi"), ("body", '{"a":[1,null]}'))
    assert request.max_len == 1000
    assert request.approximate is True


def test_all_placeholders_of_a_spec_are_listed() -> None:
    assert {placeholder.text for placeholder in KIND.compile(EXAMPLE).placeholders} == {
        "config.redis_url",
        "config.stream_name",
        "config.max_stream_length",
        "input.user_id",
        "input.title",
        "input.body",
    }


def test_what_is_absent_takes_its_default() -> None:
    compiled = KIND.compile(spec())
    request = compiled.render(SCOPE)
    assert (compiled.timeout_ms, request.max_len, request.approximate) == (3_000, None, True)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"redis_url": None}, "spec.redis_url"),
        ({"redis_url": "http://r/0"}, "spec.redis_url"),
        ({"redis_url": "unix:///run/redis.sock"}, "spec.redis_url"),
        ({"redis_url": "redis://"}, "spec.redis_url"),
        ({"redis_url": "redis://{{input.host}}/0"}, "spec.redis_url"),
        ({"stream": None}, "spec.stream"),
        ({"stream": ""}, "spec.stream"),
        ({"fields_template": None}, "spec.fields_template"),
        ({"fields_template": {}}, "spec.fields_template"),
        ({"fields_template": ["a"]}, "spec.fields_template"),
        ({"fields_template": {"a": "{{"}}, "spec.fields_template.a"),
        ({"fields_template": {"{{input.a}}": "x"}}, "spec.fields_template"),
        ({"max_len": -1}, "spec.max_len"),
        ({"max_len": 1.5}, "spec.max_len"),
        ({"max_len": True}, "spec.max_len"),
        ({"max_len": "many"}, "spec.max_len"),
        ({"max_len": ["{{input.a}}"]}, "spec.max_len"),
        ({"max_len": 2**63}, "spec.max_len"),
        ({"approximate_trimming": "yes"}, "spec.approximate_trimming"),
        ({"timeout_ms": 900_001}, "spec.timeout_ms"),
        ({"db": 1}, "spec.db"),
    ],
)
def test_a_bad_field_is_refused_by_name(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        KIND.compile(spec(**changes))
    assert caught.value.field == field
    assert caught.value.message.startswith(f"{field}: ")


@pytest.mark.parametrize(("max_len", "expected"), [(0, 0), (500.0, 500), ("250", 250), (2**63 - 1, 2**63 - 1)])
def test_max_len_is_a_whole_number_however_it_is_written(max_len: Any, expected: int) -> None:
    assert render({"max_len": max_len}).max_len == expected
    assert render({"max_len": "{{config.n}}"}, config={"n": max_len}).max_len == expected


@pytest.mark.parametrize("rendered", ["", "-1", "1e3", "²", "1" * 5000, -1, 0.5, True, None, [1], {}])
def test_a_max_len_that_is_no_whole_number_is_an_invalid_destination(rendered: Any) -> None:
    with pytest.raises(InvalidDestination, match=r"^spec\.max_len: "):
        render({"max_len": "{{config.n}}"}, config={"n": rendered})


def test_a_rendered_stream_must_not_be_empty() -> None:
    with pytest.raises(InvalidDestination, match=r"^spec\.stream: "):
        render({"stream": "{{config.s}}"}, config={"s": ""})


def test_a_rendered_url_must_be_one_of_redis() -> None:
    with pytest.raises(InvalidDestination, match=r"^spec\.redis_url: "):
        render({"redis_url": "{{config.u}}"}, config={"u": "http://r/0"})


@pytest.mark.parametrize(
    ("value", "text"), [("x", "x"), (3.0, "3"), (True, "true"), (None, "null"), ([1, {"a": "b"}], '[1,{"a":"b"}]')]
)
def test_field_values_become_text(value: Any, text: str) -> None:
    request = render({"fields_template": {"typed": "{{input.v}}", "plain": value}}, input={"v": value})
    assert request.fields == (("typed", text), ("plain", text))


def test_a_preview_shows_what_would_be_sent() -> None:
    assert KIND.describe(KIND.compile(EXAMPLE).render(SCOPE)) == {
        "redis_url": "redis://r:6379/0",
        "stream": "notifications",
        "fields": {"user_id": "42", "title": "Hi", "body": '{"a":[1,null]}'},
        "max_len": 1000,
    }
    assert "max_len" not in KIND.describe(render({}))
