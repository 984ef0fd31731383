"""Turns result rows into the frozen dataclasses of the model."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, TypeVar

from psycopg import AsyncCursor
from psycopg.rows import RowMaker

RowT = TypeVar("RowT")


@functools.cache
def _enums(model: type[Any]) -> dict[str, dict[str, Enum]]:
    """The fields of a model that hold an enum, `Enum | None` included: its members by value."""
    found: dict[str, dict[str, Enum]] = {}
    for name, hint in typing.get_type_hints(model).items():
        for candidate in (hint, *typing.get_args(hint)):
            if isinstance(candidate, type) and issubclass(candidate, Enum):
                found[name] = {member.value: member for member in candidate}
    return found


def model_row(model: type[RowT]) -> Callable[[AsyncCursor[Any]], RowMaker[RowT]]:
    """A psycopg row factory that makes a `model`, a dataclass or named tuple, of each row, text columns of enum fields
    turned into enums. Statements list their columns in the order of its fields (tests/contract/test_statements.py)."""
    enums = _enums(model)  # type: ignore[arg-type]  # classes are hashable; typeshed asks for proof

    def factory(cursor: AsyncCursor[Any]) -> RowMaker[RowT]:
        names = [column.name for column in cursor.description or ()]
        converters = [(index, enums[name]) for index, name in enumerate(names) if name in enums]

        def make(values: Sequence[Any]) -> RowT:
            return model(*values)

        def make_with_enums(values: Sequence[Any]) -> RowT:
            converted = list(values)
            for index, members in converters:
                if converted[index] is not None:
                    converted[index] = members[converted[index]]
            return model(*converted)

        return make_with_enums if converters else make

    return factory
