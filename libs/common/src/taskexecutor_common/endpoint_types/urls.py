"""URL templates: input can neither leave its place nor choose the host.

It is percent-encoded, and where it stands in the host a fixed domain must follow: `https://{{input.tenant}}.example.com`.
Whoever writes an input would else decide who gets the secrets that the endpoint sends along.
"""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

from taskexecutor_common.endpoint_types.checked_text import CheckedText
from taskexecutor_common.templates import Placeholder

_UNSAFE = re.compile(r"[\s\x00-\x20\x7f-\x9f\\]")
_DOT_SEGMENT = re.compile(r"(?:^|/)(?:\.|%2e){1,2}(?:/|$)", re.IGNORECASE)
# Whoever writes configs and secrets also writes the spec: they may hold whole URLs, with user and password.
_TRUSTED = frozenset({"config", "secret"})
# In the place of placeholders, where only the shape of a template is looked at.
_INPUT, _OTHER = "\x01", "\x02"
# What ends a host when the URL may begin inside a placeholder: a slash that is none of the two before the host.
_END_OF_HOST = re.compile(r"(?<![:/])/(?!/)|[?#]")
_DOMAIN = re.compile(rf"\.[\w{_OTHER}]")


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
            return _fault_of_host(parts, schemes)
        return f"cannot begin with {{{{{first.text}}}}}, since only config and secret values are not percent-encoded"
    beginnings = [f"{scheme}://" for scheme in schemes]
    given = first.lower()
    if any(beginning.startswith(given) or given.startswith(beginning) for beginning in beginnings):
        return _fault_of_host(parts, schemes)
    return _must_begin(schemes)


def _fault_of_host(parts: tuple[str | Placeholder, ...], schemes: tuple[str, ...]) -> str | None:
    _before, mark, after = _host(parts, schemes).rpartition(_INPUT)
    if not mark or _DOMAIN.search(after):
        return None
    return "must not let an input choose the host: a fixed domain must follow it, as in {{input.tenant}}.example.com"


def _host(parts: tuple[str | Placeholder, ...], schemes: tuple[str, ...]) -> str:
    """The host of a template, with marks for placeholders; with more around it when the template does not begin with a
    whole scheme."""
    shape = "".join(part if isinstance(part, str) else _mark(part) for part in parts)
    scheme, separator, rest = shape.partition("://")
    if not separator or scheme.lower() not in schemes:
        return _END_OF_HOST.split(shape, maxsplit=1)[0]
    host = re.split("[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    return host if "[" in host else host.partition(":")[0]


def _mark(placeholder: Placeholder) -> str:
    return _INPUT if placeholder.namespace == "input" else _OTHER


def _must_begin(schemes: tuple[str, ...]) -> str:
    return f"must begin with {' or '.join(f'{scheme}://' for scheme in schemes)}"
