"""Which table a name in a query means, and what is known of it: its type, whether it can be NULL, how its table is searched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from pglast import ast
from pglast.enums import A_Expr_Kind, JoinType, NullTestType, SetOperation, SubLinkType

from tests.support.sql_lint.schema import Schema
from tests.support.sql_lint.tree import (
    alias_of,
    column_path,
    conjuncts,
    function_name,
    level,
    operator,
    returning,
    sql,
    type_name,
)

_COMPARISONS = {"=", "<", "<=", ">", ">=", "IN", "BETWEEN"}
_NEVER_NULL = {"now", "clock_timestamp", "count"}


@dataclass(eq=False, slots=True)
class Search:
    """One table where it stands in a query: the conditions on it alone, and the columns that are compared with something."""

    table: str
    conditions: set[str] = field(default_factory=set)
    """As `tree.sql` writes them, columns without their alias."""
    compared: set[str] = field(default_factory=set)
    equal: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Column:
    """What is known of a value."""

    type: str | None = None
    is_never_null: bool = False
    search: Search | None = None
    """The table that it comes from as it is."""
    name: str = ""
    """Its name there."""


UNKNOWN = Column()
Columns = dict[str, Column]


@dataclass(eq=False, slots=True)
class Scope:
    """The names of one query."""

    outer: Scope | None = None
    tables: dict[str, Columns] = field(default_factory=dict)
    never_null: set[str] = field(default_factory=set)
    """Columns, as written, whose NULLs a condition leaves out."""

    def find(self, node: Any) -> Column:
        """The column that a name means."""
        path = column_path(node)
        if path is None:
            return UNKNOWN
        found = self._own(path) or (self.outer.find(node) if self.outer else UNKNOWN)
        return replace(found, is_never_null=True) if ".".join(path) in self.never_null else found

    def own(self, node: Any) -> Column:
        """The same among the tables of this query alone."""
        path = column_path(node)
        return (path and self._own(path)) or UNKNOWN

    def has(self, node: Any) -> bool:
        """Whether a name is one of this query's own tables."""
        path = column_path(node)
        return path is not None and self._own(path) is not None

    def _own(self, path: list[str]) -> Column | None:
        if len(path) == 2:
            return self.tables.get(path[0], {}).get(path[1])
        return next((columns[path[0]] for columns in self.tables.values() if path[0] in columns), None)


class Names:
    """All names of a statement, resolved. `scopes` are by query, `searches` in the order of the text."""

    def __init__(self, statement: ast.Node, schema: Schema) -> None:
        self._schema = schema
        self.scopes: dict[int, Scope] = {}
        self.searches: list[Search] = []
        self._read(statement, None, {})

    def scope(self, query: ast.Node) -> Scope:
        """The names of a query of this statement."""
        return self.scopes[id(query)]

    # --- queries ---

    def _read(self, query: ast.Node, outer: Scope | None, ctes: dict[str, Columns]) -> Columns:
        """Resolves a query and answers its columns."""
        ctes = self._read_ctes(query, ctes)
        if isinstance(query, ast.SelectStmt) and query.op != SetOperation.SETOP_NONE:
            left, right = self._read(query.larg, outer, ctes), self._read(query.rarg, outer, ctes)
            self.scopes[id(query)] = Scope(outer, {"": left})
            pairs = zip(left.items(), right.values(), strict=False)
            return {name: Column(a.type, a.is_never_null and b.is_never_null) for name, (a, b) in _paired(pairs)}
        scope = self.scopes[id(query)] = Scope(outer)
        conditions = [found for item in _sources(query) for found in self._add(item, scope, ctes)]
        if isinstance(query, ast.InsertStmt):
            if query.selectStmt:
                self._read(query.selectStmt, outer, ctes)
        else:
            conditions += [(part, True) for part in conjuncts(getattr(query, "whereClause", None))]  # MERGE has none
        for condition, is_binding in conditions:
            _note(condition, scope, is_binding)
        for node in level(tuple(getattr(query, a) for a in query if a not in ("withClause", "selectStmt"))):
            if isinstance(node, ast.SubLink):
                self._read(node.subselect, scope, ctes)
        targets = query.targetList if isinstance(query, ast.SelectStmt) else returning(query)
        return {_output_name(target): self._typed(target.val, scope) for target in targets or ()}

    def _read_ctes(self, query: ast.Node, ctes: dict[str, Columns]) -> dict[str, Columns]:
        clause = query.withClause
        for cte in clause.ctes if clause else ():
            given = [name.sval for name in cte.aliascolnames or ()]
            columns = self._read(cte.ctequery, None, ctes | {cte.ctename: dict.fromkeys(given, UNKNOWN)})
            # What is computed first is not searched by the conditions of those who read it.
            here = {name: Column(c.type, c.is_never_null) for name, c in columns.items()}
            ctes = ctes | {cte.ctename: dict(zip(given or here, here.values(), strict=True))}
        return ctes

    def _add(
        self, item: ast.Node, scope: Scope, ctes: dict[str, Columns], is_optional: bool = False
    ) -> Iterator[tuple[ast.Node, bool]]:
        """Adds what a FROM names. Yields the conditions of its joins, and whether all rows of the query meet them."""
        match item:
            case ast.JoinExpr():
                is_left = item.jointype == JoinType.JOIN_LEFT
                yield from self._add(item.larg, scope, ctes, is_optional)
                yield from self._add(item.rarg, scope, ctes, is_optional or is_left)
                yield from ((part, not is_left and not is_optional) for part in conjuncts(item.quals))
                return
            case ast.RangeTableSample():
                yield from self._add(item.relation, scope, ctes, is_optional)
                return
            case ast.RangeVar():
                columns = self._columns_of(item, ctes)
                name = alias_of(item)
            case ast.RangeSubselect():
                columns, name = self._read(item.subquery, scope, ctes), item.alias.aliasname
            case ast.RangeFunction():
                columns, name = _function_columns(item), item.alias.aliasname
            case _:
                raise NotImplementedError(type(item))
        if is_optional:
            columns = {column: replace(known, is_never_null=False) for column, known in columns.items()}
        scope.tables[name] = columns

    def _columns_of(self, item: ast.RangeVar, ctes: dict[str, Columns]) -> Columns:
        if item.relname in ctes:
            return ctes[item.relname]
        if item.relname in self._schema.views:
            return self._read(self._schema.views[item.relname], None, {})
        search = Search(item.relname)
        self.searches.append(search)
        known = self._schema.tables[item.relname].columns
        return {name: Column(type_, not_null, search, name) for name, (type_, not_null) in known.items()}

    # --- values ---

    def typed(self, node: Any, query: ast.Node) -> Column:
        """What is known of a value in a query."""
        return self._typed(node, self.scope(query))

    def _typed(self, node: Any, scope: Scope) -> Column:
        match node:
            case ast.ColumnRef():
                return scope.find(node)
            case ast.TypeCast():
                return Column(type_name(node.typeName), self._typed(node.arg, scope).is_never_null)
            case ast.A_Const():
                return Column(None, not node.isnull)
            case ast.FuncCall():
                return Column(None, function_name(node) in _NEVER_NULL)
            case ast.CoalesceExpr() | ast.MinMaxExpr():
                parts = [self._typed(part, scope) for part in node.args]
                return Column(_wider(parts), any(part.is_never_null for part in parts))
            case ast.CaseExpr():
                parts = [self._typed(each.result, scope) for each in node.args]
                parts.append(self._typed(node.defresult, scope))
                return Column(_wider(parts), all(part.is_never_null for part in parts))
            case ast.A_Expr():
                parts = [self._typed(side, scope) for side in (node.lexpr, node.rexpr)]
                return Column(_wider(parts), all(part.is_never_null for part in parts))
        return UNKNOWN


