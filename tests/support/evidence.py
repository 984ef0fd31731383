"""What the programs of a system wrote while a test ran that failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from taskexecutor_local.stack import Stack

_LINES = 10


def loud_lines(fixtures: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """A program's name and its last warnings and errors, for each system among a test's fixtures that has any."""
    stacks = {
        id(stack): stack for fixture in fixtures if isinstance(stack := getattr(fixture, "stack", fixture), Stack)
    }
    for stack in stacks.values():
        for tail in stack.tails():
            written = tail.path.read_text(errors="replace").splitlines() if tail.path.exists() else []
            loud = [line.replace("\\n", "\n") for line in written if line and tail.loud(line)]
            if loud:
                yield tail.name, "\n".join(loud[-_LINES:])
