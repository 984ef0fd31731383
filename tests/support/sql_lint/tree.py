"""PostgreSQL's own parser, and how its trees are walked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pglast import ast, parse_sql
from pglast.enums import A_Expr_Kind, BoolExprType
from pglast.stream import RawStream

Parents = tuple[ast.Node, ...]
"""From the statement down to the node's parent."""

WRITES = (ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt, ast.MergeStmt)


def parse(text: str) -> list[ast.Node]:
    """The statements in a text. Raises pglast.parser.ParseError."""
    return [raw.stmt for raw in parse_sql(text)]


def sql(node: ast.Node) -> str:
    """A node as text, always written the same way."""
    return RawStream()(node)


def walk(node: Any, parents: Parents = ()) -> Iterator[tuple[ast.Node, Parents]]:
    """A node and all below it, each with its parents."""
    if isinstance(node, tuple):
        for each in node:
            yield from walk(each, parents)
    elif isinstance(node, ast.Node):
        yield node, parents
        for attribute in node:
            yield from walk(getattr(node, attribute), (*parents, node))


def level(node: Any) -> Iterator[ast.Node]:
    """Like `walk`, without what is inside other queries: of a sub-select only the SubLink is seen."""
    if isinstance(node, tuple):
        for each in node:
            yield from level(each)
    elif isinstance(node, ast.Node) and not isinstance(node, (ast.SelectStmt, *WRITES)):
        yield node
        for attribute in node:
            yield from level(getattr(node, attribute))


def conjuncts(condition: ast.Node | None) -> list[ast.Node]:
    """The parts of a condition that must all be true."""
    if condition is None:
        return []
    if isinstance(condition, ast.BoolExpr) and condition.boolop == BoolExprType.AND_EXPR:
        return [part for argument in condition.args for part in conjuncts(argument)]
    return [condition]


def column_path(node: Any) -> list[str] | None:
    """`["e", "status"]` of `e.status`; None when it is no column, or a star."""
    if not isinstance(node, ast.ColumnRef) or any(isinstance(field, ast.A_Star) for field in node.fields):
        return None
    return [field.sval for field in node.fields]


def type_name(node: ast.TypeName) -> str:
    """The parser's name of a type: `int8` for BIGINT, `uuid[]` for an array."""
    return node.names[-1].sval + ("[]" if node.arrayBounds else "")


def function_name(node: ast.FuncCall) -> str:
    """The name of a function, without its schema."""
    return node.funcname[-1].sval


def operator(node: ast.A_Expr) -> str:
    """`=` of `a = b` and of `a = ANY (b)`; `IN`, `BETWEEN` and the like as the parser names them."""
    if node.kind in (A_Expr_Kind.AEXPR_OP, A_Expr_Kind.AEXPR_OP_ANY, A_Expr_Kind.AEXPR_OP_ALL):
        return node.name[-1].sval
    return node.kind.name.removeprefix("AEXPR_")


def returning(node: ast.Node) -> tuple[ast.ResTarget, ...]:
    """What a write answers."""
    clause = getattr(node, "returningClause", None)
    return (clause.exprs if clause else getattr(node, "returningList", None)) or ()


def alias_of(node: ast.RangeVar) -> str:
    """The name by which a table goes in its query."""
    return node.alias.aliasname if node.alias else node.relname


def inside_cte(parents: Parents) -> ast.CommonTableExpr | None:
    """The innermost CTE around a node."""
    return next((parent for parent in reversed(parents) if isinstance(parent, ast.CommonTableExpr)), None)
