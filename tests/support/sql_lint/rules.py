"""The rules for statements, one function each: what is wrong with a statement, in words. docs/schema.md says why.

A rule sees a `Statement` and yields a complaint for each place that breaks it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pglast import ast
from pglast.enums import (
    A_Expr_Kind,
    CTEMaterialize,
    LimitOption,
    LockClauseStrength,
    LockWaitPolicy,
    OnConflictAction,
    SetOperation,
    SortByDir,
    SubLinkType,
)
from pglast.parser import ParseError, scan

from tests.support.sql_lint.names import Names, Search
from tests.support.sql_lint.schema import Schema
from tests.support.sql_lint.tree import (
    WRITES,
    Parents,
    alias_of,
    column_path,
    function_name,
    inside_cte,
    level,
    operator,
    parse,
    sql,
    type_name,
    walk,
)
from tests.support.sql_text import numbered

TYPES = {"uuid", "text", "bytea", "int8", "int4", "int2", "jsonb", "timestamptz", "bool", "float8"}
"""As the parser names them: BIGINT, INTEGER, SMALLINT, BOOLEAN and DOUBLE PRECISION are among them."""

# Both engines have them, and mean the same. Not here, because CockroachDB has not: make_interval, date_bin, justify_*,
# pg_*, hashtext, txid_current, uuidv7. Not here, because Python does it: random, gen_random_uuid, md5, sha256.
FUNCTIONS = {
    *(
        "now",
        "clock_timestamp",
        "extract",
        "count",
        "min",
        "max",
        "sum",
        "avg",
        "percentile_cont",
        "array_agg",
        "jsonb_agg",
    ),
    *("unnest", "cardinality", "array_length", "jsonb_to_recordset", "jsonb_build_object", "jsonb_array_elements"),
    *("decode", "encode", "lower", "upper", "length", "floor", "row_number"),
}
AGGREGATES = {"count", "min", "max", "sum", "avg", "percentile_cont", "array_agg", "jsonb_agg"}
INEXACT = {"extract", "sum", "avg"}
"""numeric on one engine, another type on the other: what comes out is cast."""
OPERATORS = {"=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "IN", "BETWEEN", "DISTINCT", "NOT_DISTINCT", "NULLIF"}

CONSTRUCTS = {
    ast.MergeStmt: "MERGE",
    ast.RangeTableSample: "TABLESAMPLE",
    ast.RangeTableFunc: "a table function of XML or JSON",
    ast.GroupingSet: "GROUPING SETS, CUBE or ROLLUP",
    ast.NamedArgExpr: "an argument by name",
    ast.SQLValueFunction: "CURRENT_TIMESTAMP and its like: write now()",
    ast.CollateClause: "COLLATE",
    ast.CurrentOfExpr: "WHERE CURRENT OF",
    ast.IntoClause: "SELECT INTO",
    ast.A_Indirection: "a part of a value",
}

_STATEMENTS = (ast.SelectStmt, ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement as the rules look at it: `text` with placeholders as `$1`."""

    text: str
    tree: ast.Node
    names: Names
    schema: Schema

    @property
    def nodes(self) -> Iterator[tuple[ast.Node, Parents]]:
        """All nodes with their parents."""
        return walk(self.tree)

    def all(self, *kinds: type[ast.Node]) -> Iterator[tuple[Any, Parents]]:
        """All nodes of these kinds with their parents."""
        return ((node, parents) for node, parents in self.nodes if isinstance(node, kinds))


Rule = Callable[[Statement], Iterator[str]]


# --- what is written ---


def writes_each_table_once(statement: Statement) -> Iterator[str]:
    """CockroachDB refuses a second change of a table in one statement."""
    written = Counter(write.relation.relname for write, _ in statement.all(*WRITES))
    yield from (f"{table} is written {times} times" for table, times in written.items() if times > 1)


