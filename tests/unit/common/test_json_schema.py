"""JSON Schema: what is compiled and refused, what an input's faults are called, and that nobody can keep us busy."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from taskexecutor_common.errors import InputValidationFailed, InvalidSchema
from taskexecutor_common.json_schema import (
    MAX_PATTERNS,
    MAX_PROBLEMS,
    MAX_SCHEMA_BYTES,
    MAX_SCHEMA_NESTING,
    MAX_SCHEMA_PARTS,
    compile_schema,
)

ORDER = {
    "type": "object",
    "properties": {
        "user_id": {"type": "string"},
        "amount": {"type": "integer"},
        "lines": {"items": {"required": ["sku"]}},
    },
    "required": ["user_id"],
}


def refusal(schema: Any) -> InvalidSchema:
    with pytest.raises(InvalidSchema) as raised:
        compile_schema(schema)
    return raised.value


def failure(schema: dict[str, Any], value: Any) -> InputValidationFailed:
    with pytest.raises(InputValidationFailed) as raised:
        compile_schema(schema).validate(value)
    return raised.value


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Generous, against answers that would take hours; no measure of speed."""
    began = time.perf_counter()
    yield
    assert time.perf_counter() - began < seconds


def nested(levels: int, leaf: Any = 1) -> Any:
    for _ in range(levels):
        leaf = {"a": leaf}
    return leaf


def doubling(levels: int, keyword: str = "anyOf", **more: Any) -> dict[str, Any]:
    """Definitions each of which refers twice to the next."""
    links = {f"d{n}": {**more, keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**links, f"d{levels}": {"type": "string"}}}


def chain(levels: int, keyword: str = "allOf", **more: Any) -> dict[str, Any]:
    """Definitions each of which refers to the next."""
    links = {f"d{n}": {**more, keyword: [{"$ref": f"#/$defs/d{n + 1}"}]} for n in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**links, f"d{levels}": {"type": "string"}}}


# Inputs


@pytest.mark.parametrize("value", [{"user_id": "u"}, {"user_id": "u", "amount": 12}, {"user_id": "u", "more": None}])
def test_a_fitting_input_passes(value: Any) -> None:
    compile_schema(ORDER).validate(value)


def test_an_integral_number_is_an_integer() -> None:
    compile_schema({"type": "integer"}).validate(12)
    compile_schema({"type": "integer"}).validate(12.0)


@pytest.mark.parametrize(
    ("value", "message", "field"),
    [
        ({"user_id": "u", "amount": 12.5}, 'input.amount: 12.5 is not of type "integer"', "input.amount"),
        ({"user_id": "u", "amount": True}, 'input.amount: true is not of type "integer"', "input.amount"),
        ({"amount": 1}, 'input: "user_id" is a required property', "input"),
        (
            {"user_id": "u", "lines": [{"sku": 1}, {}]},
            'input.lines.1: "sku" is a required property',
            "input.lines.1",
        ),
        ("text", 'input: "text" is not of type "object"', "input"),
    ],
)
def test_a_failure_names_the_path_and_what_would_be_right(value: Any, message: str, field: str) -> None:
    error = failure(ORDER, value)
    assert (error.message, error.field) == (message, field)


def test_the_first_part_of_the_path_is_the_callers() -> None:
    with pytest.raises(InputValidationFailed, match=r"^jobs\.3\.input\.amount: ") as raised:
        compile_schema(ORDER).validate({"user_id": "u", "amount": "x"}, field="jobs.3.input")
    assert raised.value.field == "jobs.3.input.amount"


def test_several_problems_are_told_and_the_rest_is_counted() -> None:
    message = failure({"items": {"type": "integer"}}, ["a"] * (MAX_PROBLEMS + 2)).message
    assert message.count("is not of type") == MAX_PROBLEMS
    assert message.endswith("; and 2 more")


def test_a_message_is_one_bounded_line_however_large_the_input() -> None:
    key, value = "x\ny" * 1000, [{"k\n": "v" * 1000}] * 1000
    error = failure({"properties": {key: {"type": "string"}}}, {key: value})
    assert error.message.endswith('is not of type "string"')
    assert len(error.message) < 600
    assert error.message.isprintable()
    assert error.field is not None
    assert len(error.field) < 300


