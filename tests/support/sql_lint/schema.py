"""The schema as the migrations say it: columns, indexes and views, without a database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pglast import ast
from pglast.enums import AlterTableType, ConstrType

from taskexecutor_common.store.migrate import Step
from tests.support.sql_lint.tree import parse, sql, type_name


@dataclass(frozen=True, slots=True)
class Index:
    """An index, the primary key among them."""

    name: str
    columns: tuple[str, ...]
    is_unique: bool
    predicate: str | None
    """As `tree.sql` writes it; None: it holds all rows."""


@dataclass(slots=True)
class Table:
    """A table: its columns as (type, is never NULL), its primary key, all its indexes."""

    columns: dict[str, tuple[str, bool]] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    indexes: list[Index] = field(default_factory=list)


@dataclass(slots=True)
class Schema:
    """All there is to refer to."""

    tables: dict[str, Table] = field(default_factory=dict)
    views: dict[str, ast.SelectStmt] = field(default_factory=dict)


def read_schema(steps: Iterable[Step]) -> Schema:
    """What the steps that PostgreSQL runs come to."""
    schema = Schema()
    for step in steps:
        if step.engine != "crdb":
            for statement in parse(step.statement):
                _apply(statement, schema)
    return schema


def _apply(statement: ast.Node, schema: Schema) -> None:
    match statement:
        case ast.CreateStmt():
            schema.tables[statement.relation.relname] = _table(statement)
        case ast.IndexStmt():
            columns = tuple(column.name for column in statement.indexParams)
            predicate = sql(statement.whereClause) if statement.whereClause else None
            index = Index(statement.idxname, columns, bool(statement.unique), predicate)
            schema.tables[statement.relation.relname].indexes.append(index)
        case ast.ViewStmt():
            schema.views[statement.view.relname] = statement.query
        case ast.AlterTableStmt():
            table = schema.tables[statement.relation.relname]
            for command in statement.cmds:
                if command.subtype == AlterTableType.AT_AddColumn:
                    table.columns |= _column(command.def_)


def _table(statement: ast.CreateStmt) -> Table:
    table = Table()
    for element in statement.tableElts:
        if isinstance(element, ast.ColumnDef):
            table.columns |= _column(element)
        elif element.contype == ConstrType.CONSTR_PRIMARY:
            table.key = tuple(key.sval for key in element.keys)
            table.indexes.append(Index(element.conname, table.key, True, None))
    return table


def _column(definition: ast.ColumnDef) -> dict[str, tuple[str, bool]]:
    is_never_null = any(c.contype == ConstrType.CONSTR_NOTNULL for c in definition.constraints or ())
    return {definition.colname: (type_name(definition.typeName), is_never_null)}
