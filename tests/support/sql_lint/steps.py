"""The rules for migration steps, one function each: what is wrong with a step, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pglast import ast
from pglast.enums import AlterTableType, ConstrType
from pglast.parser import ParseError

from tests.support.sql_lint.names import Names
from tests.support.sql_lint.rules import RULES, TYPES, Statement, spells_integers_out
from tests.support.sql_lint.schema import Schema
from tests.support.sql_lint.tree import function_name, parse, type_name, walk

StepRule = Callable[[ast.Node], Iterator[str]]

_CONSTRAINTS = {
    ConstrType.CONSTR_PRIMARY,
    ConstrType.CONSTR_CHECK,
    ConstrType.CONSTR_NOTNULL,
    ConstrType.CONSTR_DEFAULT,
}
_COMMANDS = {AlterTableType.AT_AddColumn, AlterTableType.AT_DropColumn, AlterTableType.AT_SetRelOptions}


def may_be_run_again(step: ast.Node) -> Iterator[str]:
    """A crash between a step and its record runs it twice."""
    match step:
        case ast.CreateStmt() | ast.IndexStmt():
            is_repeatable = step.if_not_exists
        case ast.ViewStmt():
            is_repeatable = step.replace
        case ast.DropStmt():
            is_repeatable = step.missing_ok
        case ast.InsertStmt():
            is_repeatable = step.onConflictClause is not None
        case ast.AlterTableStmt():
            is_repeatable = all(c.missing_ok or c.subtype == AlterTableType.AT_SetRelOptions for c in step.cmds)
        case _:
            yield f"{type(step).__name__} is no kind of step that is known to be repeatable"
            return
    if not is_repeatable:
        yield "running it twice fails, or does something else"


def has_column_types_of_both(step: ast.Node) -> Iterator[str]:
    """See rules.TYPES."""
    for column in _all(step, ast.ColumnDef):
        if (name := type_name(column.typeName).removesuffix("[]")) not in TYPES:
            yield f"{column.colname} is of type {name}"


def has_constraints_of_both(step: ast.Node) -> Iterator[str]:
    """A foreign key writes to its parent's row; a UNIQUE constraint cannot be dropped on CockroachDB, an index can."""
    for constraint in _all(step, ast.Constraint):
        if constraint.contype not in _CONSTRAINTS:
            yield f"a constraint of kind {constraint.contype.name.removeprefix('CONSTR_')}"
        if constraint.deferrable or constraint.initdeferred:
            yield "DEFERRABLE"
        if constraint.raw_expr and constraint.contype == ConstrType.CONSTR_DEFAULT:
            calls = {function_name(call) for call in _all(constraint.raw_expr, ast.FuncCall)}
            if calls - {"now"}:
                yield f"a default of {', '.join(sorted(calls))}"


def has_a_primary_key(step: ast.Node) -> Iterator[str]:
    """Named, of columns that are said to be NOT NULL."""
    if not isinstance(step, ast.CreateStmt):
        return
    keys = [e for e in step.tableElts if isinstance(e, ast.Constraint) and e.contype == ConstrType.CONSTR_PRIMARY]
    if len(keys) != 1 or not keys[0].conname:
        yield "no named primary key"
        return
    never_null = {
        column.colname
        for column in _all(step, ast.ColumnDef)
        if any(c.contype == ConstrType.CONSTR_NOTNULL for c in column.constraints or ())
    }
    for name in {key.sval for key in keys[0].keys} - never_null:
        yield f"{name} is of the primary key and may be NULL"


def has_tables_of_both(step: ast.Node) -> Iterator[str]:
    """Storage is for steps of one engine."""
    if isinstance(step, ast.CreateStmt) and (
        step.partspec or step.inhRelations or step.options or step.tablespacename or step.relation.relpersistence != "p"
    ):
        yield "a table with partitions, parents, options, or one that does not last"


def has_indexes_of_both(step: ast.Node) -> Iterator[str]:
    """Plain columns, plain B-trees; a predicate that is decided by the row alone."""
    if not isinstance(step, ast.IndexStmt):
        return
    if step.accessMethod != "btree" or step.options or step.nulls_not_distinct or step.concurrent:
        yield "an index of another kind than both have"
    for element in step.indexParams:
        if element.expr or element.collation or element.opclass:
            yield "an index of something else than columns"
    if step.whereClause and any(_all(step.whereClause, ast.FuncCall)):
        yield "a predicate that calls a function"


def alters_what_both_can(step: ast.Node) -> Iterator[str]:
    """A new column may be NULL, or has a fixed default: neither engine has to rewrite the table for it."""
    for command in step.cmds if isinstance(step, ast.AlterTableStmt) else ():
        if command.subtype not in _COMMANDS:
            yield f"ALTER TABLE with {command.subtype.name.removeprefix('AT_')}"
        if command.subtype == AlterTableType.AT_AddColumn:
            kinds = {c.contype: c for c in command.def_.constraints or ()}
            default = kinds.get(ConstrType.CONSTR_DEFAULT)
            if ConstrType.CONSTR_NOTNULL in kinds and default is None:
                yield f"{command.def_.colname} is NOT NULL and has no default"
            if default is not None and any(_all(default.raw_expr, ast.FuncCall)):
                yield f"{command.def_.colname} has a default that is not fixed"


RULES_OF_STEPS: tuple[StepRule, ...] = (
    may_be_run_again,
    has_column_types_of_both,
    has_constraints_of_both,
    has_a_primary_key,
    has_tables_of_both,
    has_indexes_of_both,
    alters_what_both_can,
)


def lint_step(text: str, schema: Schema) -> dict[str, list[str]]:
    """What is wrong with a step that both engines run, by rule; a view or an INSERT also obeys the rules of statements."""
    try:
        trees = parse(text)
    except ParseError as error:
        return {"is_one_statement": [str(error)]}
    if len(trees) != 1:
        return {"is_one_statement": [f"{len(trees)} statements"]}
    (step,) = trees
    found = {rule.__name__: list(rule(step)) for rule in RULES_OF_STEPS}
    found["has_column_types_of_both"] += spells_integers_out(text)
    query = step.query if isinstance(step, ast.ViewStmt) else step
    if isinstance(query, ast.SelectStmt | ast.InsertStmt):
        statement = Statement(text, query, Names(query, schema), schema)
        found |= {rule.__name__: list(rule(statement)) for rule in RULES}
    return {rule: complaints for rule, complaints in found.items() if complaints}


def _all(node: Any, kind: type[ast.Node]) -> Iterator[Any]:
    return (each for each, _ in walk(node) if isinstance(each, kind))
