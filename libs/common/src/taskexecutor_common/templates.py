"""Templates: JSON values whose strings hold `{{namespace.path}}`, parsed once and rendered for every delivery.

A string that is exactly one placeholder keeps the type of what it names; inside text it is rendered as text. What was
filled in is never looked at again, so an input cannot smuggle in a placeholder. A literal `{{` cannot be written, only
come in through a value; a single brace and a lone `}}` are plain text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from taskexecutor_common.errors import InvalidRequest, TemplateResolutionFailed
from taskexecutor_common.shortening import shortened

Scope = Mapping[str, Any]
"""What placeholders name: JSON values by namespace."""

Escape = Callable[["Placeholder", str], str]
"""Makes the text of a placeholder fit for where it goes, such as a URL."""

# The paths of each namespace; None: any path.
_NAMESPACES: Mapping[str, frozenset[str] | None] = {
    "input": None,
    "config": None,
    "secret": None,
    "execution": frozenset({"id", "attempt", "scheduled_at"}),
    "job": frozenset({"id", "version"}),
}
_DOTTED = re.compile(r"[ \t]*([\w-]+(?:\.[\w-]+)*)[ \t]*")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_LONGEST_PLACEHOLDER = 500  # characters; placeholders are quoted in errors, which travel in headers
_EXACT_AS_DOUBLE = 2**53


class TemplateError(Exception):
    """A placeholder names what is not there. The message holds names only, never a value: values may be secrets."""

    def __init__(self, placeholder: str, fault: str) -> None:
        super().__init__(f"{{{{{placeholder}}}}}: {fault}")
        self.placeholder = placeholder


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A place to fill in. `text` is what stands between the braces, without blanks: `input.items.0.sku`."""

    namespace: str
    path: tuple[str, ...]
    text: str

    def resolve(self, scope: Scope) -> Any:
        """The value this names, in its own type. Raises TemplateError."""
        try:
            value = scope[self.namespace]
            for key in self.path:
                value = value[key]
        except (KeyError, TypeError):  # nothing there, or an array, whose elements have numbers
            return self._walk(scope)
        return value

    def _walk(self, scope: Scope) -> Any:
        value: Any = scope
        holder = "the scope"
        for key in (self.namespace, *self.path):
            try:
                value = _member(value, key)
            except LookupError:
                raise TemplateError(self.text, f"{holder} has no '{key}'") from None
            holder = f"'{key}'"
        return value


def _member(value: Any, key: str) -> Any:
    if isinstance(value, Mapping):
        return value[key]
    if isinstance(value, list) and _INDEX.fullmatch(key):
        return value[int(key)]
    raise LookupError(key)


class Template:
    """A parsed JSON value. Constant parts of what it renders are shared between renderings: do not change them."""

    __slots__ = ("_render", "_value", "occurrences", "parts", "placeholders")

    def __init__(
        self,
        value: Any,
        render: Callable[[Scope], Any] | None,
        occurrences: tuple[Placeholder, ...],
        parts: tuple[str | Placeholder, ...],
    ) -> None:
        self._value = value
        self._render = render
        self.occurrences = occurrences
        """The placeholders in the order of the text, each as often as it stands there."""
        self.placeholders = tuple(dict.fromkeys(occurrences))
        """Each placeholder once, in the order of the text."""
        self.parts = parts
        """The pieces of a string template; empty when the template is no string."""

    @property
    def is_constant(self) -> bool:
        """True when nothing has to be filled in."""
        return self._render is None

    def render(self, scope: Scope) -> Any:
        """The value with its placeholders filled in. Raises TemplateError."""
        return self._value if self._render is None else self._render(scope)

    def render_text(self, scope: Scope, escape: Escape | None = None) -> str:
        """The value as text; `escape` gets the text of each placeholder of a string template. Raises TemplateError."""
        if not self.parts or self._render is None:
            return as_text(self.render(scope))
        if escape is None:
            return _join(self.parts, scope)
        return "".join(
            [part if isinstance(part, str) else escape(part, as_text(part.resolve(scope))) for part in self.parts]
        )


def compile_template(value: Any, *, field: str) -> Template:
    """Parses all strings inside a JSON value, which must not be changed afterwards. `field` says where it stands.

    Raises InvalidRequest for what is no placeholder, and TemplateResolutionFailed for a namespace, or a path in a fixed
    namespace, that does not exist; both name the dotted path of the string at fault.
    """
    found: list[Placeholder] = []
    render = _compile(value, field, found)
    parts = tuple(_parse(value, field)) if isinstance(value, str) else ()
    return Template(value, render, tuple(found), parts)


