"""A named statement as tests look at it: placeholders as `$1`, CTEs, and which tables it writes."""

from __future__ import annotations

import re
from dataclasses import dataclass

PLACEHOLDER = re.compile(r"%\((\w+)\)s")
_LITERAL = re.compile(r"'(?:[^']|'')*'")
_WRITE = re.compile(r"\b(?:INSERT INTO|DELETE FROM|(?<!FOR )(?<!DO )UPDATE(?! SKIP| OF))\s+(\w+)")
_CTE = re.compile(r"(?:\bWITH (?:RECURSIVE )?|, )(\w+)(?: \([^)]*\))? AS (MATERIALIZED )?\(")


@dataclass(frozen=True, slots=True)
class Write:
    """An INSERT, UPDATE or DELETE inside a statement."""

    table: str
    depth: int
    """How many parentheses are open around it: 0 is the statement itself, 1 is one of its CTEs."""


@dataclass(frozen=True, slots=True)
class Cte:
    """One `name AS (body)`."""

    name: str
    materialized: bool
    body: str


def numbered(statement: str) -> tuple[str, list[str]]:
    """The statement with `$1, $2 ...`, and the names of its parameters in that order."""
    names = list(dict.fromkeys(PLACEHOLDER.findall(statement)))
    text = PLACEHOLDER.sub(lambda match: f"${names.index(match[1]) + 1}", statement)
    return text.replace("%%", "%"), names


def without_literals(statement: str) -> str:
    """The statement with its text literals emptied."""
    return _LITERAL.sub("''", statement)


def writes(statement: str) -> list[Write]:
    """What the statement writes, in the order of the text."""
    bare = without_literals(statement)
    return [Write(match[1], _depth(bare, match.start())) for match in _WRITE.finditer(bare)]


def ctes(statement: str) -> list[Cte]:
    """All CTEs of the statement, wherever they stand."""
    return [
        Cte(match[1], bool(match[2]), inside_parentheses(statement, match.end() - 1))
        for match in _CTE.finditer(statement)
    ]


def inside_parentheses(text: str, opening: int) -> str:
    """What stands between the parenthesis at `opening` and the one that closes it."""
    depth = 0
    for index in range(opening, len(text)):
        depth += (text[index] == "(") - (text[index] == ")")
        if depth == 0:
            return text[opening + 1 : index]
    raise ValueError("unbalanced parentheses")


def _depth(text: str, position: int) -> int:
    return text.count("(", 0, position) - text.count(")", 0, position)
