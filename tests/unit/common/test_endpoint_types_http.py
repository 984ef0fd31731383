"""Promises of the HTTP endpoint's shape."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskexecutor_common.endpoint_types.base import InvalidDestination
from taskexecutor_common.endpoint_types.http import HttpKind, HttpRequest
from taskexecutor_common.errors import InvalidRequest, TaskExecutorError, TemplateResolutionFailed
from taskexecutor_common.templates import TemplateError

KIND = HttpKind()
EXAMPLE: dict[str, Any] = {
    "url": "{{config.api_base_url}}/emails/welcome",
    "method": "POST",
    "headers": {"Authorization": "Bearer {{secret.email_api_key}}", "Content-Type": "application/json"},
    "body_template": {"user_id": "{{input.user_id}}", "sender": "{{config.sender}}"},
    "timeout_ms": 5000,
    "expected_status_codes": [200, 201, 202, 204],
}
SCOPE: dict[str, Any] = {
    "input": {"user_id": 42},
    "config": {"api_base_url": "https://api.example.com", "sender": "hello@example.com"},
    "secret": {"email_api_key": "k3y"},
    "execution": {"id": "exec_1", "attempt": 1, "scheduled_at": "2026-01-01T00:00:00+00:00"},
    "job": {"id": "job_1", "version": 1},
}


def spec(**changes: Any) -> dict[str, Any]:
    return {"url": "https://example.com/", "method": "POST", **changes}


def render(changes: dict[str, Any], **scope: Any) -> HttpRequest:
    return KIND.compile(spec(**changes)).render({**SCOPE, **scope})


def refusal(changes: dict[str, Any]) -> TaskExecutorError:
    with pytest.raises(InvalidRequest) as caught:
        KIND.compile(spec(**changes))
    error = caught.value
    assert error.field is not None
    assert error.message.startswith(f"{error.field}: ")
    return error


def test_the_contracts_example_renders() -> None:
    compiled = KIND.compile(EXAMPLE)
    request = compiled.render(SCOPE)
    assert compiled.timeout_ms == 5000
    assert request.method == "POST"
    assert request.url == "https://api.example.com/emails/welcome"
    assert request.headers == (("Authorization", "Bearer k3y"), ("Content-Type", "application/json"))
    assert request.body == b'{"user_id":42,"sender":"hello@example.com"}'
    assert request.expected_status_codes == {200, 201, 202, 204}
    assert request.signing_secret is None


def test_all_placeholders_of_a_spec_are_listed() -> None:
    compiled = KIND.compile({**EXAMPLE, "signing_secret": "{{secret.signing}}"})
    assert [placeholder.text for placeholder in compiled.placeholders] == [
        "config.api_base_url",
        "secret.email_api_key",
        "input.user_id",
        "config.sender",
        "secret.signing",
    ]


def test_what_is_absent_or_null_takes_its_default() -> None:
    compiled = KIND.compile(spec(headers=None, body_template=None, timeout_ms=None, signing_secret=None))
    request = compiled.render(SCOPE)
    assert compiled.timeout_ms == 30_000
    assert request.expected_status_codes == {200, 201, 202, 204}
    assert request.headers == ()
    assert request.body is None


def test_whole_numbers_may_arrive_as_doubles() -> None:
    compiled = KIND.compile(spec(timeout_ms=900000.0, expected_status_codes=[404.0]))
    assert (compiled.timeout_ms, compiled.expected_status_codes) == (900_000, {404})


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"url": None}, "spec.url"),
        ({"url": ""}, "spec.url"),
        ({"url": 5}, "spec.url"),
        ({"method": "HEAD"}, "spec.method"),
        ({"method": "post"}, "spec.method"),
        ({"headers": {"A": 1}}, "spec.headers.A"),
        ({"headers": {"A": None}}, "spec.headers.A"),
        ({"headers": []}, "spec.headers"),
        ({"timeout_ms": 0}, "spec.timeout_ms"),
        ({"timeout_ms": 900_001}, "spec.timeout_ms"),
        ({"timeout_ms": 1.5}, "spec.timeout_ms"),
        ({"timeout_ms": True}, "spec.timeout_ms"),
        ({"timeout_ms": "5000"}, "spec.timeout_ms"),
        ({"expected_status_codes": []}, "spec.expected_status_codes"),
        ({"expected_status_codes": [200, 99]}, "spec.expected_status_codes.1"),
        ({"expected_status_codes": [600]}, "spec.expected_status_codes.0"),
        ({"signing_secret": "not base64!"}, "spec.signing_secret"),
        ({"body": {}}, "spec.body"),
        ({"body_template": {"a": ["{{"]}}, "spec.body_template.a.0"),
        ({"headers": {"A": "{{input}}"}}, "spec.headers.A"),
    ],
)
def test_a_bad_field_is_refused_by_name(changes: dict[str, Any], field: str) -> None:
    assert refusal(changes).field == field


def test_messages_say_what_would_be_right() -> None:
    assert refusal({"timeout_ms": 0}).message == "spec.timeout_ms: should be greater than or equal to 1"
    assert refusal({"url": None}).message == "spec.url: is required"
    assert "the fields are url, method, headers" in refusal({"typo": 1}).message


def test_messages_stay_short_whatever_was_sent() -> None:
    assert len(refusal({"x" * 100_000: 1}).message) < 500
    assert len(refusal({"headers": {"é" * 100_000: "a"}}).message) < 500


def test_an_unknown_namespace_is_told_apart_from_a_bad_field() -> None:
    with pytest.raises(TemplateResolutionFailed, match=r"\{\{env\.KEY\}\}"):
        KIND.compile(spec(headers={"A": "{{env.KEY}}"}))


def test_what_the_input_lacks_is_named() -> None:
    with pytest.raises(TemplateError, match=r"\{\{input\.gone\}\}"):
        render({"body_template": "{{input.gone}}"})


# --- the URL


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/",
        "ftp://{{config.host}}/",
        "example.com/{{input.id}}",
        "javascript:{{input.id}}",
        "https://",
        "https:///path",
        "https://exa mple.com/",
        "https://example.com/\n",
        "https://example.com/\x00",
        "https://example.com\\@evil.example/",
        "https://[::1/",
        "https://example.com:port/",
        "https://example.com/a/../b",
        "https://example.com/a/%2E%2e/b",
        "{{input.callback}}",
        "{{input.scheme}}://example.com/",
    ],
)
def test_a_url_that_can_never_be_sent_is_refused_at_once(url: str) -> None:
    assert refusal({"url": url}).field == "spec.url"


@pytest.mark.parametrize(
    "url",
    [
        "HTTP://Example.com:8080/a?b=c#d",
        "http://[::1]:80/",
        "https://user:password@example.com/",
        "h{{config.rest}}",
        "https{{config.rest}}",
        "https://{{config.host}}/",
        "{{config.base}}/{{input.id}}",
        "{{secret.hook_url}}",
    ],
)
def test_a_url_that_may_come_out_right_is_taken(url: str) -> None:
    KIND.compile(spec(url=url))


@pytest.mark.parametrize(
    "base",
    ["", "ftp://example.com", "https://", "//example.com", "https://exa mple.com", "https://example.com\r\nX: y", 7],
)
def test_a_rendered_url_that_cannot_be_sent_is_an_invalid_destination(base: Any) -> None:
    with pytest.raises(InvalidDestination, match=r"^spec\.url: "):
        render({"url": "{{config.base}}/x"}, config={"base": base})


@given(st.text(st.characters(exclude_categories=("Cs",))).filter(lambda text: text not in (".", "..")))
def test_input_never_leaves_its_place_in_a_url(value: str) -> None:
    request = render({"url": "https://example.com/users/{{input.id}}/mail?q={{input.id}}#f"}, input={"id": value})
    parts = urlsplit(request.url)
    assert (parts.scheme, parts.netloc, parts.fragment) == ("https", "example.com", "f")
    users, identity, mail = parts.path.split("/")[1:]
    assert (users, unquote(identity), mail) == ("users", value, "mail")
    assert unquote(parts.query.removeprefix("q=")) == value


@pytest.mark.parametrize("value", ["evil.example/", "a@evil.example", "evil.example#", "x:1", "a\\b"])
def test_input_cannot_bring_a_port_user_or_path_into_the_host(value: str) -> None:
    assert urlsplit(render({"url": "https://{{input.t}}.example.com/"}, input={"t": value}).url).netloc.endswith(
        ".example.com"
    )


@pytest.mark.parametrize(
    "url",
    [
        "https://{{input.host}}/",
        "https://{{input.host}}",
        "https://{{input.host}}:8080/a",
        "https://[{{input.ip}}]/",
        "https://example.com{{input.path}}",
        "https://user@{{input.host}}/",
        "https://user:{{input.password}}@{{input.host}}/",
        "https://example.com:80{{input.x}}@{{input.host}}/",
        "https://a.{{input.tld}}?x",
        "https://{{input.t}}{{input.u}}/.example.com",
        "https://{{config.sub}}{{input.host}}/",
        "{{config.base}}{{input.path}}",
        "{{config.base}}.{{input.path}}/x",
        "{{config.scheme}}://{{input.host}}/x",
        "http{{config.s}}://{{input.host}}/x",
    ],
)
def test_a_url_whose_host_an_input_would_choose_is_refused_at_once(url: str) -> None:
    refused = refusal({"url": url})
    assert refused.field == "spec.url"
    assert "must not let an input choose the host" in refused.message


@pytest.mark.parametrize(
    "url",
    [
        "https://{{input.t}}.example.com",
        "https://{{input.t}}.{{config.domain}}/",
        "https://{{input.a}}-{{input.b}}.example.com:8080/{{input.c}}",
        "https://{{input.user}}:{{input.password}}@example.com/",
        "https://example.com:{{input.port}}/",
        "https://{{config.host}}/{{input.x}}",
        "https://{{config.host}}:{{input.port}}/",
        "https://example.com?{{input.x}}",
        "https://example.com#{{input.x}}",
        "{{config.base}}/{{input.x}}",
        "{{config.base}}?u=https://{{input.x}}",
        "{{config.scheme}}://{{config.host}}/{{input.x}}",
        "https://{{execution.id}}.{{job.id}}/",
    ],
)
def test_a_url_whose_host_an_input_does_not_choose_is_taken(url: str) -> None:
    KIND.compile(spec(url=url))


@pytest.mark.parametrize("value", [".", ".."])
def test_input_cannot_climb_out_of_a_path(value: str) -> None:
    with pytest.raises(InvalidDestination, match="path"):
        render({"url": "https://example.com/users/{{input.id}}/mail"}, input={"id": value})


def test_config_and_secret_stand_in_a_url_as_they_are() -> None:
    request = render(
        {"url": "{{config.base}}?key={{secret.k}}"}, config={"base": "https://u:p@h/a"}, secret={"k": "a/b=c"}
    )
    assert request.url == "https://u:p@h/a?key=a/b=c"


def test_the_nominal_time_is_encoded_in_a_url() -> None:
    assert render({"url": "https://h/?at={{execution.scheduled_at}}"}).url.endswith(
        "at=2026-01-01T00%3A00%3A00%2B00%3A00"
    )


# --- headers


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "content-length",
        "Transfer-Encoding",
        "Connection",
        "Upgrade",
        "IDEMPOTENCY-KEY",
        "webhook-id",
        "Webhook-Signature",
        "traceparent",
    ],
)
def test_headers_of_the_delivery_itself_may_not_be_set(name: str) -> None:
    assert "may not be set here" in refusal({"headers": {name: "x"}}).message


@pytest.mark.parametrize("name", ["", "a b", "a:", "é", "a\r\nb", "{{input.a}}"])
def test_a_header_name_must_be_a_token(name: str) -> None:
    assert "is not a header name" in refusal({"headers": {name: "x"}}).message


def test_a_header_is_given_once_whatever_its_case() -> None:
    assert "given twice" in refusal({"headers": {"X-A": "1", "x-a": "2"}}).message


@pytest.mark.parametrize("bad", ["\r", "\n", "\x00", "\x1b", "\x7f"])
def test_control_characters_in_a_header_are_refused_wherever_they_come_from(bad: str) -> None:
    assert refusal({"headers": {"X-A": f"a{bad}b"}}).field == "spec.headers.X-A"
    assert refusal({"headers": {"X-A": f"{bad}{{{{input.a}}}}"}}).field == "spec.headers.X-A"
    with pytest.raises(InvalidDestination, match=r"^spec\.headers\.X-A: must hold no line breaks") as caught:
        render({"headers": {"X-A": "Bearer {{secret.k}}"}}, secret={"k": f"s3cret{bad}"})
    assert "s3cret" not in str(caught.value)


def test_tabs_and_other_alphabets_in_a_header_are_taken() -> None:
    assert render({"headers": {"X-A": "a\tß {{input.user_id}}"}}).headers == (("X-A", "a\tß 42"),)


# --- the body


@pytest.mark.parametrize(
    ("body_template", "body", "content_type"),
    [
        ({"a": "{{input.n}}"}, b'{"a":1.5}', "application/json"),
        ([], b"[]", "application/json"),
        (False, b"false", "application/json"),
        ("{{input.n}}", b"1.5", "application/json"),
        ("{{input.o}}", b'{"k":"v"}', "application/json"),
        ("{{input.nothing}}", b"null", "application/json"),
        ("{{input.s}}", "grüß".encode(), "text/plain; charset=utf-8"),
        ("n={{input.n}}", b"n=1.5", "text/plain; charset=utf-8"),
        ("", b"", "text/plain; charset=utf-8"),
    ],
)
def test_a_string_goes_out_as_text_and_the_rest_as_json(body_template: Any, body: bytes, content_type: str) -> None:
    given_input = {"n": 1.5, "o": {"k": "v"}, "s": "grüß", "nothing": None}
    request = render({"body_template": body_template}, input=given_input)
    assert request.body == body
    assert request.headers == (("Content-Type", content_type),)


def test_a_content_type_of_the_user_stands() -> None:
    request = render({"headers": {"content-type": "application/vnd.api+json"}, "body_template": {}})
    assert request.headers == (("content-type", "application/vnd.api+json"),)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_get_and_delete_may_have_a_body(method: str) -> None:
    assert render({"method": method, "body_template": {"a": 1}}).body == b'{"a":1}'


def test_a_body_nested_too_deep_is_an_invalid_destination() -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    with pytest.raises(InvalidDestination, match=r"^spec\.body_template: "):
        render({"body_template": "{{input.deep}}"}, input={"deep": deep})
    assert refusal({"body_template": deep}).field == "spec.body_template"


# --- signing and the preview


def test_a_signing_secret_is_rendered() -> None:
    request = render({"signing_secret": "{{secret.s}}"}, secret={"s": "whsec_c2lnbmluZyBrZXk="})
    assert request.signing_secret == "whsec_c2lnbmluZyBrZXk="


@pytest.mark.parametrize("bad", ["", "whsec_", "pass word", "ab-_", "a"])
def test_a_signing_secret_that_is_no_key_is_an_invalid_destination(bad: str) -> None:
    with pytest.raises(InvalidDestination, match=r"^spec\.signing_secret: "):
        render({"signing_secret": "{{secret.s}}"}, secret={"s": bad})


def test_a_preview_shows_what_would_be_sent() -> None:
    assert KIND.describe(KIND.compile(EXAMPLE).render(SCOPE)) == {
        "method": "POST",
        "url": "https://api.example.com/emails/welcome",
        "headers": {"Authorization": "Bearer k3y", "Content-Type": "application/json"},
        "body": {"user_id": 42, "sender": "hello@example.com"},
    }


def test_a_preview_without_body_has_none() -> None:
    assert "body" not in KIND.describe(render({"method": "GET"}))


def test_a_secret_of_digits_stays_text_in_a_preview_so_that_it_can_be_masked() -> None:
    headers = {"Content-Type": "application/json"}
    request = render({"headers": headers, "body_template": "{{secret.pin}}"}, secret={"pin": "1234"})
    assert KIND.describe(request)["body"] == "1234"


def test_a_request_shows_no_secret_in_its_repr() -> None:
    assert "k3y" not in repr(KIND.compile(EXAMPLE).render(SCOPE))