def writes_at_the_top_only(statement: Statement) -> Iterator[str]:
    """CockroachDB refuses writes in a CTE of a CTE, or of a sub-select."""
    for write, parents in statement.all(*WRITES):
        names = [type(parent).__name__ for parent in parents]
        is_top_cte = names[1:] == ["WithClause", "CommonTableExpr"]
        if parents and not is_top_cte:
            yield f"{write.relation.relname} is written below the top"


def lists_its_columns(statement: Statement) -> Iterator[str]:
    """A prepared `SELECT *` breaks when a column is added."""
    for _ in statement.all(ast.A_Star):
        yield "a star instead of columns"
    for insert, _ in statement.all(ast.InsertStmt):
        if not insert.cols:
            yield f"INSERT INTO {insert.relation.relname} without its columns"


def conflicts_on_a_unique_index(statement: Statement) -> Iterator[str]:
    """PostgreSQL wants a partial index's predicate said; without a target nobody knows which conflict is meant."""
    for insert, _ in statement.all(ast.InsertStmt):
        clause = insert.onConflictClause
        if clause is None:
            continue
        if clause.infer is None or clause.infer.conname or any(each.expr for each in clause.infer.indexElems or ()):
            yield "ON CONFLICT names no columns"
            continue
        columns = tuple(each.name for each in clause.infer.indexElems)
        predicate = sql(clause.infer.whereClause) if clause.infer.whereClause else None
        indexes = statement.schema.tables[insert.relation.relname].indexes
        if not any(i.is_unique and (i.columns, i.predicate) == (columns, predicate) for i in indexes):
            yield f"no unique index of {insert.relation.relname} is ({', '.join(columns)}) WHERE {predicate}"
        if clause.action == OnConflictAction.ONCONFLICT_UPDATE and set(columns) & _assigned(clause):
            yield "ON CONFLICT changes its own key"


def _assigned(clause: ast.OnConflictClause) -> set[str]:
    return {target.name for target in clause.targetList}


# --- what both engines have ---


def has_types_of_both(statement: Statement) -> Iterator[str]:
    """Types outside the list are absent, or of another size, on one of the engines."""
    for node, parents in statement.all(ast.TypeName):
        name = type_name(node).removesuffix("[]")
        cast = parents[-1]
        is_literal = name == "interval" and isinstance(cast, ast.TypeCast) and isinstance(cast.arg, ast.A_Const)
        if name not in TYPES and not is_literal:
            yield f"the type {name}"
    yield from spells_integers_out(statement.text)


def spells_integers_out(text: str) -> Iterator[str]:
    """The tree does not tell INT from INTEGER."""
    if any(token.name == "INT_P" for token in scan(text)):
        yield "INT: 64 bits on CockroachDB, write INTEGER or BIGINT"


def has_functions_of_both(statement: Statement) -> Iterator[str]:
    """See FUNCTIONS."""
    for call, _ in statement.all(ast.FuncCall):
        if (name := function_name(call)) not in FUNCTIONS:
            yield f"the function {name}"


def has_operators_of_both(statement: Statement) -> Iterator[str]:
    """A quotient of integers is a decimal on CockroachDB, and cut off on PostgreSQL."""
    for node, parents in statement.all(ast.A_Expr):
        name = operator(node)
        if name not in OPERATORS:
            yield f"the operator {name}"
        if name == "/":
            query = _query_of(parents)
            if "float8" not in {statement.names.typed(side, query).type for side in (node.lexpr, node.rexpr)}:
                yield f"{sql(node)}: a division that may be one of integers"


def has_constructs_of_both(statement: Statement) -> Iterator[str]:
    """What one of the engines has not, or means otherwise."""
    for node, parents in statement.nodes:
        if what := CONSTRUCTS.get(type(node)):
            yield what
        if isinstance(node, ast.A_Const) and getattr(node.val, "sval", "").strip("-+") == "infinity":
            yield "infinity: CockroachDB makes a date of it"
        if isinstance(node, ast.SelectStmt) and node.limitOption == LimitOption.LIMIT_OPTION_WITH_TIES:
            yield "WITH TIES"
        if isinstance(node, ast.SubLink) and node.subLinkType == SubLinkType.ARRAY_SUBLINK and _is_searched_by(parents):
            yield "= ANY (ARRAY (SELECT ...)): an array made on the way may not narrow a walk on CockroachDB"
        if isinstance(node, ast.SubLink) and node.subselect.lockingClause:
            yield "a sub-select that locks in a condition: PostgreSQL may run it again; write a CTE"


