"""The rules that let one SQL text serve CockroachDB and PostgreSQL, held by reading the text (docs/schema.md)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import psycopg
import pytest

from taskexecutor_common.store.migrate import load_steps
from taskexecutor_common.store.statements import STATEMENTS
from tests.support.sql_text import PLACEHOLDER, Cte, ctes, without_literals, writes

STEPS = {step.name: step.statement for step in load_steps()}
TYPES = {
    "uuid",
    "text",
    "bytea",
    "bigint",
    "integer",
    "smallint",
    "jsonb",
    "timestamptz",
    "boolean",
    "double precision",
}

# What one of the engines has not, or means otherwise.
BANNED_ANYWHERE = {
    r"\bSTRING\b|\bBYTES\b|\bJSON\b|\bINT\b|\bTIMESTAMP\b": "write TEXT, BYTEA, JSONB, INTEGER or BIGINT, TIMESTAMPTZ",
    r"\bSERIAL\b|\bSEQUENCE\b|\bnextval\b|\bENUM\b": "ids come from Python, enums are TEXT with a CHECK",
    r"\bFAMILY\b|\bSTORING\b|\bPARTITION BY\b|\bDEFERRABLE\b|NULLS NOT DISTINCT": "no such thing on one of them",
    r"\bTRIGGER\b|\bFUNCTION\b": "logic lives in Python",
    r"'-?infinity'": "CockroachDB makes a date of it",
}
BANNED_IN_STATEMENTS = BANNED_ANYWHERE | {
    r"(?:\bSELECT|,|\.)\s*\*": "list the columns",
    r"\bUPSERT\b|\bMERGE\b|\bLOCK TABLE\b|\bTABLESAMPLE\b|\bGROUPING SETS\b|RETURNING NOTHING|=>": "one engine only",
    r"\bLISTEN\b|\bNOTIFY\b|\bpg_\w+|\w*advisory\w*": "one engine only; take a row for a lock",
    r"\bmake_interval\b|\bdate_bin\b|\bisfinite\b|\bjustify_\w+|\bage\(|\bpg_sleep\b": "absent in CockroachDB",
    r"\bsha256\b|\bhashtext\b|\btxid_current\b|\buuidv7\b|\bgen_random_uuid\b|\brandom\(": "computed in Python",
    r"\bFOR SHARE\b|\bFOR NO KEY UPDATE\b|\bNOWAIT\b": "locks nothing, or something else, on CockroachDB",
    r"/": "integer division differs; divide in Python",
    r"\bsum\((?![^)]*\)::)": "cast it: the type of a sum differs",
}
BANNED_IN_STEPS = BANNED_ANYWHERE | {
    r"\bREFERENCES\b": "a foreign key writes to its parent's row; the hot tables have none, the others do without",
    r"\bUNIQUE \(": "a unique index can be dropped on both engines, a constraint cannot",
}
IDEMPOTENT = (
    "CREATE TABLE IF NOT EXISTS",
    "CREATE INDEX IF NOT EXISTS",
    "CREATE UNIQUE INDEX IF NOT EXISTS",
    "CREATE OR REPLACE VIEW",
    "ALTER TABLE",
    "INSERT INTO",
    "DROP INDEX IF EXISTS",
)


def found_in(text: str, banned: dict[str, str]) -> list[str]:
    """The banned things in a text, each with what to write instead."""
    return [f"{match[0]!r}: {why}" for pattern, why in banned.items() if (match := re.search(pattern, text))]


def offenders(found: Mapping[str, object]) -> dict[str, object]:
    """Those of the checked that have something to say."""
    return {name: faults for name, faults in found.items() if faults}


# --- statements ---


def test_every_placeholder_is_cast_to_a_portable_type() -> None:
    cast = re.compile(PLACEHOLDER.pattern + r"(?:::([a-z]+(?: precision)?)(?:\[\])?)?")
    types = {name: {to for _, to in cast.findall(text)} - TYPES for name, text in STATEMENTS.items()}
    assert offenders(types) == {}


def test_a_statement_has_nothing_that_only_one_engine_has() -> None:
    assert offenders({name: found_in(text, BANNED_IN_STATEMENTS) for name, text in STATEMENTS.items()}) == {}


def test_a_statement_writes_each_table_at_most_once() -> None:
    tables = {name: Counter(write.table for write in writes(text)) for name, text in STATEMENTS.items()}
    assert offenders({name: [table for table, n in found.items() if n > 1] for name, found in tables.items()}) == {}


def test_a_statement_writes_at_its_top_level_and_in_its_ctes_only() -> None:
    nested = {name: [write for write in writes(text) if write.depth > 1] for name, text in STATEMENTS.items()}
    assert offenders(nested) == {}


def test_a_statement_is_one_statement() -> None:
    assert offenders({name: ";" in without_literals(text) for name, text in STATEMENTS.items()}) == {}


LOCKING_CTES = {
    f"{name}.{cte.name}": cte
    for name, text in STATEMENTS.items()
    for cte in ctes(text)
    if "SKIP LOCKED" in cte.body and not writes(cte.body)
}


def test_rows_are_skipped_in_ctes_only() -> None:
    assert sum(text.count("SKIP LOCKED") for text in STATEMENTS.values()) == len(LOCKING_CTES)


@pytest.mark.parametrize("cte", LOCKING_CTES.values(), ids=LOCKING_CTES)
async def test_what_skips_locked_rows_is_materialized_limited_and_in_primary_key_order(
    catalog: psycopg.AsyncConnection[Any], cte: Cte
) -> None:
    assert cte.materialized
    clause = re.search(r"ORDER BY (\w+)\.([\w., ]+)\s+LIMIT (?:\d+|w\.quota)\s+FOR UPDATE", cte.body)
    assert clause, "ORDER BY ... LIMIT ... FOR UPDATE"
    alias, ordered = clause[1], clause[2].replace(f"{clause[1]}.", "").split(", ")
    table = re.search(rf"FROM (\w+) AS {alias}\s", cte.body)
    assert table
    key = await primary_key(catalog, table[1])
    given = key[: len(key) - len(ordered)]
    assert [*given, *ordered] == key
    assert all(f"{alias}.{column} = " in cte.body for column in given)


async def test_on_conflict_names_a_unique_index(catalog: psycopg.AsyncConnection[Any]) -> None:
    arbiter = r"INSERT INTO (\w+)(?:(?!INSERT INTO).)*?ON CONFLICT \(([^)]*)\)(?: WHERE (.*?))? DO (?:NOTHING|UPDATE)"
    for name, text in STATEMENTS.items():
        wanted = re.findall(arbiter, text, re.DOTALL)
        assert len(wanted) == text.count("ON CONFLICT"), name
        for table, columns, predicate in wanted:
            assert (columns, predicate) in await unique_indexes(catalog, table), name


# --- migrations ---


def test_a_step_is_one_statement_that_may_be_run_again() -> None:
    for name, text in STEPS.items():
        assert ";" not in without_literals(text), name
        assert text.startswith(IDEMPOTENT), name
        assert not text.startswith("INSERT") or "ON CONFLICT" in text, name


def test_a_step_has_nothing_that_only_one_engine_has() -> None:
    assert offenders({name: found_in(text, BANNED_IN_STEPS) for name, text in STEPS.items()}) == {}


@pytest.mark.parametrize("engine", ["pg", "crdb"])
def test_what_is_for_one_engine_is_storage_or_a_listing_index(engine: str) -> None:
    allowed = re.compile(r"ALTER TABLE \w+ (SET \(|CONFIGURE ZONE)|CREATE INDEX")
    special = {step.name: step.statement for step in load_steps() if step.engine == engine}
    assert [name for name, text in special.items() if not allowed.match(text)] == []


async def primary_key(catalog: psycopg.AsyncConnection[Any], table: str) -> list[str]:
    cursor = await catalog.execute(
        "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = %s::regclass AND indisprimary", (table,)
    )
    ((definition,),) = await cursor.fetchall()
    return definition[definition.index("(") + 1 : -1].split(", ")


async def unique_indexes(catalog: psycopg.AsyncConnection[Any], table: str) -> set[tuple[str, str]]:
    """Columns and predicate of each unique index of a table."""
    cursor = await catalog.execute(
        "SELECT pg_get_indexdef(indexrelid), pg_get_expr(indpred, indrelid) FROM pg_index"
        " WHERE indrelid = %s::regclass AND indisunique",
        (table,),
    )
    return {
        (re.search(r"\(([^)]*)\)", definition)[1], (predicate or "").strip("()"))
        for definition, predicate in await cursor.fetchall()
    }