def test_formats_are_asserted_in_every_draft() -> None:
    for draft in ({}, {"$schema": "http://json-schema.org/draft-07/schema#"}):
        assert "email" in failure({**draft, "format": "email"}, "nobody").message
    compile_schema({"format": "email"}).validate("somebody@example.com")


def test_an_unknown_format_is_a_note() -> None:
    compile_schema({"format": "shoe-size"}).validate("nobody")


@pytest.mark.parametrize("value", [2**64, "\ud800", {1: 2}, {"a": {1, 2}}])
def test_what_is_no_json_is_refused(value: Any) -> None:
    assert "must be JSON" in failure({}, value).message


# Schemas


@pytest.mark.parametrize(
    ("schema", "message", "field"),
    [
        (5, "schema: must be an object", "schema"),
        (True, "schema: must be an object", "schema"),
        ({"x": {1}}, "schema: is not JSON", "schema"),
        ({"type": "foo"}, 'schema.type: "foo" is not one of "array"', "schema.type"),
        (
            {"properties": {"a": {"minimum": "x"}}},
            'schema.properties.a.minimum: "x" is not of type "number"',
            "schema.properties.a.minimum",
        ),
        (
            {"$schema": "http://example.com/mine"},
            "schema.$schema: 'http://example.com/mine' is no draft",
            "schema.$schema",
        ),
        ({"pattern": "("}, 'schema.pattern: "(" is not a "regex"', "schema.pattern"),
    ],
)
def test_a_bad_schema_is_refused_in_words_that_say_where(schema: Any, message: str, field: str) -> None:
    error = refusal(schema)
    assert error.message.startswith(message)
    assert error.field == field


@pytest.mark.parametrize("draft", ["draft-04", "draft-06", "draft-07"])
def test_older_drafts_are_understood(draft: str) -> None:
    schema = {"$schema": f"http://json-schema.org/{draft}/schema#", "definitions": {"a": {"type": "string"}}}
    assert "is not of type" in failure({**schema, "items": {"$ref": "#/definitions/a"}}, [1]).message


# References


@pytest.mark.parametrize(
    "reference",
    [
        "http://example.com/schema.json",
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/draft-07/schema#",
        "file:///etc/passwd",
        "//example.com/x",
        "other.json",
        "../other.json#/a",
        "urn:example:x",
        "#/nowhere",
        "#nobody",
        "::",
    ],
)
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
def test_a_reference_to_the_outside_is_refused_by_name(keyword: str, reference: str) -> None:
    error = refusal({"$defs": {"a": {}}, "properties": {"p": {keyword: reference}}})
    assert error.message.startswith(f"schema.properties.p.{keyword}: '{reference}' is not found inside the schema")
    assert error.field == f"schema.properties.p.{keyword}"


def test_the_reference_at_fault_is_told_from_those_that_are_fine() -> None:
    schema = {
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {}},
        "items": {"$ref": "#/$defs/a"},
        "contains": {"$ref": "#/$defs/ab"},
    }
    assert refusal(schema).field == "schema.contains.$ref"


def test_nothing_is_ever_fetched() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"
        for schema in (
            {"$ref": url},
            {"$schema": url},
            {"$id": url, "$ref": "other.json"},
            {"$defs": {"unused": {"$ref": url}}},
            {"$defs": {"inner": {"$id": url, "$ref": "sibling"}}, "$ref": url},
            {"$dynamicRef": url},
            {"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": url},
            {"$ref": "#/unknown", "unknown": {"$ref": url}},
        ):
            refusal(schema)
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a~1b%20c", "$defs": {"a/b c": {"type": "string"}}},
        {"$ref": "#here", "$defs": {"a": {"$anchor": "here", "type": "string"}}},
        {"$ref": "urn:example:name", "$defs": {"a": {"$id": "urn:example:name", "type": "string"}}},
        {"$id": "https://example.com/x/a", "$ref": "b", "$defs": {"b": {"$id": "b", "type": "string"}}},
        {
            "$id": "https://example.com/x/a",
            "$ref": "sub/b#/$defs/c",
            "$defs": {"b": {"$id": "sub/b", "$defs": {"c": {"$ref": "d"}, "d": {"$id": "d", "type": "string"}}}},
        },
        {"$ref": "#/kept/elsewhere", "kept": {"elsewhere": {"type": "string"}}},
    ],
)
def test_a_reference_inside_the_schema_is_followed(schema: dict[str, Any]) -> None:
    compile_schema(schema).validate("text")
    assert "is not of type" in failure(schema, 1).message


