"""Turns result rows into the frozen dataclasses of the model."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Sequence
from dataclasses import fields
from enum import Enum
from typing import Any, TypeVar

from psycopg import AsyncCursor
from psycopg.rows import RowMaker

RowT = TypeVar("RowT")


@functools.cache
def _enums(model: type[Any]) -> dict[str, type[Enum]]:
    """The fields of a dataclass that hold an enum, `Enum | None` included."""
    hints = typing.get_type_hints(model)
    found: dict[str, type[Enum]] = {}
    for field in fields(model):
        for candidate in (hints[field.name], *typing.get_args(hints[field.name])):
            if isinstance(candidate, type) and issubclass(candidate, Enum):
                found[field.name] = candidate
    return found


def model_row(model: type[RowT]) -> Callable[[AsyncCursor[Any]], RowMaker[RowT]]:
    """A psycopg row factory that calls `model(column=value, ...)`, text columns of enum fields turned into enums."""
    enums = _enums(model)  # type: ignore[arg-type]  # classes are hashable; typeshed asks for proof

    def factory(cursor: AsyncCursor[Any]) -> RowMaker[RowT]:
        names = [column.name for column in cursor.description or ()]
        converters = [(index, enums[name]) for index, name in enumerate(names) if name in enums]

        def make(values: Sequence[Any]) -> RowT:
            if converters:
                values = list(values)
                for index, enum in converters:
                    if values[index] is not None:
                        values[index] = enum(values[index])
            return model(**dict(zip(names, values, strict=True)))

        return make

    return factory
