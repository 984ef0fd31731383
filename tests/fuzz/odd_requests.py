"""Requests to any method, made from its descriptor: as protobuf, as JSON, right, nearly right and quite wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct, Value
from hypothesis import strategies as st

from tests.e2e.calls import METHODS
from tests.fuzz.conversation import Json
from tests.fuzz.json_values import json_of, plain_values, texts

IT = "it"
"""The name of what is there to be found."""

_INT32 = st.sampled_from([0, 1, -1, 50, 201, 2**31 - 1, -(2**31)]) | st.integers(-(2**31), 2**31 - 1)
_INT64 = st.sampled_from([0, -62135596800, 253402300799, 2**63 - 1, -(2**63)]) | st.integers(-(2**63), 2**63 - 1)
_WORDS = st.sampled_from(
    [
        IT,
        "",
        "\x00",
        "a\x00",
        "UTC",
        "0 0 1 1 *",
        "* * * * *",
        "@daily",
        "job_" + "0" * 32,
        "exec_" + "f" * 32,
        "x" * 300,
    ]
)
_TEXTS = _WORDS | texts

# --- right ones ---

NEW = "new"
"""The name of what is to be created; it is taken from the second time on."""

RIGHT_SPEC: Json = {
    "url": "http://127.0.0.1:1/{{input.a}}",
    "method": "POST",
    "headers": {"X-A": "{{secret.it}}"},
    "body_template": {"a": "{{input.a}}", "b": ["{{config.a}}"]},
    "timeout_ms": 1000,
}
SCHEMA_WORDS = ["type", "properties", "required", "pattern", "$ref", "$schema", "allOf", "items", "enum", "format"]
_ENDPOINT: Json = {
    "type": "HTTP",
    "config": IT,
    "payload_spec": IT,
    "spec": RIGHT_SPEC,
    "retry_policy": {"max_attempts": 2, "initial_delay_ms": 1, "non_retryable_status_codes": [404]},
    "flow_control": {"max_in_flight": 1, "rate_limit": {"per_second": 10}, "circuit_breaker": {"window_sec": 1}},
}
_WINDOW: Json = {"starts_at": "2199-01-01T00:00:00Z", "ends_at": "2209-01-01T00:00:00Z"}
_CRON: Json = {"cron": "0 0 1 1 *", "timezone": "Europe/Berlin"}
_JOBS: list[Json] = [
    {"endpoint": IT, "trigger": "IMMEDIATE", "idempotency_key": "k", "input": {"a": 1}},
    {"endpoint": IT, "trigger": "DELAYED", "idempotency_key": "l", "run_at": "2199-01-01T00:00:00Z"},
    {"endpoint": IT, "trigger": "CRON", "catch_up": "NONE", "input": {"a": []}, **_CRON, **_WINDOW},
]
_BY_METHOD: dict[str, list[Json]] = {
    "PayloadSpecService.CreatePayloadSpec": [{"name": NEW, "schema": {"type": "object", "properties": {"a": {}}}}],
    "PayloadSpecService.UpdatePayloadSpec": [{"schema": {"type": "object"}}],
    "ConfigService.CreateConfig": [{"name": NEW, "values": {"a": {"b": [1, "x"]}}}],
    "ConfigService.UpdateConfig": [{"values": {"a": 1}}],
    "SecretService.CreateSecret": [{"name": NEW, "value": "x"}],
    "SecretService.UpdateSecret": [{"value": "y"}],
    "EndpointService.CreateEndpoint": [{"name": NEW, **_ENDPOINT}],
    "EndpointService.UpdateEndpoint": [_ENDPOINT],
    "EndpointService.RenderEndpoint": [{"input": {"a": 1}}],
    "EndpointService.TestEndpoint": [{"input": {"a": 1}}],
    "JobService.CreateJob": _JOBS,
    "JobService.BatchCreateJobs": [{"jobs": _JOBS}],
    "JobService.UpdateJob": [{"input": {"a": 2}, **_CRON, **_WINDOW}],
    "JobService.ResumeJob": [{"catch_up": "LATEST"}],
    "JobService.PreviewCron": [{"count": 3, **_CRON, **_WINDOW}],
    "ApiKeyService.CreateApiKey": [{"name": NEW, "scopes": ["read"], "expires_at": "2199-01-01T00:00:00Z"}],
}


def _right(name: str) -> list[Json]:
    requests = _BY_METHOD.get(name, [{"limit": 2} if ".List" in name else {}])
    has_name = "name" in METHODS[name].input_type.fields_by_name
    return [({"name": IT} if has_name else {}) | request for request in requests]


RIGHT = {name: _right(name) for name in METHODS}
"""By method, requests that go well, but for ids in their path."""

# --- protobuf ---

_SPECS: list[Any] = [RIGHT_SPEC, {**RIGHT_SPEC, "timeout_ms": 1.5}]
_wild_json = json_of(st.none() | st.booleans() | st.floats() | _TEXTS | st.just(math.inf) | st.just(2.0**53), _TEXTS)
_objects = st.dictionaries(_TEXTS, _wild_json, max_size=3) | st.sampled_from(_SPECS)
_LEVELS = st.sampled_from([29, 30, 31, 33, 34, 50, 200, 2000])


def _set_value(message: Value, value: Any) -> None:
    """None leaves it without a kind: allowed on the wire, and not the same as null."""
    if isinstance(value, bool):
        message.bool_value = value
    elif isinstance(value, int | float):
        message.number_value = value
    elif isinstance(value, str):
        message.string_value = value
    elif isinstance(value, dict):
        _set_struct(message.struct_value, value)
    elif isinstance(value, list):
        message.list_value.SetInParent()
        for item in value:
            _set_value(message.list_value.values.add(), item)


def _set_struct(message: Struct, value: Mapping[str, Any]) -> None:
    message.SetInParent()
    for key, item in value.items():
        _set_value(message.fields[key], item)


def _struct(value: Any) -> Struct:
    struct = Struct()
    _set_struct(struct, value)
    return struct


def _scalars(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    return {
        FieldDescriptor.CPPTYPE_STRING: _TEXTS,
        FieldDescriptor.CPPTYPE_INT32: _INT32,
        FieldDescriptor.CPPTYPE_INT64: _INT64,
        FieldDescriptor.CPPTYPE_ENUM: st.integers(0, 9) | _INT32,
        FieldDescriptor.CPPTYPE_DOUBLE: st.floats(),
        FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
    }[field.cpp_type]


@st.composite
def nearly_right(draw: Any, name: str) -> Message:
    """A right request to this method, one or two of its fields replaced, or one member of a Struct."""
    descriptor = METHODS[name].input_type
    message = json_format.ParseDict(draw(st.sampled_from(RIGHT[name])), message_factory.GetMessageClass(descriptor)())
    for field in draw(_some(list(descriptor.fields))):
        if _is_struct(field) and draw(st.booleans()):
            _set_struct(getattr(message, field.name), draw(_members(field, _wild_json)))
        else:
            message.ClearField(field.name)
            message.MergeFrom(type(message)(**{field.name: draw(_content(field))}))
    return message


def _some(fields: list[FieldDescriptor]) -> st.SearchStrategy[list[FieldDescriptor]]:
    return st.lists(st.sampled_from(fields), max_size=2, unique_by=lambda field: field.name)


def _is_struct(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.full_name == "google.protobuf.Struct"


def _members(field: FieldDescriptor, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    known = {"spec": [*RIGHT_SPEC, "expected_status_codes", "signing_secret"], "schema": SCHEMA_WORDS}
    return st.dictionaries(st.sampled_from(known.get(field.name, ["a"])), values, min_size=1, max_size=2)


def messages(descriptor: Descriptor) -> st.SearchStrategy[Message]:
    """Messages of this type with any content that its fields can hold."""
    if descriptor.full_name == "google.protobuf.Struct":
        return _objects.map(_struct)
    fields = {field.name: st.none() | _content(field) for field in descriptor.fields}
    kind = message_factory.GetMessageClass(descriptor)
    return st.fixed_dictionaries(fields).map(
        lambda drawn: kind(**{name: value for name, value in drawn.items() if value is not None})
    )


def _content(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    one = messages(field.message_type) if field.message_type else _scalars(field)
    return st.lists(one, max_size=3) if field.is_repeated else one


@st.composite
def wire(draw: Any, name: str) -> bytes:
    """A request as bytes, most often whole, else cut, stretched, or with some of them replaced; or any bytes at all."""
    descriptor = METHODS[name].input_type
    raw = bytearray(draw(nearly_right(name) | messages(descriptor)).SerializeToString())
    match draw(st.sampled_from(["whole"] * 6 + ["cut", "stretched", "damaged", "deep", "anything"])):
        case "cut":
            del raw[draw(st.integers(0, len(raw))) :]
        case "stretched":
            raw += draw(st.binary(max_size=20))
        case "damaged":
            for place in draw(st.lists(st.integers(0, max(0, len(raw) - 1)), max_size=3)):
                raw[place : place + 1] = draw(st.binary(max_size=2))
        case "deep":
            raw += _nested(draw(st.sampled_from(list(descriptor.fields))).number, draw(_LEVELS))
        case "anything":
            return bytes(draw(st.binary(max_size=60)))
    return bytes(raw)


def _nested(number: int, levels: int) -> bytes:
    """Field `number` as a Struct that holds a Struct and so on: deeper than protobuf's own writer goes."""
    struct = b""
    for _ in range(levels):
        value = _field(5, struct)  # Value.struct_value
        struct = _field(1, _field(1, b"a") + _field(2, value))  # Struct.fields: key, value
    return _field(number, struct)