def as_text(value: Any) -> str:
    """A JSON value as it stands inside text: strings as they are, 3.0 as 3, the rest as compact JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT_AS_DOUBLE:
        return str(int(value))
    return orjson.dumps(value).decode()


def _join(parts: Iterable[str | Placeholder], scope: Scope) -> str:
    return "".join([part if isinstance(part, str) else as_text(part.resolve(scope)) for part in parts])


def _compile(value: Any, field: str, found: list[Placeholder]) -> Callable[[Scope], Any] | None:
    """What renders the value; None when it is constant."""
    if isinstance(value, str):
        return _compile_text(_parse(value, field), found)
    if isinstance(value, dict):
        return _compile_members(value, value.items(), field, found)
    if isinstance(value, list):
        return _compile_members(value, enumerate(value), field, found)
    return None


def _compile_text(parts: list[str | Placeholder], found: list[Placeholder]) -> Callable[[Scope], Any] | None:
    placeholders = [part for part in parts if isinstance(part, Placeholder)]
    found.extend(placeholders)
    if not placeholders:
        return None
    if len(parts) == 1:
        return placeholders[0].resolve
    return lambda scope: _join(parts, scope)


def _compile_members(
    container: Any, members: Iterable[tuple[Any, Any]], field: str, found: list[Placeholder]
) -> Callable[[Scope], Any] | None:
    rendered: list[tuple[Any, Callable[[Scope], Any]]] = []
    for key, member in members:
        if isinstance(key, str) and "{{" in key:
            raise _refused(field, f"the key '{_short(key)}' holds '{{{{', but keys are not templates")
        render = _compile(member, f"{field}.{key}", found)
        if render is not None:
            rendered.append((key, render))
    return _filler(container, rendered) if rendered else None


def _filler(container: Any, rendered: list[tuple[Any, Callable[[Scope], Any]]]) -> Callable[[Scope], Any]:
    def fill(scope: Scope) -> Any:
        filled = container.copy()
        for key, render in rendered:
            filled[key] = render(scope)
        return filled

    return fill


def _parse(text: str, field: str) -> list[str | Placeholder]:
    parts: list[str | Placeholder] = []
    at = 0
    while (opening := text.find("{{", at)) >= 0:
        closing = text.find("}}", opening)
        if closing < 0:
            raise _refused(field, f"'{_short(text[opening:])}' is not closed; a literal '{{{{' cannot be written")
        if opening > at:
            parts.append(text[at:opening])
        parts.append(_placeholder(text[opening + 2 : closing], field))
        at = closing + 2
    if at < len(text):
        parts.append(text[at:])
    return parts


def _placeholder(written: str, field: str) -> Placeholder:
    match = _DOTTED.fullmatch(written) if len(written) <= _LONGEST_PLACEHOLDER else None
    namespace, *path = match[1].split(".") if match else ("",)
    if not match or not path:
        raise _refused(
            field,
            f"'{{{{{_short(written)}}}}}' is no placeholder; write {{{{namespace.path}}}} with letters, digits, '_' and"
            " '-', such as {{input.user.id}}; a literal '{{' cannot be written",
        )
    placeholder = Placeholder(namespace, tuple(path), match[1])
    _check_namespace(placeholder, field)
    return placeholder


def _check_namespace(placeholder: Placeholder, field: str) -> None:
    fault = None
    if placeholder.namespace not in _NAMESPACES:
        fault = f"there is no namespace '{placeholder.namespace}', only {', '.join(_NAMESPACES)}"
    elif placeholder.namespace == "secret" and len(placeholder.path) > 1:
        fault = "a secret is text and has no parts"
    elif (known := _NAMESPACES[placeholder.namespace]) and ".".join(placeholder.path) not in known:
        fault = f"'{placeholder.namespace}' has only {', '.join(sorted(known))}"
    if fault:
        field = _short(field)
        raise TemplateResolutionFailed(f"{field}: {{{{{placeholder.text}}}}}: {fault}", field=field)


def _refused(field: str, fault: str) -> InvalidRequest:
    return InvalidRequest(f"{_short(field)}: {fault}", field=_short(field))


def _short(text: str) -> str:
    return shortened(text, 200)
