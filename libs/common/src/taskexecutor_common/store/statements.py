"""Loads the named statements of store/sql/*.sql, once, at import."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from types import MappingProxyType

_HEADER = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^[ ]*--.*$", re.MULTILINE)


def parse(text: str) -> dict[str, str]:
    """Splits one file into its statements by their `-- name:` headers; comments are left out.

    Raises ValueError when a name is taken twice.
    """
    parts = _HEADER.split(text)
    found: dict[str, str] = {}
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        if name in found:
            raise ValueError(f"{name} named twice")
        found[name] = _COMMENT.sub("", body).strip().rstrip(";")
    return found


def load() -> Mapping[str, str]:
    """All statements by name. Raises ValueError when two files use one name."""
    found: dict[str, str] = {}
    folder = resources.files("taskexecutor_common.store.sql")
    for path in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if not path.name.endswith(".sql"):
            continue
        statements = parse(path.read_text(encoding="utf-8"))
        if twice := found.keys() & statements.keys():
            raise ValueError(f"{path.name}: {', '.join(sorted(twice))} named twice")
        found |= statements
    return MappingProxyType(found)


STATEMENTS = load()
