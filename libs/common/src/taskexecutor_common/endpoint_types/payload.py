"""Bodies and record values: a string is sent as it is, every other JSON value as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from taskexecutor_common.endpoint_types.base import InvalidDestination, Scope
from taskexecutor_common.endpoint_types.checked_spec import refused
from taskexecutor_common.endpoint_types.message_size import MAX_PAYLOAD_BYTES, too_large
from taskexecutor_common.templates import compile_template

_UNWRITABLE = (UnicodeEncodeError, orjson.JSONEncodeError)
_UNWRITABLE_FAULT = "cannot be written as JSON in UTF-8: it is nested too deep, or holds what UTF-8 cannot"


@dataclass(frozen=True, slots=True, repr=False)
class Payload:
    """What goes over the wire. No repr, since it may hold secrets."""

    content: bytes
    is_json: bool


class PayloadTemplate:
    """A template whose rendered value, and not its content type, decides how it is written."""

    __slots__ = ("_constant", "_field", "_template", "occurrences", "placeholders")

    def __init__(self, value: Any, *, field: str) -> None:
        self._template = compile_template(value, field=field)
        self._field = field
        self._constant = self._write_constant(value) if self._template.is_constant else None
        self.occurrences = self._template.occurrences
        self.placeholders = self._template.placeholders

    def render(self, scope: Scope) -> Payload:
        """Raises TemplateError, or InvalidDestination for a value that JSON cannot hold or that is too large."""
        if self._constant is not None:
            return self._constant
        try:
            payload = _write(self._template.render(scope))
        except _UNWRITABLE:
            raise InvalidDestination(f"{self._field}: {_UNWRITABLE_FAULT}") from None
        if len(payload.content) > MAX_PAYLOAD_BYTES:
            raise InvalidDestination(f"{self._field}: {too_large(MAX_PAYLOAD_BYTES)}")
        return payload

    def _write_constant(self, value: Any) -> Payload:
        try:
            return _write(value)
        except _UNWRITABLE:
            raise refused(self._field, _UNWRITABLE_FAULT) from None


def _write(value: Any) -> Payload:
    if isinstance(value, str):
        return Payload(value.encode(), is_json=False)
    return Payload(orjson.dumps(value), is_json=True)


def describe_payload(content: bytes, *, is_json: bool) -> Any:
    """A payload for a preview. Text is never parsed, even if it looks like JSON: a secret of digits would turn into a
    number, which the masking of secrets does not see."""
    return orjson.loads(content) if is_json else content.decode()
