"""Promises of the Kafka endpoint's shape."""

from __future__ import annotations

from typing import Any

import pytest

from taskexecutor_common.endpoint_types.base import InvalidDestination
from taskexecutor_common.endpoint_types.kafka import KafkaKind, KafkaRequest
from taskexecutor_common.errors import InvalidRequest

KIND = KafkaKind()
EXAMPLE: dict[str, Any] = {
    "bootstrap_servers": "{{config.bootstrap_servers}}",
    "topic": "{{config.topic}}",
    "key_template": "{{input.order_id}}",
    "value_template": {
        "event_type": "{{input.event_type}}",
        "order_id": "{{input.order_id}}",
        "amount": "{{input.amount}}",
    },
    "headers": {"ce-type": "order.{{input.event_type}}", "ce-source": "task-executor"},
    "acks": "all",
    "timeout_ms": 10000,
}
SCOPE: dict[str, Any] = {
    "input": {"order_id": 7, "event_type": "paid", "amount": 12.5},
    "config": {"bootstrap_servers": "k1:9092,k2:9092", "topic": "orders.v1"},
    "secret": {},
}


def spec(**changes: Any) -> dict[str, Any]:
    return {"bootstrap_servers": "k:9092", "topic": "orders", "value_template": {}, **changes}


def render(changes: dict[str, Any], **scope: Any) -> KafkaRequest:
    return KIND.compile(spec(**changes)).render({**SCOPE, **scope})


def test_the_contracts_example_renders() -> None:
    compiled = KIND.compile(EXAMPLE)
    request = compiled.render(SCOPE)
    assert compiled.timeout_ms == 10_000
    assert request.bootstrap_servers == "k1:9092,k2:9092"
    assert request.topic == "orders.v1"
    assert request.key == b"7"
    assert request.value == b'{"event_type":"paid","order_id":7,"amount":12.5}'
    assert request.headers == (("ce-type", b"order.paid"), ("ce-source", b"task-executor"))
    assert request.acks == "all"


def test_all_placeholders_of_a_spec_are_listed() -> None:
    assert {placeholder.text for placeholder in KIND.compile(EXAMPLE).placeholders} == {
        "config.bootstrap_servers",
        "config.topic",
        "input.order_id",
        "input.event_type",
        "input.amount",
    }


def test_what_is_absent_takes_its_default() -> None:
    compiled = KIND.compile(spec())
    request = compiled.render(SCOPE)
    assert (compiled.timeout_ms, request.acks, request.key, request.headers) == (10_000, "all", None, ())


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"bootstrap_servers": None}, "spec.bootstrap_servers"),
        ({"bootstrap_servers": " "}, "spec.bootstrap_servers"),
        ({"topic": None}, "spec.topic"),
        ({"topic": "a/b"}, "spec.topic"),
        ({"topic": ".."}, "spec.topic"),
        ({"topic": "a" * 250}, "spec.topic"),
        ({"value_template": None}, "spec.value_template"),
        ({"key_template": 5}, "spec.key_template"),
        ({"key_template": "{{"}, "spec.key_template"),
        ({"acks": "2"}, "spec.acks"),
        ({"acks": 1}, "spec.acks"),
        ({"timeout_ms": 0}, "spec.timeout_ms"),
        ({"headers": {"": "x"}}, "spec.headers."),
        ({"headers": {"Idempotency-Key": "x"}}, "spec.headers.Idempotency-Key"),
        ({"headers": {"a": "{{input}}"}}, "spec.headers.a"),
        ({"partition": 1}, "spec.partition"),
    ],
)
def test_a_bad_field_is_refused_by_name(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        KIND.compile(spec(**changes))
    assert caught.value.field == field
    assert caught.value.message.startswith(f"{field}: ")


@pytest.mark.parametrize("topic", ["", "a b", ".", "a\n"])
def test_a_rendered_topic_that_cannot_be_is_an_invalid_destination(topic: str) -> None:
    with pytest.raises(InvalidDestination, match=r"^spec\.topic: "):
        render({"topic": "{{config.topic}}"}, config={"topic": topic})


def test_rendered_bootstrap_servers_must_not_be_empty() -> None:
    with pytest.raises(InvalidDestination, match=r"^spec\.bootstrap_servers: "):
        render({"bootstrap_servers": "{{config.b}}"}, config={"b": ""})


@pytest.mark.parametrize(("value", "key"), [("é", "é".encode()), (3.0, b"3"), ({"a": 1}, b'{"a":1}'), (None, None)])
def test_a_key_is_text_and_null_is_no_key(value: Any, key: bytes | None) -> None:
    assert render({"key_template": "{{input.k}}"}, input={"k": value}).key == key


@pytest.mark.parametrize(("value", "sent"), [("text", b"text"), (5, b"5"), (["a"], b'["a"]'), (None, b"null")])
def test_a_string_value_goes_out_as_text_and_the_rest_as_json(value: Any, sent: bytes) -> None:
    assert render({"value_template": "{{input.v}}"}, input={"v": value}).value == sent


def test_header_values_may_hold_any_text() -> None:
    assert render({"headers": {"a": "{{input.a}}"}}, input={"a": "x\r\ny"}).headers == (("a", b"x\r\ny"),)


def test_a_preview_shows_what_would_be_sent() -> None:
    assert KIND.describe(KIND.compile(EXAMPLE).render(SCOPE)) == {
        "bootstrap_servers": "k1:9092,k2:9092",
        "topic": "orders.v1",
        "key": "7",
        "value": {"event_type": "paid", "order_id": 7, "amount": 12.5},
        "headers": {"ce-type": "order.paid", "ce-source": "task-executor"},
    }


def test_a_secret_of_digits_stays_text_in_a_preview_so_that_it_can_be_masked() -> None:
    described = KIND.describe(render({"value_template": "{{secret.pin}}"}, secret={"pin": "1234"}))
    assert described["value"] == "1234"
    assert "key" not in described
