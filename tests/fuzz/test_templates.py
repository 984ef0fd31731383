"""Templates and masks, whatever strangers write: only declared errors, no change of type, no way out, no secret shown."""

from __future__ import annotations

import base64
import binascii
import html
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus, urlsplit

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from taskexecutor_common.endpoint_types.base import InvalidDestination
from taskexecutor_common.endpoint_types.registry import kind_of
from taskexecutor_common.errors import InvalidRequest, TemplateResolutionFailed
from taskexecutor_common.masking import MASK, Mask
from taskexecutor_common.model.endpoint import EndpointType
from taskexecutor_common.templates import TemplateError, as_text, compile_template
from tests.fuzz.bounds import bounded
from tests.fuzz.json_values import json_of, numbers, plain_values, texts
from tests.fuzz.trying import attempt

# Pieces of templates, right and wrong: put together they make nearly-right ones.
_NAMES = ("a", "b", "0", "-1", "x-y", "ö")
_pieces = st.sampled_from(
    ["{{", "}}", "{", "}", " ", ".", "\t", "\n", "input", "config", "secret", "execution.id", "job.version", "input.a"]
) | st.sampled_from([f"{{{{{n}.{k}}}}}" for n in ("input", "config", "secret", "execution", "nope") for k in _NAMES])
template_texts = st.lists(_pieces | texts, max_size=6).map("".join)
scopes = st.fixed_dictionaries(
    {
        "input": st.dictionaries(st.sampled_from(_NAMES), plain_values, max_size=3),
        "config": st.dictionaries(st.sampled_from(_NAMES), plain_values, max_size=3),
        "secret": st.dictionaries(st.sampled_from(_NAMES), texts, max_size=3),
        "execution": st.just({"id": "exec_1", "attempt": 1, "scheduled_at": "2026-01-01T00:00:00Z"}),
        "job": st.just({"id": "job_1", "version": 1}),
    }
)
_REFUSALS = (InvalidRequest, TemplateResolutionFailed)


# --- templates ---


@bounded(100)
@given(json_of(template_texts | numbers | st.none(), template_texts), scopes)
def test_any_json_is_a_template_or_refused_and_renders_or_says_what_is_missing(value: Any, scope: Any) -> None:
    before = json.dumps(value)
    template, refusal = attempt(lambda: compile_template(value, field="spec.body_template"), *_REFUSALS)
    if refusal:
        assert refusal.message.startswith("spec.body_template")
        return
    rendered, missing = attempt(lambda: template.render(scope), TemplateError)
    if missing:
        assert missing.placeholder in [placeholder.text for placeholder in template.placeholders]
        return
    assert json.dumps(value) == before
    assert _shape(rendered, value) == _shape(value, value)
    assert template.is_constant is ("{{" not in before)
    assert not template.is_constant or rendered == value


def _shape(value: Any, like: Any) -> Any:
    """The containers of `like` in `value`: rendering changes leaves alone."""
    if isinstance(like, dict):
        return [(key, _shape(value[key], item)) for key, item in like.items()] if value.keys() == like.keys() else None
    if isinstance(like, list):
        return [_shape(v, item) for v, item in zip(value, like, strict=True)]
    return ()


@bounded(60)
@given(st.lists(st.tuples(texts, plain_values), max_size=4), texts)
def test_a_text_is_rendered_as_its_pieces_read(pieces: list[tuple[str, Any]], end: str) -> None:
    text = "".join(f"{before}{{{{input.v{n}}}}}" for n, (before, _) in enumerate(pieces)) + end
    assume(text.count("{{") == len(pieces))
    assume(all(not before.endswith("{") for before, _ in pieces))
    values = {f"v{n}": value for n, (_, value) in enumerate(pieces)}
    rendered = compile_template(text, field="f").render_text({"input": values})
    assert rendered == "".join(before + as_text(value) for before, value in pieces) + end


@bounded(60)
@given(st.lists(st.sampled_from(["a", "b", "0", "1"]), max_size=4), plain_values, st.sampled_from(["", " ", "\t "]))
def test_a_lone_placeholder_gives_what_lies_at_its_path_in_its_own_type(way: list[str], value: Any, blank: str) -> None:
    held = value
    for step in reversed(way):
        held = [0] * int(step) + [held] if step.isdigit() and len(way) % 2 else {step: held}
    path = ".".join(["input", "root", *way])
    rendered = compile_template(f"{{{{{blank}{path}{blank}}}}}", field="f").render({"input": {"root": held}})
    assert rendered is value


# --- what endpoints make of them ---

