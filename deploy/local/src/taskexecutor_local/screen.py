"""What the user sees: one live status table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import collections
import contextlib
import datetime
import os
import sys
from collections.abc import Callable
from typing import Protocol, Self

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from taskexecutor_local.process import Process, State

NOTES_SHOWN = 8
COLOURS = {State.READY: "green", State.WAITING: "red", State.STARTING: "yellow", State.STOPPING: "yellow"}


class Screen(Protocol):
    """Where the launcher tells what happens; a context manager."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def say(self, text: str) -> None:
        """Prints text that stays, unwrapped, so that it can be copied."""

    def changed(self, process: Process) -> None:
        """Shows the new state of a process."""

    def note(self, name: str, line: str) -> None:
        """Shows a line that the process `name` wrote."""


def open_screen() -> Screen:
    """The screen that fits standard output."""
    if sys.stdout.isatty() and os.environ.get("TERM") not in (None, "", "dumb"):
        return LiveScreen(Console())
    return PlainScreen(print)


def clock() -> str:
    """Local time of day, for the reader."""
    return datetime.datetime.now().astimezone().strftime("%H:%M:%S")


class PlainScreen:
    """One line per event, through `write`."""

    def __init__(self, write: Callable[..., object]) -> None:
        self._write = write
        self._broken = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def say(self, text: str) -> None:
        if self._broken:
            return
        try:
            self._write(text, flush=True)
        except OSError:
            # The reader went away (`make run | head`, a closed terminal): the system runs on, unseen.
            self._broken = True

    def changed(self, process: Process) -> None:
        facts = f" (process {process.pid}, {process.program.address})" if process.state is State.READY else ""
        detail = f": {process.detail}" if process.detail else ""
        self.say(f"{clock()} {process.program.name} {process.state.value}{facts}{detail}")

    def note(self, name: str, line: str) -> None:
        self.say(f"{clock()} {name} | {line}")


class LiveScreen:
    """A table of the processes with the last notes below; what is said scrolls away above it.

    It is drawn again only when something changed, so that text can be selected in peace.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._processes: dict[str, Process] = {}
        self._notes: collections.deque[str] = collections.deque(maxlen=NOTES_SHOWN)
        self._live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # the terminal is gone
            self._live.stop()

    def say(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def changed(self, process: Process) -> None:
        self._processes[process.program.name] = process
        if process.state is State.WAITING:
            self._notes.append(f"{clock()} {process.program.name} {process.detail}")
        self._draw()

    def note(self, name: str, line: str) -> None:
        self._notes.append(f"{clock()} {name} | {line}")
        self._draw()

    def _draw(self) -> None:
        with contextlib.suppress(OSError):
            self._live.update(Group(self._table(), *self._note_lines()), refresh=True)

    def _table(self) -> Table:
        table = Table("process", "state", "pid", "ready since", "restarts", "address", box=box.SIMPLE_HEAD)
        for name, process in self._processes.items():
            since = process.ready_at.strftime("%H:%M:%S") if process.ready_at and process.state is State.READY else ""
            state = Text(process.state.value, style=COLOURS.get(process.state, ""))
            table.add_row(name, state, str(process.pid or ""), since, str(process.restarts), process.program.address)
        return table

    def _note_lines(self) -> list[RenderableType]:
        return [Text(line, no_wrap=True, overflow="ellipsis", style="dim") for line in self._notes]