def _field(number: int, content: bytes) -> bytes:
    """A field of wire type 2: what has a length."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


# --- JSON ---


class Raw(str):
    """Stands in a JSON text as it is."""

    __slots__ = ()


class Pairs(list[tuple[str, Any]]):
    """An object whose keys may stand there twice."""


_ODD = st.sampled_from(
    [
        *map(
            Raw,
            (
                "NaN",
                "Infinity",
                "-Infinity",
                "1e999",
                "-0",
                "-0.0",
                "1e-999",
                "01",
                "1.",
                ".5",
                "9007199254740993",
                "123456789012345678901234567890",
                "tru",
                "'a'",
                "",
                "/**/1",
                r'"\ud800"',
                r'"\udc00\ud800"',
                r'"\ud83d\ude00"',
                r'"\u0000"',
                r'"\x41"',
                '"\x01"',
                '"',
                "[" * 40 + "]" * 40,
                "[" * 5000 + "]" * 5000,
                '{"a":' * 29 + "1" + "}" * 29,
                '{"a":' * 120 + "1" + "}" * 120,
                '{"":{"":{}}}',
            ),
        ),
        None,
        [],
        {},
        [None],
        "2026-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999999Z",
        "2026-06-30T23:59:60Z",
        {"seconds": 1, "nanos": -1},
        Pairs([("a", 1), ("a", 2)]),
    ]
)


@st.composite
def json_texts(draw: Any, name: str, in_path: set[str]) -> str:
    """Bodies for this method; `in_path` are the fields that stand in the path."""
    match draw(st.sampled_from(["nearly right"] * 4 + ["of its fields", "any"])):
        case "nearly right":
            return _write(draw(_nearly_right_json(name, in_path)))
        case "of its fields":
            return _write(draw(_json_of(METHODS[name].input_type, in_path)))
        case _:
            return _write(draw(plain_values | _ODD))


@st.composite
def _nearly_right_json(draw: Any, name: str, in_path: set[str]) -> Json:
    body = dict(draw(st.sampled_from(RIGHT[name])))
    fields = [field for field in METHODS[name].input_type.fields if field.name not in in_path]
    for field in draw(_some(fields)):
        if _is_struct(field) and draw(st.booleans()):
            body[field.name] = {**body.get(field.name, {}), **draw(_members(field, plain_values | _ODD))}
        else:
            body[field.name] = draw(_json_field(field))
    return {key: value for key, value in body.items() if key not in in_path}


def _json_of(descriptor: Descriptor, leave_out: set[str] = frozenset()) -> st.SearchStrategy[Any]:
    fields = [field for field in descriptor.fields if field.name not in leave_out]
    if not fields:
        return st.just({})
    whole = st.fixed_dictionaries({}, optional={field.name: _json_field(field) for field in fields})
    more = st.tuples(st.sampled_from([field.name for field in fields]) | _TEXTS, plain_values)
    return whole | st.tuples(whole, more).map(lambda drawn: Pairs([*drawn[0].items(), drawn[1]]))


def _json_field(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    one = _right_json(field)
    right = st.lists(one, max_size=3) if field.is_repeated else one
    return right | right | right | _ODD | plain_values


def _right_json(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.message_type is None:
        names = [value.name for value in field.enum_type.values] if field.enum_type else []
        return st.sampled_from(names) if names else _scalars(field)
    if field.message_type.full_name == "google.protobuf.Struct":
        return st.dictionaries(_TEXTS, plain_values | _ODD, max_size=3) | st.sampled_from(_SPECS)
    if field.message_type.full_name == "google.protobuf.Timestamp":
        return st.datetimes().map(lambda time: time.isoformat() + "Z")
    return _json_of(field.message_type)


def _write(value: Any) -> str:
    if isinstance(value, Raw):
        return value
    if isinstance(value, Pairs):
        return "{" + ",".join(f"{json.dumps(key)}:{_write(item)}" for key, item in value) + "}"
    if isinstance(value, dict):
        return _write(Pairs(value.items()))
    if isinstance(value, list):
        return "[" + ",".join(map(_write, value)) + "]"
    return json.dumps(value)
