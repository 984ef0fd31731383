"""The migration runner on real databases."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import psycopg
import pytest

from taskexecutor_common.store.migrate import MigrationError, load_steps, migrate

SCHEMA = """
    SELECT table_name, column_name, data_type, is_nullable, column_default, NULL AS definition
    FROM information_schema.columns WHERE table_schema = 'public'
    UNION ALL SELECT tablename, indexname, NULL, NULL, NULL, indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL SELECT conrelid::regclass::text, conname, NULL, NULL, NULL, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT viewname, NULL, NULL, NULL, NULL, definition FROM pg_views WHERE schemaname = 'public'
    UNION ALL SELECT relname, 'storage', NULL, NULL, NULL, reloptions::text FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND reloptions IS NOT NULL
    ORDER BY 1, 2, 3, 6"""
OURS = [step for step in load_steps() if step.engine in ("both", "pg")]


async def query(url: str, statement: Any, *parameters: Any) -> list[tuple[Any, ...]]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        cursor = await connection.execute(statement, parameters)
        return await cursor.fetchall() if cursor.description else []


async def test_a_new_database_gets_every_step_in_order(empty_database_url: str) -> None:
    assert await migrate(empty_database_url) == [step.name for step in OURS]


async def test_a_second_run_changes_nothing(empty_database_url: str) -> None:
    await migrate(empty_database_url)
    before = await query(empty_database_url, SCHEMA)
    assert await migrate(empty_database_url) == []
    assert await query(empty_database_url, SCHEMA) == before


async def test_a_run_that_lost_its_records_changes_nothing_either(empty_database_url: str) -> None:
    """Each step is run twice: it is what a crash between a step and its record comes to."""
    await migrate(empty_database_url)
    before = await query(empty_database_url, SCHEMA)
    await query(empty_database_url, "DELETE FROM schema_migrations")
    assert await migrate(empty_database_url) == [step.name for step in OURS]
    assert await query(empty_database_url, SCHEMA) == before


async def test_a_run_that_was_cut_short_is_finished_by_the_next(empty_database_url: str) -> None:
    await migrate(empty_database_url)
    await query(empty_database_url, "DROP VIEW job_details")
    await query(empty_database_url, "DELETE FROM schema_migrations WHERE step = '0002_views:job_details'")
    assert await migrate(empty_database_url) == ["0002_views:job_details"]


async def test_two_runners_at_once_both_end_well(empty_database_url: str) -> None:
    applied = await asyncio.gather(migrate(empty_database_url), migrate(empty_database_url))
    assert sorted(itertools.chain(*applied)) == sorted(step.name for step in OURS)


async def test_the_lock_of_a_runner_that_died_lapses(empty_database_url: str) -> None:
    await migrate(empty_database_url)
    await query(
        empty_database_url,
        "INSERT INTO schema_lock VALUES ('migrate', '00000000-0000-0000-0000-000000000000', now() - interval '1 s')",
    )
    assert await migrate(empty_database_url) == []


async def test_a_step_that_changed_after_it_ran_is_refused(empty_database_url: str) -> None:
    await migrate(empty_database_url)
    await query(empty_database_url, "UPDATE schema_migrations SET checksum = 'old' WHERE step = '0001_initial:jobs'")
    with pytest.raises(MigrationError, match="0001_initial:jobs has changed"):
        await migrate(empty_database_url)


async def test_a_refused_run_leaves_no_lock_behind(empty_database_url: str) -> None:
    await migrate(empty_database_url)
    await query(empty_database_url, "UPDATE schema_migrations SET checksum = 'old'")
    with pytest.raises(MigrationError):
        await migrate(empty_database_url)
    assert await query(empty_database_url, "SELECT name FROM schema_lock") == []
