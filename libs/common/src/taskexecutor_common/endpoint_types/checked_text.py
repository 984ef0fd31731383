"""A text template with a rule for what it renders: refused at once when constant, else when a delivery breaks it."""

from __future__ import annotations

from collections.abc import Callable

from taskexecutor_common.endpoint_types.base import InvalidDestination, Scope
from taskexecutor_common.endpoint_types.checked_spec import refused
from taskexecutor_common.endpoint_types.message_size import MAX_TEXT_BYTES, too_large, utf8_size
from taskexecutor_common.templates import Escape, Placeholder, compile_template

Rule = Callable[[str], str | None]
"""Says what is wrong with a text, without showing it: it may hold secrets. None: nothing is."""

PartsRule = Callable[[tuple[str | Placeholder, ...]], str | None]
"""Says what is wrong with a template whatever will be filled in. None: nothing is."""

_SURELY_SHORT = MAX_TEXT_BYTES // 4  # in characters, which have four bytes at most


class CheckedText:
    """A text template that renders only what its rule allows."""

    __slots__ = ("_constant", "_escape", "_field", "_rule", "_template", "occurrences", "placeholders")

    def __init__(
        self, text: str, *, field: str, rule: Rule, parts_rule: PartsRule | None = None, escape: Escape | None = None
    ) -> None:
        self._template = compile_template(text, field=field)
        self._field = field
        self._rule = rule
        self._escape = escape
        self._constant = text if self._template.is_constant else None
        self.occurrences = self._template.occurrences
        self.placeholders = self._template.placeholders
        if self._constant is not None:
            fault = rule(text) or _fault_of_size(text)
        else:
            fault = parts_rule and parts_rule(self._template.parts)
        if fault:
            raise refused(field, fault)

    def render(self, scope: Scope) -> str:
        """The text. Raises TemplateError, or InvalidDestination naming the field."""
        if self._constant is not None:
            return self._constant
        text = self._template.render_text(scope, self._escape)
        if fault := self._rule(text) or (_fault_of_size(text) if len(text) > _SURELY_SHORT else None):
            raise InvalidDestination(f"{self._field}: {fault}")
        return text


def _fault_of_size(text: str) -> str | None:
    return too_large(MAX_TEXT_BYTES) if utf8_size(text) > MAX_TEXT_BYTES else None


def any_text(text: str) -> str | None:
    """The rule of what may be anything, as long as it is not too much of it."""
    return None


def not_empty(text: str) -> str | None:
    """The rule of names: anything but nothing."""
    return None if text.strip() else "must not be empty"