def _paired(pairs: Any) -> Iterator[tuple[str, tuple[Column, Column]]]:
    for (name, left), right in pairs:
        yield name, (left, right)


def _wider(parts: list[Column]) -> str | None:
    """`float8` where one of the parts is: everything else that is calculated with it becomes one too."""
    return "float8" if any(part.type == "float8" for part in parts) else None


def _sources(query: ast.Node) -> list[ast.Node]:
    """What a query names as its tables."""
    more = getattr(query, "fromClause", None) or getattr(query, "usingClause", None) or ()
    return [*([query.relation] if hasattr(query, "relation") else []), *more]


def _output_name(target: ast.ResTarget) -> str:
    return target.name or (column_path(target.val) or [""])[-1]


def _function_columns(item: ast.RangeFunction) -> Columns:
    """Of `unnest(...) AS x (a, b)` and `f(...) AS x (a text, b uuid)`: nobody says that they are never NULL."""
    if item.coldeflist:
        return {each.colname: Column(type_name(each.typeName)) for each in item.coldeflist}
    return {name.sval: UNKNOWN for name in item.alias.colnames or ()}


def _note(condition: ast.Node, scope: Scope, is_binding: bool) -> None:
    """Takes down what a condition says of the tables of its query."""
    for node in [*_compared(condition), *_not_null(condition)] if is_binding else ():
        if path := column_path(node):
            scope.never_null.add(".".join(path))
    for node in _compared(condition):
        column = scope.own(node)
        others = [part for side in _compared(condition) if side is not node for part in level(side)]
        if column.search and all(scope.own(other).search is not column.search for other in others):
            column.search.compared.add(column.name)
            if _is_equality(condition) and not any(scope.has(other) for other in others):
                column.search.equal.add(column.name)
    columns = [node for node in level(condition) if isinstance(node, ast.ColumnRef)]
    searches = {scope.own(node).search for node in columns}
    if len(searches) == 1 and (search := searches.pop()):
        text = sql(condition)
        for node in columns:
            text = re.sub(rf"\b{re.escape(sql(node))}\b", scope.own(node).name, text)
        search.conditions.add(text)


def _is_equality(condition: ast.Node) -> bool:
    """`a = b`, which leaves one value; `a = ANY (b)` may leave many."""
    is_plain = isinstance(condition, ast.A_Expr) and condition.kind == A_Expr_Kind.AEXPR_OP
    return is_plain and operator(condition) == "=" and not isinstance(condition.lexpr, ast.RowExpr)


def _compared(condition: ast.Node) -> list[Any]:
    """The values that a condition compares with others; of rows, their first ones."""
    match condition:
        case ast.A_Expr() if operator(condition) in _COMPARISONS:
            sides = (condition.lexpr, condition.rexpr)
            return [side.args[0] if isinstance(side, ast.RowExpr) else side for side in sides]
        case ast.SubLink() if condition.subLinkType == SubLinkType.ANY_SUBLINK:
            return [condition.testexpr]
    return []


def _not_null(condition: ast.Node) -> list[Any]:
    is_test = isinstance(condition, ast.NullTest) and condition.nulltesttype == NullTestType.IS_NOT_NULL
    return [condition.arg] if is_test else []
