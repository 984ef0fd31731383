"""A named statement as tests look at it: placeholders as `$1`, and its CTEs."""

from __future__ import annotations

import re
from dataclasses import dataclass

PLACEHOLDER = re.compile(r"%\((\w+)\)s")
_CTE = re.compile(r"(?:\bWITH (?:RECURSIVE )?|, )(\w+)(?: \([^)]*\))? AS (?:MATERIALIZED )?\(")


@dataclass(frozen=True, slots=True)
class Cte:
    """One `name AS (body)`."""

    name: str
    body: str


def numbered(statement: str) -> tuple[str, list[str]]:
    """The statement with `$1, $2 ...`, and the names of its parameters in that order."""
    names = list(dict.fromkeys(PLACEHOLDER.findall(statement)))
    text = PLACEHOLDER.sub(lambda match: f"${names.index(match[1]) + 1}", statement)
    return text.replace("%%", "%"), names


def ctes(statement: str) -> list[Cte]:
    """All CTEs of the statement, wherever they stand."""
    return [Cte(match[1], inside_parentheses(statement, match.end() - 1)) for match in _CTE.finditer(statement)]


def inside_parentheses(text: str, opening: int) -> str:
    """What stands between the parenthesis at `opening` and the one that closes it."""
    depth = 0
    for index in range(opening, len(text)):
        depth += (text[index] == "(") - (text[index] == ")")
        if depth == 0:
            return text[opening + 1 : index]
    raise ValueError("unbalanced parentheses")
