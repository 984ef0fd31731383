"""A linter for SQL that CockroachDB and PostgreSQL are to read alike: rules over the trees of PostgreSQL's own parser."""

from __future__ import annotations

from tests.support.sql_lint.rules import RULES, lint
from tests.support.sql_lint.schema import Schema, read_schema
from tests.support.sql_lint.steps import RULES_OF_STEPS, lint_step

__all__ = ["RULES", "RULES_OF_STEPS", "Schema", "lint", "lint_step", "read_schema"]
