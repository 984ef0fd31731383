"""Free JSON in requests and answers: read as protobuf's own JSON reads it, refused by the place at fault, answered as sent."""

from __future__ import annotations

import math
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct
from hypothesis import given
from hypothesis import strategies as st

from taskexecutor_api.validate import MAX_DEPTH, MAX_EXACT, to_object
from taskexecutor_common.errors import InvalidRequest

TEXT = st.text(st.characters(exclude_characters="\x00", codec="utf-8"), max_size=8)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False).filter(lambda n: not n.is_integer() or abs(n) < MAX_EXACT)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=12,
)
STEPS = st.lists(st.sampled_from(["key", "other"]) | st.integers(0, 2), max_size=6)
REFUSED = {
    "must not contain NUL": "a\x00b",
    "an integer of magnitude 2^53": float(2**53),
    "must be a finite number": math.inf,
}


def struct(value: dict[str, Any]) -> Struct:
    message = Struct()
    message.update(value)
    return message


def put(value: Any, steps: list[str | int]) -> Any:
    """A value at the end of a way through objects (names) and arrays (places, with neighbours before it)."""
    for step in reversed(steps):
        value = {step: value} if isinstance(step, str) else [None] * step + [value]
    return value


@given(st.dictionaries(TEXT, VALUES, max_size=5))
def test_an_object_is_read_as_protobuf_reads_it(value: dict[str, Any]) -> None:
    message = struct(value)
    assert to_object(message, "input") == json_format.MessageToDict(message)


@given(NUMBERS)
def test_an_integral_number_is_an_integer(number: float) -> None:
    assert isinstance(to_object(struct({"n": number}), "input")["n"], int) == number.is_integer()


@pytest.mark.parametrize(("why", "value"), REFUSED.items(), ids=REFUSED)
@given(steps=STEPS)
def test_a_refusal_names_the_place(why: str, value: Any, steps: list[str | int]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        to_object(struct({"first": put(value, steps)}), "input")
    path = ".".join(["input", "first", *map(str, steps)])
    assert refused.value.field == path
    assert refused.value.message.startswith(f"{path}: {why}")


def test_a_key_with_nul_is_refused_by_the_object_that_has_it() -> None:
    with pytest.raises(InvalidRequest) as refused:
        to_object(struct({"outer": {"a\x00b": 1}}), "input")
    assert (refused.value.field, refused.value.message) == ("input.outer", "input.outer: a key must not contain NUL")


@pytest.mark.parametrize("step", ["key", 0])
def test_nesting_is_refused_where_it_goes_too_deep(step: str | int) -> None:
    deepest: list[str | int] = [step] * (MAX_DEPTH - 1)
    assert to_object(struct({"first": put(None, deepest)}), "input")
    with pytest.raises(InvalidRequest) as refused:
        to_object(struct({"first": put({} if step == "key" else [], deepest)}), "input")
    assert refused.value.field == ".".join(["input", "first", *map(str, deepest)])
