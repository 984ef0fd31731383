"""The shape of Redis Stream endpoints: an entry for a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from taskexecutor_common.endpoint_types.base import InvalidDestination, Scope
from taskexecutor_common.endpoint_types.checked_spec import NonEmptyText, Spec, TimeoutMs, check_spec, refused
from taskexecutor_common.endpoint_types.checked_text import CheckedText, not_empty
from taskexecutor_common.endpoint_types.message_size import MAX_PAYLOAD_BYTES, SizeBound, too_large, utf8_size
from taskexecutor_common.endpoint_types.urls import compile_url
from taskexecutor_common.model.endpoint import EndpointType
from taskexecutor_common.templates import Placeholder, Template, as_text, compile_template

_FIELDS_FIELD = "spec.fields_template"
_MAX_LEN_FIELD = "spec.max_len"
_MAX_LEN_FAULT = "must be a whole number from 0 on, or a template that makes one"
_LARGEST = 2**63 - 1  # Redis counts in signed 64 bits


class RedisStreamSpec(Spec):
    """The fields of a spec of type REDIS_STREAM; see Endpoint.Type in endpoint.proto."""

    redis_url: NonEmptyText
    stream: NonEmptyText
    fields_template: Annotated[dict[str, Any], Field(min_length=1)]
    max_len: Any = None
    approximate_trimming: bool = True
    timeout_ms: TimeoutMs = 3_000


@dataclass(frozen=True, slots=True, repr=False)
class RedisStreamRequest:
    """What the user wants added. No repr, since it holds secrets."""

    redis_url: str
    stream: str
    fields: tuple[tuple[str, str], ...]
    max_len: int | None
    """Entries to keep. None: the stream is not trimmed."""
    approximate: bool


@dataclass(frozen=True, slots=True)
class CompiledRedisStreamSpec:
    """A checked spec of type REDIS_STREAM."""

    redis_url: CheckedText
    stream: CheckedText
    fields: Template
    max_len: Template | None
    approximate: bool
    timeout_ms: int
    bound: SizeBound

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        """All placeholders, each once."""
        templates = (self.redis_url, self.stream, self.fields, self.max_len)
        return tuple(dict.fromkeys(p for template in templates if template for p in template.placeholders))

    def render(self, scope: Scope) -> RedisStreamRequest:
        """Fills the templates. Raises TemplateError or InvalidDestination.

        Redis knows text only: values of fields that are no strings become compact JSON.
        """
        self.bound.check(scope)
        return RedisStreamRequest(
            redis_url=self.redis_url.render(scope),
            stream=self.stream.render(scope),
            fields=self._render_fields(scope),
            max_len=self._render_max_len(scope),
            approximate=self.approximate,
        )

    def _render_fields(self, scope: Scope) -> tuple[tuple[str, str], ...]:
        left = MAX_PAYLOAD_BYTES
        fields = []
        for name, value in self.fields.render(scope).items():
            text = as_text(value)
            left -= utf8_size(text)
            if left < 0:
                raise InvalidDestination(f"{_FIELDS_FIELD}: with {name[:200]} it {too_large(MAX_PAYLOAD_BYTES)}")
            fields.append((name, text))
        return tuple(fields)

    def _render_max_len(self, scope: Scope) -> int | None:
        if self.max_len is None:
            return None
        max_len = _entry_count(self.max_len.render(scope))
        if max_len is None:
            raise InvalidDestination(f"{_MAX_LEN_FIELD}: {_MAX_LEN_FAULT}")
        return max_len


class RedisStreamKind:
    """Redis Stream endpoints."""

    endpoint_type = EndpointType.REDIS_STREAM

    def compile(self, spec: Mapping[str, Any]) -> CompiledRedisStreamSpec:
        """Raises InvalidRequest or TemplateResolutionFailed, naming the field."""
        checked = check_spec(RedisStreamSpec, spec)
        redis_url = compile_url(checked.redis_url, field="spec.redis_url", schemes=("redis", "rediss"))
        stream = CheckedText(checked.stream, field="spec.stream", rule=not_empty)
        fields = compile_template(checked.fields_template, field=_FIELDS_FIELD)
        max_len = _compile_max_len(checked.max_len)
        return CompiledRedisStreamSpec(
            redis_url=redis_url,
            stream=stream,
            fields=fields,
            max_len=max_len,
            approximate=checked.approximate_trimming,
            timeout_ms=checked.timeout_ms,
            bound=SizeBound((redis_url, stream, fields, max_len)),
        )

    def describe(self, request: RedisStreamRequest) -> dict[str, Any]:
        """`redis_url`, `stream`, `fields`, and `max_len` if there is one."""
        described: dict[str, Any] = {
            "redis_url": request.redis_url,
            "stream": request.stream,
            "fields": dict(request.fields),
        }
        if request.max_len is not None:
            described["max_len"] = request.max_len
        return described


def _compile_max_len(max_len: Any) -> Template | None:
    if max_len is None:
        return None
    template = compile_template(max_len, field=_MAX_LEN_FIELD)
    is_whole = _entry_count(max_len) is not None
    if not is_whole and (template.is_constant or not isinstance(max_len, str)):
        raise refused(_MAX_LEN_FIELD, _MAX_LEN_FAULT)
    return template


def _entry_count(value: Any) -> int | None:
    """A whole number or the text of one; None when it is neither."""
    text = as_text(value)
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        return None
    count = int(text)
    return count if count <= _LARGEST else None
