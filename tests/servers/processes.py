"""A server that a test may freeze, kill and start again; its output goes to a file in its folder."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil


class ServerProcess:
    """One command that serves, at an address that it keeps when it is started again."""

    def __init__(self, command: Sequence[str], folder: Path, is_ready: Callable[[], bool], patience_sec: float) -> None:
        self._command = list(command)
        self._log = folder / "server.log"
        self._is_ready = is_ready
        self._patience_sec = patience_sec
        self._process: subprocess.Popen[bytes] | None = None
        self.started_in_sec = 0.0

    def start(self) -> None:
        """Starts it and waits until it answers."""
        began = time.monotonic()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self._answers, self._patience_sec, f"{self._command[0]} did not start, see {self._log}")
        self.started_in_sec = time.monotonic() - began

    @property
    def is_running(self) -> bool:
        """True from start to kill."""
        return self._process is not None

    def freeze(self) -> None:
        """Stops it in its tracks: its kernel still takes connections and bytes, it answers nothing."""
        self._running().send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Lets it go on."""
        self._running().send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Ends it as a crash would, frozen or not."""
        self._running().kill()
        self._running().wait()
        self._process = None

    def stop(self) -> None:
        """Ends it if it runs."""
        if self._process is not None:
            self.kill()

    def memory_mb(self) -> float:
        """Its resident memory."""
        return float(psutil.Process(self._running().pid).memory_info().rss) / 2**20

    def _answers(self) -> bool:
        status = self._running().poll()
        assert status is None, f"{self._command[0]} ended with {status}, see {self._log}"
        return self._is_ready()

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "not started"
        return self._process


def wait_until(condition: Callable[[], bool], patience_sec: float, failure: str) -> None:
    """Looks again and again, until the condition holds. Raises AssertionError with `failure` when it never does."""
    ends = time.monotonic() + patience_sec
    while not condition():
        assert time.monotonic() < ends, failure
        time.sleep(0.01)
