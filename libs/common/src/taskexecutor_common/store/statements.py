"""Loads the named statements of store/sql/*.sql, once, at import.

There is one text for both engines, but for single lines that have a variant below them:

    SELECT r.lane, r.execution_id
    -- postgres: SELECT r.ctid AS place

PostgreSQL gets the variant, which may be empty; it says the same in a way that its planner cannot take for something else.
`x = ANY (ARRAY[y])` is `x = y` to be looked up and not to be joined: it promises no order of x, so that no index of a table
that is believed to be nearly empty is walked from end to end to find its rows in the batch (docs/schema.md, "Plans").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import resources
from types import MappingProxyType

_HEADER = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^[ ]*--.*$", re.MULTILINE)
_VARIANT = re.compile(r"^.*\n([ ]*)-- postgres:(.*)$", re.MULTILINE)


def for_postgres(text: str) -> str:
    """A file's text with its variants in place of the lines above them."""
    return _VARIANT.sub(r"\1\2", text)


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


def load(dialect: Callable[[str], str] = str) -> Mapping[str, str]:
    """All statements by name, each file's text as `dialect` makes it. Raises ValueError when two files use one name."""
    found: dict[str, str] = {}
    folder = resources.files("taskexecutor_common.store.sql")
    for path in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if not path.name.endswith(".sql"):
            continue
        statements = parse(dialect(path.read_text(encoding="utf-8")))
        if twice := found.keys() & statements.keys():
            raise ValueError(f"{path.name}: {', '.join(sorted(twice))} named twice")
        found |= statements
    return MappingProxyType(found)


STATEMENTS = load()
"""What CockroachDB gets."""

POSTGRES_STATEMENTS = load(for_postgres)
"""What PostgreSQL gets."""
