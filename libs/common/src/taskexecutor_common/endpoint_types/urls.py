"""URL templates: input is percent-encoded, so that it can neither leave its place nor name another host."""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

from taskexecutor_common.endpoint_types.checked_text import CheckedText
from taskexecutor_common.templates import Placeholder

_UNSAFE = re.compile(r"[\s\x00-\x20\x7f-\x9f\\]")
_DOT_SEGMENT = re.compile(r"(?:^|/)(?:\.|%2e){1,2}(?:/|$)", re.IGNORECASE)
# Whoever writes configs and secrets also writes the spec: they may hold whole URLs, with user and password.
_TRUSTED = frozenset({"config", "secret"})


def compile_url(text: str, *, field: str, schemes: tuple[str, ...]) -> CheckedText:
    """A template of an absolute URL with a host and one of the schemes. Raises InvalidRequest."""
    return CheckedText(
        text,
        field=field,
        rule=lambda url: _fault(url, schemes),
        parts_rule=lambda parts: _fault_of_parts(parts, schemes),
        escape=_encode,
    )


def _encode(placeholder: Placeholder, text: str) -> str:
    return text if placeholder.namespace in _TRUSTED else quote(text, safe="")


def _fault(url: str, schemes: tuple[str, ...]) -> str | None:
    if _UNSAFE.search(url):
        return "must hold no blanks, control characters or backslashes"
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port  # reading the port checks it
    except ValueError:
        return "is not a URL"
    if parts.scheme not in schemes:
        return _must_begin(schemes)
    if not host:
        return "must name a host"
    if _DOT_SEGMENT.search(parts.path):  # clients resolve these, and '..' in an input would reach another path
        return "must have no '.' or '..' in its path"
    return None


def _fault_of_parts(parts: tuple[str | Placeholder, ...], schemes: tuple[str, ...]) -> str | None:
    first = parts[0]
    if isinstance(first, Placeholder):
        if first.namespace in _TRUSTED:
            return None
        return f"cannot begin with {{{{{first.text}}}}}, since only config and secret values are not percent-encoded"
    beginnings = [f"{scheme}://" for scheme in schemes]
    given = first.lower()
    if any(beginning.startswith(given) or given.startswith(beginning) for beginning in beginnings):
        return None
    return _must_begin(schemes)


def _must_begin(schemes: tuple[str, ...]) -> str:
    return f"must begin with {' or '.join(f'{scheme}://' for scheme in schemes)}"
