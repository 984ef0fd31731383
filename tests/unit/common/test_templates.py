"""Promises of the template engine."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskexecutor_common.errors import InvalidRequest, TemplateResolutionFailed
from taskexecutor_common.templates import Placeholder, TemplateError, as_text, compile_template

SCOPE: dict[str, Any] = {
    "input": {
        "name": "Ann",
        "whole": 3.0,
        "half": 12.5,
        "yes": True,
        "nothing": None,
        "user": {"id": 7},
        "items": [{"sku": "a-1"}, {"sku": "b-2"}],
        "größe-1": "XL",
    },
    "config": {"base": "https://example.com"},
    "secret": {"key": "s3cret-value"},
    "execution": {"id": "exec_1", "attempt": 2, "scheduled_at": "2026-01-01T00:00:00Z"},
    "job": {"id": "job_1", "version": 1},
}

texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="{"))
numbers = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(texts, children, max_size=4),
    max_leaves=12,
)


def render(value: Any, scope: dict[str, Any] = SCOPE) -> Any:
    return compile_template(value, field="spec.body_template").render(scope)


@given(json_values)
def test_json_without_opening_braces_renders_to_itself(value: Any) -> None:
    template = compile_template(value, field="spec.body_template")
    assert template.is_constant
    assert template.placeholders == ()
    assert template.render({}) is value


@given(json_values)
def test_a_lone_placeholder_keeps_the_type_of_any_value(value: Any) -> None:
    assert render("{{input.x}}", {"input": {"x": value}}) is value


@given(texts, st.text(st.characters(exclude_categories=("Cs",))), texts)
def test_text_around_and_inside_placeholders_comes_out_as_it_is(before: str, value: str, after: str) -> None:
    rendered = render(f"{before}{{{{input.x}}}}{after}", {"input": {"x": value}})
    assert rendered == before + value + after


@given(json_values.filter(lambda value: not isinstance(value, str)))
def test_what_is_no_string_stands_in_text_as_json(value: Any) -> None:
    assert orjson.loads(render("{{input.x}} ", {"input": {"x": value}})) == value


@pytest.mark.parametrize("value", ["{{secret.key}}", "a {{secret.key}} b", "{{", "{{foo.bar}}"])
def test_filled_in_values_are_never_scanned_again(value: str) -> None:
    scope = {**SCOPE, "input": {"x": value, "open": "{{", "rest": "secret.key}}"}}
    assert render("{{input.x}}", scope) == value
    assert render({"a": ["<{{input.x}}>"]}, scope) == {"a": [f"<{value}>"]}
    assert render("{{input.open}}{{input.rest}}", scope) == "{{secret.key}}"
    assert compile_template("-{{input.x}}", field="f").render_text(scope, lambda _, text: text) == f"-{value}"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("n={{input.whole}}", "n=3"),
        ("n={{input.half}}", "n=12.5"),
        ("b={{input.yes}}", "b=true"),
        ("z={{input.nothing}}", "z=null"),
        ("o={{input.user}}", 'o={"id":7}'),
        ("a={{input.items}}", 'a=[{"sku":"a-1"},{"sku":"b-2"}]'),
        ("{{input.name}}{{input.whole}}", "Ann3"),
    ],
)
def test_values_inside_text_are_written_as_json_prints_them(template: str, expected: str) -> None:
    assert render(template) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{input.items.1.sku}}", "b-2"),
        ("{{ input.user.id\t}}", 7),
        ("{{input.größe-1}}", "XL"),
        ("{{execution.attempt}}", 2),
        ("{{job.version}}", 1),
    ],
)
def test_paths_reach_into_objects_and_arrays(template: str, expected: Any) -> None:
    assert render(template) == expected


def test_a_number_names_a_key_of_an_object_too() -> None:
    assert render("{{input.0}}", {"input": {"0": "zero"}}) == "zero"


def test_rendering_keeps_the_order_of_keys_and_the_constant_parts() -> None:
    value = {"a": "{{input.name}}", "b": {"c": [1, "x"]}, "d": [0, "{{input.whole}}", "y"]}
    rendered = render(value)
    assert list(rendered) == ["a", "b", "d"]
    assert rendered == {"a": "Ann", "b": {"c": [1, "x"]}, "d": [0, 3.0, "y"]}


def test_rendering_leaves_the_template_as_it_was() -> None:
    value = {"a": ["{{input.x}}"]}
    template = compile_template(value, field="f")
    assert template.render({"input": {"x": 1}}) == {"a": [1]}
    assert template.render({"input": {"x": 2}}) == {"a": [2]}
    assert value == {"a": ["{{input.x}}"]}


def test_single_braces_and_closing_braces_are_plain_text() -> None:
    assert render('{"a":{"b":{{input.whole}}}} {x}') == '{"a":{"b":3}} {x}'


def test_placeholders_are_listed_once_each_in_order() -> None:
    template = compile_template(["{{ config.b }}", "{{input.a.0}} {{config.b}}"], field="f")
    assert template.placeholders == (
        Placeholder("config", ("b",), "config.b"),
        Placeholder("input", ("a", "0"), "input.a.0"),
    )
    assert not template.is_constant


def test_escape_sees_placeholders_only() -> None:
    template = compile_template("a b/{{input.name}}/{{config.base}}", field="f")
    seen = template.render_text(SCOPE, lambda placeholder, text: f"<{placeholder.namespace}:{text}>")
    assert seen == "a b/<input:Ann>/<config:https://example.com>"


@pytest.mark.parametrize(("value", "text"), [(5, "5"), ("x", "x"), ({"a": "{{input.name}}"}, '{"a":"Ann"}')])
def test_anything_can_be_rendered_as_text(value: Any, text: str) -> None:
    assert compile_template(value, field="f").render_text(SCOPE) == text


@pytest.mark.parametrize(
    "text",
    [
        "{{",
        "a {{ b",
        "{{input.a",
        "{{input.a}",
        "{{}}",
        "{{ }}",
        "{{input}}",
        "{{input.}}",
        "{{.a}}",
        "{{input..a}}",
        "{{input.a b}}",
        "{{input.a|upper}}",
        "{{input.a['b']}}",
        "{{{input.a}}}",
        "{{input.{{input.a}}}}",
        "{{input.a\n}}",
        "{{input." + "a" * 600 + "}}",
    ],
)
def test_what_is_no_placeholder_is_refused_naming_the_field(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        compile_template({"list": [1, {"deep": text}]}, field="spec.body_template")
    assert caught.value.field == "spec.body_template.list.1.deep"
    assert caught.value.message.startswith("spec.body_template.list.1.deep: ")
    assert len(caught.value.message) < 600


def test_placeholders_in_keys_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="keys are not templates"):
        compile_template({"{{input.a}}": 1}, field="spec.body_template")


@pytest.mark.parametrize(
    "text",
    ["{{foo.bar}}", "{{Input.a}}", "{{execution.status}}", "{{execution.id.x}}", "{{job.name}}", "{{secret.a.b}}"],
)
def test_an_unknown_namespace_or_fixed_path_fails_when_compiled(text: str) -> None:
    with pytest.raises(TemplateResolutionFailed) as caught:
        compile_template(f"Bearer {text}", field="spec.headers.Authorization")
    assert text in caught.value.message
    assert caught.value.field == "spec.headers.Authorization"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("input.missing", "{{input.missing}}: 'input' has no 'missing'"),
        ("input.user.name", "{{input.user.name}}: 'user' has no 'name'"),
        ("input.name.first", "{{input.name.first}}: 'name' has no 'first'"),
        ("input.nothing.x", "{{input.nothing.x}}: 'nothing' has no 'x'"),
        ("input.items.2", "{{input.items.2}}: 'items' has no '2'"),
        ("input.items.-1", "{{input.items.-1}}: 'items' has no '-1'"),
        ("input.items.sku", "{{input.items.sku}}: 'items' has no 'sku'"),
        ("input.items.00", "{{input.items.00}}: 'items' has no '00'"),
        ("secret.gone", "{{secret.gone}}: 'secret' has no 'gone'"),
    ],
)
def test_what_is_not_there_is_named(path: str, message: str) -> None:
    with pytest.raises(TemplateError) as caught:
        render(f"{{{{{path}}}}}")
    assert str(caught.value) == message
    assert caught.value.placeholder == path
    assert caught.value.__suppress_context__, "the failed look-up must not travel along"


def test_a_namespace_that_the_scope_lacks_is_named() -> None:
    with pytest.raises(TemplateError, match="the scope has no 'config'"):
        render("{{config.a}}", {"input": {}})


@pytest.mark.parametrize(("number", "text"), [(3.0, "3"), (-0.0, "0"), (2.0**53, "9007199254740992.0"), (0.1, "0.1")])
def test_floats_lose_their_point_only_where_that_is_exact(number: float, text: str) -> None:
    assert as_text(number) == text