def _is_searched_by(parents: Parents) -> bool:
    return isinstance(parents[-1], ast.A_Expr) and parents[-1].kind == A_Expr_Kind.AEXPR_OP_ANY


def casts_what_is_inexact(statement: Statement) -> Iterator[str]:
    """See INEXACT."""
    for call, parents in statement.all(ast.FuncCall):
        if function_name(call) in INEXACT and not _is_cast(call, parents):
            yield f"{function_name(call)} without a cast"


def _is_cast(node: ast.Node, parents: Parents) -> bool:
    """Whether a value, or what it is calculated into, is cast before anybody sees it."""
    for parent in reversed(parents):
        if isinstance(parent, ast.TypeCast):
            return True
        if not isinstance(parent, ast.A_Expr | ast.CoalesceExpr | ast.MinMaxExpr):
            return False
    return False


def casts_its_placeholders(statement: Statement) -> Iterator[str]:
    """Strings are of unknown type on one engine and text on the other, and a type is inferred anew at each use."""
    for node, parents in statement.all(ast.ParamRef):
        if not isinstance(parents[-1], ast.TypeCast):
            yield f"${node.number} without a cast"


# --- how it is searched ---


def orders_by_what_is_never_null(statement: Statement) -> Iterator[str]:
    """NULLs come first on CockroachDB and last on PostgreSQL."""
    for select, _ in statement.all(ast.SelectStmt):
        for sort in select.sortClause or ():
            if not statement.names.typed(sort.node, select).is_never_null:
                yield f"ORDER BY {sql(sort.node)}, which may be NULL"


def repeats_predicates_of_partial_indexes(statement: Statement) -> Iterator[str]:
    """A partial index is used only where its predicate is said, word for word and without parameters."""
    for search in statement.names.searches:
        indexes = [i for i in statement.schema.tables[search.table].indexes if i.columns[0] in search.compared]
        if any(index.predicate is None for index in indexes):
            continue
        if indexes and not any(index.predicate in search.conditions for index in indexes):
            wanted = " or ".join(f"{index.predicate} ({index.name})" for index in indexes)
            yield f"{search.table} is searched by {indexes[0].columns[0]} without {wanted}"


# --- how it locks ---


def locks_plain_rows(statement: Statement) -> Iterator[str]:
    """FOR UPDATE, of rows of one table as they are: nothing that joins, groups or sorts several into one."""
    for select, _ in _locking(statement):
        for clause in select.lockingClause:
            if clause.strength != LockClauseStrength.LCS_FORUPDATE:
                yield "a lock other than FOR UPDATE: it locks nothing, or something else, on CockroachDB"
            if clause.waitPolicy == LockWaitPolicy.LockWaitError:
                yield "NOWAIT"
        calls = [node for node in level(select.targetList) if isinstance(node, ast.FuncCall)]
        if (
            select.distinctClause
            or select.groupClause
            or select.havingClause
            or select.op != SetOperation.SETOP_NONE
            or any(call.over or function_name(call) in AGGREGATES for call in calls)
        ):
            yield "FOR UPDATE beside DISTINCT, GROUP BY, an aggregate, a window or UNION"
        if [type(item) for item in _locked(select)] != [ast.RangeVar]:
            yield "FOR UPDATE of other than one table"


