"""Finds, in the source, every place that runs a named statement: with which keywords, and into which dataclass.

`fetch_all("name", Model, a=..., **asdict(job))`: a name made as `f"lock_{noun}"` stands for one statement per kind of
reference; `**asdict(x)` gives the fields of what x is annotated with, `**x` the keys of the dict that x is assigned.
"""

from __future__ import annotations

import ast
import importlib
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from taskexecutor_common.model.setup import ReferenceKind

ROOT = pathlib.Path(__file__).resolve().parents[2]
_METHODS = {"fetch_all", "fetch_one", "execute"}
_RECEIVERS = {"_db", "tx"}
_NOT_PARAMETERS = {"repeatable", "small"}
_THE_STORE_ITSELF = "taskexecutor_common.store.database"


@dataclass(frozen=True, slots=True)
class Call:
    """One place that runs one statement."""

    where: str
    statement: str
    model: type[Any] | None
    """None: only the number of rows is asked for."""
    parameters: frozenset[str]


def find_calls() -> list[Call]:
    """All calls in libs and services."""
    sources = [*ROOT.glob("libs/*/src"), *ROOT.glob("services/*/src")]
    return [call for source in sources for path in sorted(source.rglob("*.py")) for call in _calls_in(source, path)]


def _calls_in(source: pathlib.Path, path: pathlib.Path) -> Iterator[Call]:
    module = ".".join(path.relative_to(source).with_suffix("").parts)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if module == _THE_STORE_ITSELF or not any(_runs_a_statement(node) for node in ast.walk(tree)):
        return
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in ast.walk(tree):
        if _runs_a_statement(node):
            around = sorted((f for f in functions if _encloses(f, node)), key=lambda f: -f.lineno)
            yield from _read(node, module, around)


def _runs_a_statement(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS):
        return False
    receiver = node.func.value
    return (receiver.attr if isinstance(receiver, ast.Attribute) else getattr(receiver, "id", None)) in _RECEIVERS


def _encloses(function: ast.AST, node: ast.AST) -> bool:
    return function.lineno <= node.lineno <= function.end_lineno


def _read(call: ast.Call, module: str, functions: list[ast.AST]) -> Iterator[Call]:
    namespace = vars(importlib.import_module(module))
    model = namespace[call.args[1].id] if len(call.args) > 1 else None
    parameters = frozenset(name for keyword in call.keywords for name in _names(keyword, namespace, functions))
    for statement in _statements(call.args[0]):
        yield Call(f"{module}:{call.lineno}", statement, model, parameters - _NOT_PARAMETERS)


def _statements(name: ast.expr) -> list[str]:
    if isinstance(name, ast.Constant):
        return [name.value]
    assert isinstance(name, ast.JoinedStr), f"cannot read {ast.unparse(name)}"
    parts = [part.value if isinstance(part, ast.Constant) else None for part in name.values]
    return ["".join(kind.value.lower() if part is None else part for part in parts) for kind in ReferenceKind]


def _names(keyword: ast.keyword, namespace: dict[str, Any], functions: list[ast.AST]) -> list[str]:
    if keyword.arg is not None:
        return [keyword.arg]
    spread = keyword.value
    if isinstance(spread, ast.Call) and spread.func.id == "asdict":
        annotation = _annotation(spread.args[0].id, functions)
        return [field.name for field in fields(namespace[annotation])]
    return [key.value for key in _assigned(spread.id, functions).keys]


def _annotation(name: str, functions: list[ast.AST]) -> str:
    """The class that a name is annotated with, or that the annotated callable gives whose result it is."""
    for function in functions:
        for argument in [*function.args.args, *function.args.kwonlyargs]:
            if argument.arg == name:
                annotation = argument.annotation
                return annotation.slice.elts[1].id if isinstance(annotation, ast.Subscript) else annotation.id
    return _annotation(_assigned(name, functions).func.id, functions)


def _assigned(name: str, functions: list[ast.AST]) -> Any:
    """What a local name is assigned."""
    for function in functions:
        for node in ast.walk(function):
            targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
            if isinstance(node, ast.Assign | ast.AnnAssign) and getattr(targets[0], "id", None) == name:
                return node.value
    raise AssertionError(f"nothing is assigned to {name}")
