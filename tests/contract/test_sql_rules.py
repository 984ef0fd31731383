"""The rules that let one SQL text serve CockroachDB and PostgreSQL, held by reading the text (docs/schema.md)."""

from __future__ import annotations

import re

import pytest

from taskexecutor_common.store.migrate import load_steps
from taskexecutor_common.store.statements import STATEMENTS
from tests.support.sql_lint import lint, lint_step, read_schema

STEPS = load_steps()
SCHEMA = read_schema(STEPS)

EXCEPTIONS = {
    ("claim_executions", "locks_in_key_order"): (
        "its limit is a queue's quota: a queue must not take the places of its neighbours"
    ),
    ("finalise_executions", "locks_in_key_order"): (
        "it needs all endpoints of its batch, and no more: a limit would lose what the others have to be told"
    ),
    ("finalise_executions", "has_constructs_of_both"): (
        "as a join PostgreSQL may read all leases of the worker; CockroachDB finds the leases by worker_id besides"
    ),
    ("find_endpoint_ids", "repeats_predicates_of_partial_indexes"): (
        "it finds deleted endpoints, too, which no index of names holds: a rare read of a small table"
    ),
}
"""What breaks a rule and stays, with the reason."""


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_keeps_the_rules(name: str) -> None:
    excused = {rule for statement, rule in EXCEPTIONS if statement == name}
    found = lint(STATEMENTS[name], SCHEMA)
    assert {rule: complaints for rule, complaints in found.items() if rule not in excused} == {}


@pytest.mark.parametrize(("name", "rule"), EXCEPTIONS)
def test_an_exception_is_still_needed(name: str, rule: str) -> None:
    assert rule in lint(STATEMENTS[name], SCHEMA)


@pytest.mark.parametrize("step", [step for step in STEPS if step.engine == "both"], ids=lambda step: step.name)
def test_a_step_keeps_the_rules(step) -> None:
    assert lint_step(step.statement, SCHEMA) == {}


@pytest.mark.parametrize("step", [step for step in STEPS if step.engine != "both"], ids=lambda step: step.name)
def test_what_is_for_one_engine_is_storage_or_a_listing_index(step) -> None:
    """What CockroachDB alone reads PostgreSQL's parser cannot."""
    assert re.match(r"ALTER TABLE \w+ (SET \(|CONFIGURE ZONE)|CREATE INDEX IF NOT EXISTS ", step.statement)
    assert ";" not in step.statement


def test_the_names_of_the_migrations_bookkeeping_are_no_names_of_the_schema() -> None:
    assert {"schema_migrations", "schema_lock"} & SCHEMA.tables.keys() == set()
