"""The shape of HTTP endpoints: a method, a URL, headers and a body."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from taskexecutor_common.endpoint_types.base import Scope
from taskexecutor_common.endpoint_types.checked_spec import (
    NonEmptyText,
    Spec,
    TimeoutMs,
    WholeNumber,
    check_spec,
    refused,
)
from taskexecutor_common.endpoint_types.checked_text import CheckedText
from taskexecutor_common.endpoint_types.message_size import SizeBound
from taskexecutor_common.endpoint_types.payload import PayloadTemplate, describe_payload
from taskexecutor_common.endpoint_types.reserved_headers import carries_identity, frames_http
from taskexecutor_common.endpoint_types.urls import compile_url
from taskexecutor_common.model.endpoint import EndpointType
from taskexecutor_common.templates import Placeholder

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A token: RFC 9110, section 5.6.2."""

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # all but the tab
_JSON = ("Content-Type", "application/json")
_TEXT = ("Content-Type", "text/plain; charset=utf-8")
_SIGNING_PREFIX = "whsec_"

Status = Annotated[WholeNumber, Field(ge=100, le=599)]


class HttpSpec(Spec):
    """The fields of a spec of type HTTP; see Endpoint.Type in endpoint.proto."""

    url: NonEmptyText
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    headers: dict[str, str] = Field(default_factory=dict)
    body_template: Any = None
    timeout_ms: TimeoutMs = 30_000
    expected_status_codes: list[Status] = Field(default=[200, 201, 202, 204], min_length=1)
    signing_secret: NonEmptyText | None = None


@dataclass(frozen=True, slots=True, repr=False)
class HttpRequest:
    """What the user wants sent; the dispatcher adds the delivery's identity. No repr, since it holds secrets."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None
    expected_status_codes: frozenset[int]
    signing_secret: str | None
    """As Standard Webhooks writes it: base64, with or without `whsec_`. None: not signed."""
    body_is_json: bool = False


@dataclass(frozen=True, slots=True)
class CompiledHttpSpec:
    """A checked spec of type HTTP."""

    method: str
    url: CheckedText
    headers: tuple[tuple[str, CheckedText], ...]
    has_content_type: bool
    body: PayloadTemplate | None
    timeout_ms: int
    expected_status_codes: frozenset[int]
    signing_secret: CheckedText | None
    bound: SizeBound

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        """All placeholders, each once."""
        templates = (self.url, *(value for _, value in self.headers), self.body, self.signing_secret)
        return tuple(dict.fromkeys(p for template in templates if template for p in template.placeholders))

    def render(self, scope: Scope) -> HttpRequest:
        """Fills the templates. Raises TemplateError or InvalidDestination.

        A string body goes out as that text, any other as JSON; the Content-Type says which unless the user set one.
        """
        self.bound.check(scope)
        headers = [(name, value.render(scope)) for name, value in self.headers]
        payload = self.body.render(scope) if self.body else None
        if payload and not self.has_content_type:
            headers.append(_JSON if payload.is_json else _TEXT)
        return HttpRequest(
            method=self.method,
            url=self.url.render(scope),
            headers=tuple(headers),
            body=payload.content if payload else None,
            expected_status_codes=self.expected_status_codes,
            signing_secret=self.signing_secret.render(scope) if self.signing_secret else None,
            body_is_json=payload is not None and payload.is_json,
        )


class HttpKind:
    """HTTP endpoints."""

    endpoint_type = EndpointType.HTTP

    def compile(self, spec: Mapping[str, Any]) -> CompiledHttpSpec:
        """Raises InvalidRequest or TemplateResolutionFailed, naming the field."""
        checked = check_spec(HttpSpec, spec)
        _check_header_names(checked.headers)
        url = compile_url(checked.url, field="spec.url", schemes=("http", "https"))
        headers = tuple((name, _compile_header(name, value)) for name, value in checked.headers.items())
        body = _compile_body(checked.body_template)
        signing_secret = _compile_signing_secret(checked.signing_secret)
        return CompiledHttpSpec(
            method=checked.method,
            url=url,
            headers=headers,
            has_content_type=any(name.lower() == "content-type" for name in checked.headers),
            body=body,
            timeout_ms=checked.timeout_ms,
            expected_status_codes=frozenset(checked.expected_status_codes),
            signing_secret=signing_secret,
            bound=SizeBound((url, *(value for _, value in headers), body, signing_secret)),
        )

    def describe(self, request: HttpRequest) -> dict[str, Any]:
        """`method`, `url`, `headers`, and `body` if there is one."""
        described: dict[str, Any] = {
            "method": request.method,
            "url": request.url,
            "headers": dict(request.headers),
        }
        if request.body is not None:
            described["body"] = describe_payload(request.body, is_json=request.body_is_json)
        return described


def _check_header_names(headers: Mapping[str, str]) -> None:
    seen: set[str] = set()
    for name in headers:
        if fault := _fault_of_header_name(name) or ("is given twice" if name.lower() in seen else None):
            raise refused(f"spec.headers.{name}", fault)
        seen.add(name.lower())


def _fault_of_header_name(name: str) -> str | None:
    if not HEADER_NAME.fullmatch(name):
        return "is not a header name: letters, digits and !#$%&'*+-.^_`|~ only"
    if carries_identity(name):
        return "is set by every delivery itself and may not be set here"
    if frames_http(name):
        return "belongs to the connection and may not be set here"
    return None


def _compile_header(name: str, value: str) -> CheckedText:
    return CheckedText(
        value, field=f"spec.headers.{name}", rule=_fault_of_header_value, parts_rule=_fault_of_header_parts
    )


def _fault_of_header_value(value: str) -> str | None:
    return "must hold no line breaks or other control characters" if _CONTROL.search(value) else None


def _fault_of_header_parts(parts: tuple[str | Placeholder, ...]) -> str | None:
    return _fault_of_header_value("".join(part for part in parts if isinstance(part, str)))


def _compile_body(body_template: Any) -> PayloadTemplate | None:
    return None if body_template is None else PayloadTemplate(body_template, field="spec.body_template")


def _compile_signing_secret(signing_secret: str | None) -> CheckedText | None:
    if signing_secret is None:
        return None
    return CheckedText(signing_secret, field="spec.signing_secret", rule=_fault_of_signing_secret)


def _fault_of_signing_secret(secret: str) -> str | None:
    encoded = secret.removeprefix(_SIGNING_PREFIX).rstrip("=")
    try:
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except ValueError:
        key = b""
    return None if key else "must be a key in base64, with or without 'whsec_' before it"
