"""A text template with a rule for what it renders: refused at once when constant, else when a delivery breaks it."""

from __future__ import annotations

from collections.abc import Callable

from taskexecutor_common.endpoint_types.base import InvalidDestination, Scope
from taskexecutor_common.endpoint_types.checked_spec import refused
from taskexecutor_common.templates import Escape, Placeholder, compile_template

Rule = Callable[[str], str | None]
"""Says what is wrong with a text, without showing it: it may hold secrets. None: nothing is."""

PartsRule = Callable[[tuple[str | Placeholder, ...]], str | None]
"""Says what is wrong with a template whatever will be filled in. None: nothing is."""


class CheckedText:
    """A text template that renders only what its rule allows."""

    __slots__ = ("_constant", "_escape", "_field", "_rule", "_template", "placeholders")

    def __init__(
        self, text: str, *, field: str, rule: Rule, parts_rule: PartsRule | None = None, escape: Escape | None = None
    ) -> None:
        self._template = compile_template(text, field=field)
        self._field = field
        self._rule = rule
        self._escape = escape
        self._constant = text if self._template.is_constant else None
        self.placeholders = self._template.placeholders
        fault = rule(text) if self._constant is not None else parts_rule and parts_rule(self._template.parts)
        if fault:
            raise refused(field, fault)

    def render(self, scope: Scope) -> str:
        """The text. Raises TemplateError, or InvalidDestination naming the field."""
        if self._constant is not None:
            return self._constant
        text = self._template.render_text(scope, self._escape)
        if fault := self._rule(text):
            raise InvalidDestination(f"{self._field}: {fault}")
        return text


def not_empty(text: str) -> str | None:
    """The rule of names: anything but nothing."""
    return None if text.strip() else "must not be empty"
