"""The log files of the children: rotated at start, followed for what the user should see."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
from collections.abc import Callable

KEPT = 3  # earlier runs
LOUD_LEVELS = {"warning", "error", "critical", "fatal"}
QUIET_TEXT = re.compile(r"\[(debug|info)\b")  # TE_LOG_FORMAT=text
LONGEST_BURST = 5  # lines of one process shown per look


def rotate(path: pathlib.Path) -> None:
    """Moves the log of the run before to `.1`, that one to `.2`, and so on."""
    for number in range(KEPT, 0, -1):
        older = path if number == 1 else path.with_name(f"{path.name}.{number - 1}")
        if older.exists():
            older.replace(path.with_name(f"{path.name}.{number}"))


def last_lines(path: pathlib.Path, count: int) -> str:
    """The last lines of a log, indented, then its path."""
    lines = path.read_text(errors="replace").splitlines()[-count:] if path.exists() else []
    return "\n".join([*(f"    {line}" for line in lines), f"    (log: {path})"])


def loud_service_line(line: str) -> str | None:
    """A service's line as the user should see it: warnings and worse, and what a crash prints; None for the rest."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None if QUIET_TEXT.search(line) else line
    if not isinstance(entry, dict) or str(entry.get("level", "")).lower() not in LOUD_LEVELS:
        return None
    reason = entry.get("error") or str(entry.get("exception", "")).rstrip().rpartition("\n")[2]
    return " ".join(str(part) for part in (entry["level"], entry.get("event"), reason) if part)


def loud_postgres_line(line: str) -> str | None:
    """PostgreSQL reports refused statements as errors, which callers deal with; only what ends something is shown."""
    if "the database system is" in line:  # starting up, shutting down: its state is on the screen already
        return None
    return line if "FATAL:" in line or "PANIC:" in line else None


def every_line(line: str) -> str | None:
    """For a program that is asked to write warnings only."""
    return line


@dataclasses.dataclass
class Tail:
    """Reads what was added to a log since the last look."""

    name: str
    path: pathlib.Path
    loud: Callable[[str], str | None]
    _position: int = 0

    def new_lines(self) -> list[str]:
        """New lines worth showing, a burst cut short; a line still being written waits for the next look."""
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self._position)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._position += len(whole) + len(newline)
        lines = [shown for line in whole.decode(errors="replace").splitlines() if line and (shown := self.loud(line))]
        if len(lines) > LONGEST_BURST:
            return [*lines[:LONGEST_BURST], f"... and {len(lines) - LONGEST_BURST} more in {self.path}"]
        return lines