def test_what_only_looks_like_a_reference_is_data() -> None:
    data = {"$ref": "http://example.com/x"}
    compile_schema({"const": data, "default": data, "examples": [data], "enum": [data]}).validate(data)
    compile_schema({"properties": {"$ref": {"type": "string"}}}).validate(data)


# Patterns


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|aa)*$", "^(.*a){20}$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_a_catastrophic_pattern_costs_linear_time(pattern: str) -> None:
    with within(5):
        assert "does not match" in failure({"pattern": pattern}, "a" * 50_000 + "!\n").message
        assert failure({"patternProperties": {pattern: False}, "required": ["b"]}, {"a" * 50_000 + "!": 1})


@pytest.mark.parametrize("pattern", ["(?=a)b", "(?<!a)b", r"(a)\1", "(", "[z-a]", "(a{1,1000}){1,1000}", "^.{1,5000}$"])
@pytest.mark.parametrize("keyword", ["pattern", "patternProperties"])
def test_a_pattern_that_cannot_be_run_is_refused(keyword: str, pattern: str) -> None:
    schema = {"properties": {"p": {keyword: pattern if keyword == "pattern" else {pattern: {}}}}}
    with within(5):
        error = refusal(schema)
    assert error.message.startswith(f"schema.properties.p.{keyword}")
    assert "looks around or back" in error.message


def test_a_schema_has_a_bounded_number_of_patterns() -> None:
    properties = {f"p{n}": {"pattern": f"^a{n}$"} for n in range(MAX_PATTERNS)}
    compile_schema({"properties": properties})
    error = refusal({"properties": properties, "patternProperties": {"^b": {}}})
    assert error.message == "schema: has 501 patterns; 500 are allowed."


def test_the_patterns_of_a_schema_are_bounded_in_what_they_take_together() -> None:
    texts = {f"p{n}": {"type": "string", "pattern": "^.{1,255}$"} for n in range(16)}
    compile_schema({"properties": texts})
    with within(5):
        error = refusal({"properties": {f"p{n}": {"pattern": f"^.{{1,255}}{n}$"} for n in range(400)}})
    assert "patterns that are too large together" in error.message


@pytest.mark.parametrize("pattern", [r"^\w[\w.-]{0,63}$", r"^.{1,255}$", r"^\d{4}-\d{2}$", r"^\p{L}+$"])
def test_everyday_patterns_can_be_run(pattern: str) -> None:
    compile_schema({"pattern": pattern})


# Size and depth


def test_a_schema_is_bounded_in_nesting() -> None:
    def negations(levels: int) -> dict[str, Any]:
        schema: dict[str, Any] = {}
        for _ in range(levels):
            schema = {"not": schema}
        return schema

    compile_schema(negations(MAX_SCHEMA_NESTING - 1))
    assert "levels deep" in refusal(negations(MAX_SCHEMA_NESTING + 1)).message
    assert "levels deep" in refusal(negations(100_000)).message


def test_a_schema_is_bounded_in_bytes() -> None:
    compile_schema({"description": "x" * (MAX_SCHEMA_BYTES - 100)})
    assert "bytes of JSON" in refusal({"description": "x" * MAX_SCHEMA_BYTES}).message


def test_a_schema_is_bounded_in_parts() -> None:
    assert "parts" in refusal({"prefixItems": [{}] * MAX_SCHEMA_PARTS}).message


@pytest.mark.parametrize("keyword", ["anyOf", "allOf", "oneOf"])
@pytest.mark.parametrize("more", [{}, {"properties": {"a": {"$ref": "#"}}}], ids=["finite", "recursive"])
@pytest.mark.parametrize("levels", [13, 30, 60])
def test_definitions_that_double_are_refused(keyword: str, more: dict[str, Any], levels: int) -> None:
    with within(5):
        assert "once its references are written out" in refusal(doubling(levels, keyword, **more)).message


