"""The shape of Kafka endpoints: a record for a topic."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from taskexecutor_common.endpoint_types.base import InvalidDestination, Scope
from taskexecutor_common.endpoint_types.checked_spec import NonEmptyText, Spec, TimeoutMs, check_spec, refused
from taskexecutor_common.endpoint_types.checked_text import CheckedText, any_text, not_empty
from taskexecutor_common.endpoint_types.message_size import MAX_TEXT_BYTES, SizeBound, too_large
from taskexecutor_common.endpoint_types.payload import PayloadTemplate, describe_payload
from taskexecutor_common.endpoint_types.reserved_headers import carries_identity
from taskexecutor_common.model.endpoint import EndpointType
from taskexecutor_common.templates import Placeholder, Template, as_text, compile_template

_TOPIC = re.compile(
    r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}"
)  # what brokers accept: org.apache.kafka.common.internals.Topic

_KEY_FIELD = "spec.key_template"


class KafkaSpec(Spec):
    """The fields of a spec of type KAFKA; see Endpoint.Type in endpoint.proto."""

    bootstrap_servers: NonEmptyText
    topic: NonEmptyText
    key_template: str | None = None
    value_template: Any
    headers: dict[str, str] = Field(default_factory=dict)
    acks: Literal["0", "1", "all"] = "all"
    timeout_ms: TimeoutMs = 10_000


@dataclass(frozen=True, slots=True, repr=False)
class KafkaRequest:
    """What the user wants produced; the dispatcher adds the delivery's identity. No repr, since it holds secrets."""

    bootstrap_servers: str
    topic: str
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...]
    acks: str
    value_is_json: bool = False


@dataclass(frozen=True, slots=True)
class CompiledKafkaSpec:
    """A checked spec of type KAFKA."""

    bootstrap_servers: CheckedText
    topic: CheckedText
    key: Template | None
    value: PayloadTemplate
    headers: tuple[tuple[str, CheckedText], ...]
    acks: str
    timeout_ms: int
    bound: SizeBound

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        """All placeholders, each once."""
        templates = (self.bootstrap_servers, self.topic, self.key, self.value, *(value for _, value in self.headers))
        return tuple(dict.fromkeys(p for template in templates if template for p in template.placeholders))

    def render(self, scope: Scope) -> KafkaRequest:
        """Fills the templates. Raises TemplateError or InvalidDestination.

        A string value goes out as that text, any other as JSON. A key that is exactly one placeholder and names null
        makes a record without key.
        """
        self.bound.check(scope)
        payload = self.value.render(scope)
        return KafkaRequest(
            bootstrap_servers=self.bootstrap_servers.render(scope),
            topic=self.topic.render(scope),
            key=self._render_key(scope),
            value=payload.content,
            headers=tuple([(name, value.render(scope).encode()) for name, value in self.headers]),
            acks=self.acks,
            value_is_json=payload.is_json,
        )

    def _render_key(self, scope: Scope) -> bytes | None:
        value = self.key.render(scope) if self.key else None
        if value is None:
            return None
        key = as_text(value).encode()
        if len(key) > MAX_TEXT_BYTES:
            raise InvalidDestination(f"{_KEY_FIELD}: {too_large(MAX_TEXT_BYTES)}")
        return key


class KafkaKind:
    """Kafka endpoints."""

    endpoint_type = EndpointType.KAFKA

    def compile(self, spec: Mapping[str, Any]) -> CompiledKafkaSpec:
        """Raises InvalidRequest or TemplateResolutionFailed, naming the field."""
        checked = check_spec(KafkaSpec, spec)
        servers = CheckedText(checked.bootstrap_servers, field="spec.bootstrap_servers", rule=not_empty)
        topic = CheckedText(checked.topic, field="spec.topic", rule=_fault_of_topic)
        key = _compile_key(checked.key_template)
        value = PayloadTemplate(checked.value_template, field="spec.value_template")
        headers = tuple((name, _compile_header(name, value)) for name, value in checked.headers.items())
        return CompiledKafkaSpec(
            bootstrap_servers=servers,
            topic=topic,
            key=key,
            value=value,
            headers=headers,
            acks=checked.acks,
            timeout_ms=checked.timeout_ms,
            bound=SizeBound((servers, topic, key, value, *(header for _, header in headers))),
        )

    def describe(self, request: KafkaRequest) -> dict[str, Any]:
        """`bootstrap_servers`, `topic`, `key` if there is one, `value` and `headers`."""
        described: dict[str, Any] = {"bootstrap_servers": request.bootstrap_servers, "topic": request.topic}
        if request.key is not None:
            described["key"] = request.key.decode()
        described["value"] = describe_payload(request.value, is_json=request.value_is_json)
        described["headers"] = {name: value.decode() for name, value in request.headers}
        return described


def _fault_of_topic(topic: str) -> str | None:
    return None if _TOPIC.fullmatch(topic) else "must be a topic name: 1-249 of letters, digits, '.', '_' and '-'"


def _compile_key(key_template: str | None) -> Template | None:
    return None if key_template is None else compile_template(key_template, field=_KEY_FIELD)


def _compile_header(name: str, value: str) -> CheckedText:
    field = f"spec.headers.{name}"
    if not name:
        raise refused(field, "is not a header name: it is empty")
    if carries_identity(name):
        raise refused(field, "is set by every delivery itself and may not be set here")
    return CheckedText(value, field=field, rule=any_text)
