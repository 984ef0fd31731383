"""How large a rendered message may be: a spec of a page can name a large input a thousand times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Protocol

import orjson

from taskexecutor_common.endpoint_types.base import InvalidDestination, Scope
from taskexecutor_common.endpoint_types.checked_spec import refused
from taskexecutor_common.templates import Placeholder

MAX_PAYLOAD_BYTES = 1024 * 1024
"""A body, a record's value, or all fields of an entry together."""
MAX_TEXT_BYTES = 64 * 1024
"""A URL, the value of a header, a key, the name of a stream."""
MAX_PLACEHOLDERS = 1000
"""In one spec, each as often as it stands there."""

# So many copies of the largest input there may be are some megabytes for a moment; they are measured once they are made.
# Nearly all specs have fewer placeholders and are spared the look at each.
_HARMLESS = 32


class HasPlaceholders(Protocol):
    """A compiled template."""

    @property
    def occurrences(self) -> tuple[Placeholder, ...]:
        """Its placeholders, each as often as it stands there."""


class SizeBound:
    """Refuses what a spec's templates would render before they do. Raises InvalidRequest for too many placeholders."""

    __slots__ = ("_counts",)

    def __init__(self, templates: Iterable[HasPlaceholders | None]) -> None:
        counts = Counter(placeholder for template in templates if template for placeholder in template.occurrences)
        if counts.total() > MAX_PLACEHOLDERS:
            raise refused("spec", f"has {counts.total()} placeholders; {MAX_PLACEHOLDERS} are allowed")
        self._counts = tuple(counts.items()) if counts.total() > _HARMLESS else ()

    def check(self, scope: Scope) -> None:
        """Raises InvalidDestination when what the placeholders name is more than any message may be, and TemplateError
        for one that names nothing. Encoding makes it larger, so what passes is measured again."""
        total = 0
        for placeholder, count in self._counts:
            total += count * _size(placeholder.resolve(scope))
            if total > MAX_PAYLOAD_BYTES:
                named = f"{{{{{placeholder.text}}}}}"
                raise InvalidDestination(f"spec: with {named}, here {count} times, it {too_large(MAX_PAYLOAD_BYTES)}")


def too_large(most: int) -> str:
    """The fault of what is larger than `most` bytes."""
    return f"makes more than {most // 1024} KiB, which is the most that is sent"


def utf8_size(text: str) -> int:
    """Bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict | list):
        try:
            return len(orjson.dumps(value))
        except orjson.JSONEncodeError:  # nested too deep, which whoever writes it will say
            return 0
    return 1
