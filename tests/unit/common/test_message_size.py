"""What templates may render at most, whatever the spec and the input are."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from taskexecutor_common.endpoint_types.base import InvalidDestination
from taskexecutor_common.endpoint_types.message_size import MAX_PAYLOAD_BYTES, MAX_PLACEHOLDERS, MAX_TEXT_BYTES
from taskexecutor_common.endpoint_types.registry import kind_of
from taskexecutor_common.errors import InvalidRequest
from taskexecutor_common.model.endpoint import EndpointType

LARGE = "x" * 200_000
MANY = MAX_PLACEHOLDERS - 10

Spec = dict[str, Any]


def http(**changes: Any) -> Spec:
    return {"url": "https://example.com/", "method": "POST", **changes}


def kafka(**changes: Any) -> Spec:
    return {"bootstrap_servers": "k:9092", "topic": "t", "value_template": "v", **changes}


def redis(**changes: Any) -> Spec:
    return {"redis_url": "redis://r/0", "stream": "s", "fields_template": {"a": "b"}, **changes}


def render(endpoint_type: EndpointType, spec: Spec, value: Any) -> Any:
    scope = {"input": value, "config": {}, "secret": {}}
    return kind_of(endpoint_type).compile(spec).render(scope)


def fault(endpoint_type: EndpointType, spec: Spec, value: Any) -> str:
    with pytest.raises(InvalidDestination) as caught:
        render(endpoint_type, spec, value)
    return str(caught.value)


BOMBS: dict[str, tuple[EndpointType, Callable[[str], Spec]]] = {
    "HTTP body, text": (EndpointType.HTTP, lambda x: http(body_template=x * MANY)),
    "HTTP body, list": (EndpointType.HTTP, lambda x: http(body_template=[x] * MANY)),
    "HTTP URL": (EndpointType.HTTP, lambda x: http(url=f"https://example.com/{x * MANY}")),
    "HTTP header": (EndpointType.HTTP, lambda x: http(headers={"X-A": x * MANY})),
    "HTTP headers": (EndpointType.HTTP, lambda x: http(headers={f"X-{n}": x for n in range(MANY)})),
    "Kafka key": (EndpointType.KAFKA, lambda x: kafka(key_template=x * MANY)),
    "Kafka value": (EndpointType.KAFKA, lambda x: kafka(value_template={str(n): x for n in range(MANY)})),
    "Kafka headers": (EndpointType.KAFKA, lambda x: kafka(headers={f"h{n}": x for n in range(MANY)})),
    "Redis field": (EndpointType.REDIS_STREAM, lambda x: redis(fields_template={"a": x * MANY})),
    "Redis fields": (EndpointType.REDIS_STREAM, lambda x: redis(fields_template={f"f{n}": x for n in range(MANY)})),
    "Redis stream": (EndpointType.REDIS_STREAM, lambda x: redis(stream=x * MANY)),
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("value", [LARGE, [LARGE], {"a": [1] * 100_000}], ids=["text", "array", "object"])
def test_a_large_input_that_is_named_often_is_refused_before_it_is_written_out(bomb: str, value: Any) -> None:
    endpoint_type, make = BOMBS[bomb]
    compiled = kind_of(endpoint_type).compile(make("{{input.x}}"))
    scope = {"input": {"x": value}, "config": {}, "secret": {}}
    tracemalloc.start()
    try:
        with pytest.raises(
            InvalidDestination, match=r"^spec: with \{\{input\.x\}\}, here 990 times, it makes more than"
        ):
            compiled.render(scope)
        assert tracemalloc.get_traced_memory()[1] < 32 * MAX_PAYLOAD_BYTES, "written out, it has 200 MB"
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("endpoint_type", "make", "field", "most"),
    [
        (EndpointType.HTTP, lambda x: http(url=f"https://example.com/?{x}"), "spec.url", MAX_TEXT_BYTES - 21),
        (EndpointType.HTTP, lambda x: http(headers={"X-A": x}), "spec.headers.X-A", MAX_TEXT_BYTES),
        (EndpointType.HTTP, lambda x: http(body_template=x), "spec.body_template", MAX_PAYLOAD_BYTES),
        (EndpointType.KAFKA, lambda x: kafka(key_template=x), "spec.key_template", MAX_TEXT_BYTES),
        (EndpointType.KAFKA, lambda x: kafka(value_template=x), "spec.value_template", MAX_PAYLOAD_BYTES),
        (EndpointType.KAFKA, lambda x: kafka(headers={"h": x}), "spec.headers.h", MAX_TEXT_BYTES),
        (EndpointType.REDIS_STREAM, lambda x: redis(stream=x), "spec.stream", MAX_TEXT_BYTES),
        (
            EndpointType.REDIS_STREAM,
            lambda x: redis(fields_template={"f": x}),
            "spec.fields_template",
            MAX_PAYLOAD_BYTES,
        ),
    ],
)
def test_a_part_of_a_message_is_bounded_by_name(
    endpoint_type: EndpointType, make: Callable[[str], Spec], field: str, most: int
) -> None:
    assert render(endpoint_type, make("{{input.x}}"), {"x": "y" * most})
    said = fault(endpoint_type, make("{{input.x}}"), {"x": "y" * (most + 1)})
    assert said.startswith(f"{field}: ")
    assert "KiB, which is the most that is sent" in said


def test_bytes_are_counted_and_not_characters() -> None:
    too_much = "é" * (MAX_TEXT_BYTES // 2 + 1)
    assert fault(EndpointType.HTTP, http(headers={"X-A": "{{input.x}}"}), {"x": too_much}).startswith(
        "spec.headers.X-A"
    )
    assert fault(EndpointType.KAFKA, kafka(key_template="{{input.x}}"), {"x": too_much}).startswith("spec.key_template")
    half = "é" * (MAX_PAYLOAD_BYTES // 4)
    two_fields = redis(fields_template={"f": "{{input.x}}", "g": "{{input.x}}y"})
    assert fault(EndpointType.REDIS_STREAM, two_fields, {"x": half}).startswith("spec.fields_template: with g ")


def test_what_encoding_adds_counts() -> None:
    ends_of_lines = "\n" * (MAX_PAYLOAD_BYTES // 2)  # two characters each in JSON
    assert "spec.body_template" in fault(EndpointType.HTTP, http(body_template=["{{input.x}}"]), {"x": ends_of_lines})
    slashes = "/" * (MAX_TEXT_BYTES // 3)  # three characters each in a URL
    assert "spec.url" in fault(EndpointType.HTTP, http(url="https://example.com/?{{input.x}}"), {"x": slashes})


def test_constant_texts_are_bounded_when_they_are_registered() -> None:
    with pytest.raises(InvalidRequest) as refused:
        kind_of(EndpointType.HTTP).compile(http(headers={"X-A": "a" * (MAX_TEXT_BYTES + 1)}))
    assert refused.value.field == "spec.headers.X-A"


def test_a_spec_has_a_bounded_number_of_placeholders() -> None:
    for template in (
        "{{input.x}}" * (MAX_PLACEHOLDERS + 1),
        [f"{{{{input.x{n}}}}}" for n in range(MAX_PLACEHOLDERS + 1)],
    ):
        with pytest.raises(InvalidRequest, match=r"^spec: has 1001 placeholders; 1000 are allowed$") as refused:
            kind_of(EndpointType.HTTP).compile(http(body_template=template))
        assert refused.value.field == "spec"
    kind_of(EndpointType.HTTP).compile(http(body_template="{{input.x}}" * MAX_PLACEHOLDERS))


def test_many_small_values_are_fine() -> None:
    request = render(EndpointType.HTTP, http(body_template="{{input.x}}," * MAX_PLACEHOLDERS), {"x": 12.5})
    assert request.body == b"12.5," * MAX_PLACEHOLDERS


def test_no_value_of_a_secret_is_in_the_fault() -> None:
    spec = http(body_template=["{{secret.k}}"] * MANY)
    with pytest.raises(InvalidDestination) as caught:
        kind_of(EndpointType.HTTP).compile(spec).render({"input": {}, "config": {}, "secret": {"k": "hush" * 20_000}})
    assert "hush" not in str(caught.value)
