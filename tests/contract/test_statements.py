"""Each named statement against the server and against the Python that runs it."""

from __future__ import annotations

import types
import typing
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.pq import ExecStatus

from taskexecutor_common.store.statements import POSTGRES_STATEMENTS, STATEMENTS, for_postgres, parse
from tests.support.sql_text import numbered
from tests.support.store_calls import Call, find_calls

CALLS = find_calls()
TYPE_OF = {
    "bool": bool,
    "bytea": bytes,
    "int2": int,
    "int4": int,
    "int8": int,
    "float8": float,
    "text": str,
    "uuid": UUID,
    "timestamptz": datetime,
    "jsonb": dict,
}


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the server says of a statement: its columns in order, with their types as Python sees them."""

    columns: dict[str, type[Any]]


async def prepare(connection: psycopg.AsyncConnection[Any], name: str, statement: str) -> Prepared:
    """Prepares a statement with no types but those of its casts. Raises AssertionError with the server's complaint."""
    text, names = numbered(statement)
    line = connection.pgconn
    prepared = line.prepare(name.encode(), text.encode())
    assert prepared.status == ExecStatus.COMMAND_OK, prepared.error_message.decode()
    described = line.describe_prepared(name.encode())
    assert described.nparams == len(names)
    columns = {
        described.fname(index).decode(): python_type(connection, described.ftype(index))
        for index in range(described.nfields)
    }
    line.exec_(f"DEALLOCATE {name}".encode())
    return Prepared(columns)


def python_type(connection: psycopg.AsyncConnection[Any], oid: int) -> type[Any]:
    """What psycopg makes of a column of this type."""
    info = connection.adapters.types[oid]
    return list if info.array_oid == oid else TYPE_OF[info.name]


def plain_type(hint: Any) -> type[Any]:
    """What a field's hint means to a column: `X | None` is X, an enum is text."""
    if isinstance(hint, types.UnionType):
        (hint,) = [member for member in typing.get_args(hint) if member is not types.NoneType]
    hint = typing.get_origin(hint) or hint
    return str if issubclass(hint, Enum) else hint


@pytest.mark.parametrize("name", STATEMENTS)
async def test_it_prepares(catalog: psycopg.AsyncConnection[Any], name: str) -> None:
    assert await prepare(catalog, name, STATEMENTS[name])


@pytest.mark.parametrize("name", [name for name in STATEMENTS if STATEMENTS[name] != POSTGRES_STATEMENTS[name]])
async def test_its_variant_takes_and_gives_the_same(catalog: psycopg.AsyncConnection[Any], name: str) -> None:
    text, variant = STATEMENTS[name], POSTGRES_STATEMENTS[name]
    assert numbered(variant)[1] == numbered(text)[1]
    assert await prepare(catalog, name, variant) == await prepare(catalog, name, text)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.statement}@{call.where}")
async def test_its_caller_passes_its_parameters_and_reads_its_columns(
    catalog: psycopg.AsyncConnection[Any], call: Call
) -> None:
    assert call.statement in STATEMENTS
    assert call.parameters == set(numbered(STATEMENTS[call.statement])[1])
    if call.model is None:
        return
    columns = (await prepare(catalog, call.statement, STATEMENTS[call.statement])).columns
    fields = typing.get_type_hints(call.model)
    # In order, too: rows are turned into models by position.
    assert list(columns.items()) == [(name, plain_type(hint)) for name, hint in fields.items()]


def test_every_statement_is_run_somewhere() -> None:
    assert STATEMENTS.keys() - {call.statement for call in CALLS} == set()


def test_a_name_is_taken_once_in_a_file() -> None:
    with pytest.raises(ValueError, match="one named twice"):
        parse("-- name: one\nSELECT 1;\n-- name: one\nSELECT 2;\n")


def test_a_variant_takes_the_place_of_the_line_above_it() -> None:
    assert for_postgres("a\n  b\n  -- postgres: c\nd\n-- postgres:\n") == "a\n   c\n\n"