def test_definitions_that_double_below_each_other_are_refused() -> None:
    links = {f"d{n}": {"properties": {"a": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2}}} for n in range(30)}
    assert "written out" in refusal({"$ref": "#/$defs/d0", "$defs": {**links, "d30": {"$ref": "#"}}}).message


@pytest.mark.parametrize("keyword", ["anyOf", "allOf", "oneOf"])
def test_what_is_just_within_the_bounds_answers_soon(keyword: str) -> None:
    for more, value in itertools.product(({}, {"properties": {"a": {"$ref": "#"}}}), (1, nested(2), nested(60))):
        with within(5):
            assert failure(doubling(10, keyword, **more), value)


def test_a_chain_of_references_may_be_long() -> None:
    assert "is not of type" in failure(chain(90), 1).message


@pytest.mark.parametrize("levels", [100, 1_000])
@pytest.mark.parametrize(
    "schema",
    [
        lambda levels: chain(levels),
        lambda levels: chain(levels, "anyOf", unevaluatedProperties=False),
        lambda levels: chain(levels, "oneOf", properties={"a": {"$ref": "#"}}),
    ],
)
def test_a_chain_that_would_exhaust_the_stack_is_refused_before_it_is_compiled(schema: Any, levels: int) -> None:
    """Each level is a call in the library, and at some thousands of them the process would end."""
    with within(5):
        assert "nested more than 200 levels deep once its references are written out" in refusal(schema(levels)).message


def test_the_deepest_schema_and_the_deepest_input_leave_stack_enough() -> None:
    leaf = {"properties": {"a": {"$ref": "#"}}, "required": ["a"]}
    for keyword in ("allOf", "anyOf", "oneOf"):
        links = {f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}]} for n in range(97)}
        schema = {"$ref": "#/$defs/d0", "$defs": {**links, "d97": leaf}}
        assert failure(schema, nested(250, {})).message.startswith("input")
        compile_schema(schema).validate(nested(250, 1))


def test_lists_are_counted_as_often_as_they_are_referred_to() -> None:
    """Each reference is a copy in memory: a page of them makes gigabytes."""
    schema = {"$defs": {"e": {"enum": list(range(10_000))}}, "items": {"anyOf": [{"$ref": "#/$defs/e"}] * 21}}
    with within(5):
        assert "lists more than 200000 names and values" in refusal(schema).message
    schema["items"]["anyOf"].pop()
    schema["items"]["anyOf"].pop()
    compile_schema(schema)


# What is done at once


def typical_order(lines: int) -> tuple[dict[str, Any], dict[str, Any]]:
    line = {
        "type": "object",
        "properties": {
            "sku": {"type": "string", "pattern": r"^[A-Z]{2}-\d+$"},
            "quantity": {"type": "integer", "minimum": 1},
            "currency": {"enum": ["EUR", "USD", "GBP"]},
        },
        "required": ["sku"],
    }
    schema = {"properties": {"user": {"pattern": "^[a-z0-9-]{1,64}$"}, "lines": {"items": line}}, "required": ["user"]}
    return schema, {"user": "u-1", "lines": [{"sku": "AB-12", "quantity": 2, "currency": "EUR"}] * lines}


def test_an_ordinary_input_is_checked_at_once() -> None:
    schema, value = typical_order(100)
    assert compile_schema(schema).validate_at_once(value)
    value["lines"] = [{"sku": "AB-12", "quantity": 0}]
    with pytest.raises(InputValidationFailed, match=r"^input\.lines\.0\.quantity: 0 is less than the minimum of 1$"):
        compile_schema(schema).validate_at_once(value)


LETTERS = "ab" * 100_000
PAIRS_THAT_MAY_TAKE_LONG: list[tuple[dict[str, Any], Any]] = [
    ({"pattern": "[ab]*a[ab]{1000}c"}, LETTERS),
    ({"patternProperties": {"[ab]*a[ab]{1000}c": {}}}, {LETTERS: 1}),
    ({"propertyNames": {"pattern": "[ab]*a[ab]{1000}c"}}, {LETTERS: 1}),
    ({"items": {"enum": [f"x{n}" for n in range(10_000)]}}, ["y"] * 10_000),
    ({"items": {"multipleOf": 1e-308}}, [1.7e308] * 10_000),
    ({"items": {"anyOf": [{"minimum": n} for n in range(2, 3_000)]}}, [1] * 10_000),
    (
        {"anyOf": [{"properties": {f"q{n}": {}}} for n in range(1000)], "unevaluatedProperties": {}},
        {f"p{n}": 1 for n in range(5_000)},
    ),
]