_SPEC_FIELDS = {
    EndpointType.HTTP: ["url", "method", "headers", "body_template", "timeout_ms", "expected_status_codes"],
    EndpointType.KAFKA: ["bootstrap_servers", "topic", "key_template", "value_template", "headers", "acks"],
    EndpointType.REDIS_STREAM: ["redis_url", "stream", "fields_template", "max_len", "approximate_trimming"],
}
_NEARLY: dict[EndpointType, dict[str, Any]] = {
    EndpointType.HTTP: {"url": "http://a/{{input.a}}", "method": "POST"},
    EndpointType.KAFKA: {"bootstrap_servers": "a:1", "topic": "t", "value_template": {}},
    EndpointType.REDIS_STREAM: {"redis_url": "redis://a", "stream": "s", "fields_template": {"a": "b"}},
}


@bounded(60)
@given(st.data(), st.sampled_from(list(_SPEC_FIELDS)), scopes)
def test_any_spec_is_taken_or_refused_and_renders_or_says_why_not(data: Any, kind: EndpointType, scope: Any) -> None:
    anything = json_of(template_texts | numbers | st.none() | st.booleans(), template_texts)
    drawn = data.draw(st.dictionaries(st.sampled_from(_SPEC_FIELDS[kind]) | texts, anything, max_size=3))
    compiled, refusal = attempt(lambda: kind_of(kind).compile({**_NEARLY[kind], **drawn}), *_REFUSALS)
    if refusal:
        assert refusal.message.startswith("spec")
        return
    request, _ = attempt(lambda: compiled.render(scope), TemplateError, InvalidDestination)
    if request:
        json.dumps(kind_of(kind).describe(request), allow_nan=False)


@bounded(60)
@given(texts, texts, texts)
def test_an_input_leaves_neither_its_place_in_a_url_nor_its_header(before: str, value: str, name: str) -> None:
    """What is put into a path stays one segment of that host; what is put into a header stays one line."""
    spec = {
        "url": "https://host.example:8443/before/{{input.v}}/after?q={{input.v}}#{{input.v}}",
        "method": "GET",
        "headers": {"X-A": "{{input.v}}", "X-B": "b"},
    }
    compiled = kind_of(EndpointType.HTTP).compile(spec)
    request, refusal = attempt(lambda: compiled.render({"input": {"v": before + value + name}}), InvalidDestination)
    if refusal:
        return
    parts = urlsplit(request.url)
    assert (parts.scheme, parts.netloc) == ("https", "host.example:8443")
    first, *middle, last = parts.path.split("/")[1:]
    assert (first, len(middle), last) == ("before", 1, "after")
    assert [name for name, _ in request.headers] == ["X-A", "X-B"]
    assert all(char.isprintable() or char in "\t" or ord(char) > 127 for _, text in request.headers for char in text)


# --- masks ---

# What may stand anywhere by chance tells nothing: the mask's own sign, and what is shorter than a word.
secrets_ = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="*\x00"), min_size=6, max_size=20)
_AS_WRITTEN: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in a URL": quote,
    "in a form": quote_plus,
    "in JSON": lambda secret: json.dumps(secret)[1:-1],
    "in readable JSON": lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1],
    "in HTML": html.escape,
}


def strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item)


@pytest.mark.parametrize("written", _AS_WRITTEN)
@bounded(20)
@given(secret=secrets_, others=st.lists(secrets_, max_size=2), data=st.data())
def test_a_secret_is_masked_wherever_it_stands(written: str, secret: str, others: list[str], data: Any) -> None:
    form = _AS_WRITTEN[written](secret)
    around = st.tuples(texts, texts).map(lambda pair: pair[0] + form + pair[1])
    value = data.draw(json_of(around | texts | st.just(form), around | texts))
    masked = Mask([secret, *others]).value(value)
    assert not any(form in text or secret in text for text in strings_in(masked))
    if any(form in text for text in strings_in(value)):
        assert any(MASK in text for text in strings_in(masked))


@bounded(60)
@given(secret=secrets_, before=st.binary(max_size=8), after=st.binary(max_size=8), url_safe=st.booleans())
def test_a_secret_is_masked_inside_base64(secret: str, before: bytes, after: bytes, url_safe: bool) -> None:
    encode = base64.urlsafe_b64encode if url_safe else base64.b64encode
    text = encode(before + secret.encode() + after).decode()
    masked = Mask([secret]).text(f"body: {text}")
    assert MASK in masked
    for piece in masked.removeprefix("body: ").split(MASK):
        for shift in range(4):  # whoever tries to read what is left may begin anywhere
            assert secret.encode() not in _decoded(piece[shift:])


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text[: len(text) // 4 * 4], altchars=b"-_")
    except binascii.Error:
        return b""


@bounded(40)
@given(st.lists(secrets_ | st.sampled_from(["a", "1", "true", "null", "***", "{", '"']), max_size=4), plain_values)
def test_a_mask_never_fails_and_without_secrets_changes_nothing(known: list[str], value: Any) -> None:
    json.dumps(Mask(known).value(value), allow_nan=False)
    assert Mask([]).value(value) == value
