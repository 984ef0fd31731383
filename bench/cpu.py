"""CPU time and memory of processes with all their descendants."""

from __future__ import annotations

from collections.abc import Mapping

import psutil


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and its descendants, of those that have ended too (once they were waited for)."""
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0.0
    return sum(_own_seconds(process) for process in family)


def resident_mb(pid: int) -> float:
    """Resident memory of one process, in MiB."""
    return float(psutil.Process(pid).memory_info().rss) / 2**20


def unshared_mb(pid: int) -> float:
    """Memory of a process and its descendants, in MiB, pages that several share counted once."""
    root = psutil.Process(pid)
    family = [root, *root.children(recursive=True)]
    return sum(float(process.memory_full_info().pss) for process in family) / 2**20


class CpuMeter:
    """CPU seconds used by named process trees since the meter was made."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = dict(pids)
        self._begin = {name: cpu_seconds(pid) for name, pid in self._pids.items()}

    def read(self) -> dict[str, float]:
        """Seconds by name."""
        return {name: cpu_seconds(pid) - self._begin[name] for name, pid in self._pids.items()}


def _own_seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)
