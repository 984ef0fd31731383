"""Ends what an earlier launcher left running when it was killed and the system could not end it (macOS, mostly)."""

from __future__ import annotations

from typing import Any

import psutil

CLOCK_TOLERANCE_SEC = 2.0  # the start time of a process is computed from the boot time, which follows the clock
PATIENCE_SEC = 10.0


def identify(pid: int) -> dict[str, Any] | None:
    """What run.json keeps about a process, so that it can be told from a later one with the same id."""
    try:
        process = psutil.Process(pid)
        return {"pid": pid, "started": process.create_time(), "command": process.cmdline()}
    except psutil.Error:
        return None


def end_leftovers(run: dict[str, Any]) -> list[str]:
    """Ends the processes of an earlier run that still live; answers their names. `run` is the content of run.json."""
    entries = {name: entry for name, entry in run.get("processes", {}).items() if entry}
    found = {name: process for name, entry in entries.items() if (process := still_there(entry))}
    for process in found.values():
        quietly(process.terminate)
    _, stubborn = psutil.wait_procs(found.values(), timeout=PATIENCE_SEC)
    for process in stubborn:
        quietly(process.kill)
    psutil.wait_procs(stubborn, timeout=PATIENCE_SEC)
    return sorted(found)


def still_there(entry: dict[str, Any]) -> psutil.Process | None:
    """The process that `entry` describes, if that very one still lives: same id, start and command line."""
    try:
        process = psutil.Process(entry["pid"])
        same_start = abs(process.create_time() - entry["started"]) < CLOCK_TOLERANCE_SEC
        return process if same_start and process.cmdline() == entry["command"] else None
    except (psutil.Error, KeyError):
        return None


def quietly(signal_it: Any) -> None:
    """Sends a signal; a process that ended meanwhile is what we wanted."""
    try:
        signal_it()
    except psutil.NoSuchProcess:
        pass