def locks_in_key_order(statement: Statement) -> Iterator[str]:
    """One row by a unique index, or a limited walk of the primary key in a CTE.

    It is the plan by which SKIP LOCKED locks no more than it takes on CockroachDB, and the order in which two that lock many
    wait for each other in line.
    """
    for select, parents in _locking(statement):
        tables = statement.names.scope(select).tables
        for item in _locked(select):
            search = next((column.search for column in tables[alias_of(item)].values()), None)
            if search is None or _is_single(search, statement):
                continue
            cte = inside_cte(parents)
            if cte is None or cte.ctematerialized != CTEMaterialize.CTEMaterializeAlways:
                yield f"{search.table} is locked outside of a materialized CTE"
            if not _walks_key(select, item, search, statement):
                yield f"{search.table} is locked in another order than that of its primary key"
            if not isinstance(select.limitCount, ast.A_Const):
                yield f"{search.table} is locked without a literal LIMIT"


def _locking(statement: Statement) -> Iterator[tuple[ast.SelectStmt, Parents]]:
    return ((select, parents) for select, parents in statement.all(ast.SelectStmt) if select.lockingClause)


def _locked(select: ast.SelectStmt) -> list[ast.RangeVar]:
    named = {relation.relname for clause in select.lockingClause for relation in clause.lockedRels or ()}
    tables = [node for node in level(select.fromClause) if isinstance(node, ast.RangeVar)]
    others = [node for node in level(select.fromClause) if isinstance(node, ast.RangeSubselect | ast.RangeFunction)]
    if not named:
        return [*tables, *others]
    return [table for table in tables if alias_of(table) in named]


def _is_single(search: Search, statement: Statement) -> bool:
    return any(
        index.is_unique
        and set(index.columns) <= search.equal
        and (index.predicate is None or index.predicate in search.conditions)
        for index in statement.schema.tables[search.table].indexes
    )


def _walks_key(select: ast.SelectStmt, item: ast.RangeVar, search: Search, statement: Statement) -> bool:
    """ORDER BY is the primary key from its start on; columns that are fixed by the WHERE may be left out."""
    key = statement.schema.tables[search.table].key
    ordered = [_plain_order(sort, alias_of(item)) for sort in select.sortClause or ()]
    starts = [n for n in range(len(key)) if set(key[:n]) <= search.equal]
    return bool(ordered) and any(tuple(ordered) == key[n : n + len(ordered)] for n in starts)


def _plain_order(sort: ast.SortBy, alias: str) -> str | None:
    path = column_path(sort.node)
    is_plain = sort.sortby_dir in (SortByDir.SORTBY_DEFAULT, SortByDir.SORTBY_ASC)
    return path[1] if is_plain and path and len(path) == 2 and path[0] == alias else None


def _query_of(parents: Parents) -> ast.Node:
    return next(parent for parent in reversed(parents) if isinstance(parent, (ast.SelectStmt, *WRITES)))


RULES: tuple[Rule, ...] = (
    writes_each_table_once,
    writes_at_the_top_only,
    lists_its_columns,
    conflicts_on_a_unique_index,
    has_types_of_both,
    has_functions_of_both,
    has_operators_of_both,
    has_constructs_of_both,
    casts_what_is_inexact,
    casts_its_placeholders,
    orders_by_what_is_never_null,
    repeats_predicates_of_partial_indexes,
    locks_plain_rows,
    locks_in_key_order,
)


def lint(text: str, schema: Schema, rules: Iterable[Rule] = RULES) -> dict[str, list[str]]:
    """What is wrong with a statement (placeholders as `%(name)s`), by rule."""
    text = numbered(text)[0]
    try:
        trees = parse(text)
    except ParseError as error:
        return {"is_one_statement": [str(error)]}
    if len(trees) != 1 or not isinstance(trees[0], _STATEMENTS):
        return {"is_one_statement": ["not one SELECT, INSERT, UPDATE or DELETE"]}
    statement = Statement(text, trees[0], Names(trees[0], schema), schema)
    found = {rule.__name__: list(rule(statement)) for rule in rules}
    return {rule: complaints for rule, complaints in found.items() if complaints}