@pytest.mark.parametrize(("schema", "value"), PAIRS_THAT_MAY_TAKE_LONG)
def test_what_may_take_long_is_not_begun_at_once(schema: dict[str, Any], value: Any) -> None:
    compiled = compile_schema(schema)
    with within(0.5):
        assert not compiled.validate_at_once(value)


def test_a_small_input_that_takes_long_to_explain_is_not_explained_at_once() -> None:
    schema = {"properties": {"a": {"enum": [f"x{n}" for n in range(5_000)]}}}
    assert compile_schema(schema).validate_at_once({"a": "x1"})
    assert not compile_schema(schema).validate_at_once({"a": "y"})
    assert failure(schema, {"a": "y"}).field == "input.a"


def below(levels: int, schema: dict[str, Any]) -> dict[str, Any]:
    for _ in range(levels):
        schema = {"anyOf": [schema], "unevaluatedProperties": {}}
    return schema


def test_what_is_gone_through_again_at_each_level_is_counted_so() -> None:
    once, often = (compile_schema(below(levels, {"properties": {"a": {}}})) for levels in (1, 12))
    assert once.validate_at_once({"a": 1})
    assert not often.validate_at_once({"a": 1})


# Recursion


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"not": {"not": {"$ref": "#"}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}},
        {"$dynamicAnchor": "x", "anyOf": [{"$dynamicRef": "#x"}]},
    ],
)
def test_a_reference_that_leads_nowhere_but_to_itself_ends(schema: dict[str, Any]) -> None:
    compiled = compile_schema(schema)
    try:
        compiled.validate({"a": 1})
    except InputValidationFailed:
        pass  # what such a schema means is anybody's guess; that there is an answer is the point


def test_a_recursive_schema_reaches_deep() -> None:
    tree = {"type": "object", "properties": {"a": {"$ref": "#"}}}
    compile_schema(tree).validate(nested(200, {}))
    error = failure(tree, nested(40, "leaf"))
    assert error.message.endswith('a.a: "leaf" is not of type "object"')


@pytest.mark.parametrize("levels", [255, 1_000, 100_000])
def test_a_bottomless_input_is_refused(levels: int) -> None:
    for schema in ({"properties": {"a": {"$ref": "#"}}}, {}, {"const": 1}):
        assert "nested at most 254 levels" in failure(schema, nested(levels)).message


@pytest.mark.parametrize("keyword", ["anyOf", "allOf", "oneOf"])
def test_recursion_that_doubles_answers_soon(keyword: str) -> None:
    schema = {"type": "object", "properties": {"a": {keyword: [{"$ref": "#"}, {"$ref": "#"}]}}}
    for levels in (3, 20, 100, 250):
        with within(5):
            assert failure(schema, nested(levels)).message.startswith("input")


def test_a_union_of_many_kinds_may_recur() -> None:
    kinds = {
        f"kind{n}": {
            "type": "object",
            "properties": {"kind": {"const": n}, "children": {"items": {"$ref": "#/$defs/node"}}},
            "required": ["kind"],
        }
        for n in range(20)
    }
    union = {"node": {"oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in kinds]}}
    schema = {"$ref": "#/$defs/node", "$defs": {**union, **kinds}}
    compile_schema(schema).validate({"kind": 0, "children": [{"kind": 1, "children": [{"kind": 2}]}] * 1000})
    assert "'oneOf'" in failure(schema, {"kind": 99}).message


def test_a_large_input_full_of_faults_answers_soon() -> None:
    with within(5):
        error = failure({"items": {"anyOf": [{"minLength": n} for n in range(2, 20)]}}, ["a"] * 100_000)
    assert error.field == "input.0"


def test_a_large_input_for_a_large_schema_is_refused() -> None:
    schema = {"items": {"allOf": [{"minimum": n} for n in range(5000)]}}
    assert "too large" in failure(schema, [1] * 100_000).message
