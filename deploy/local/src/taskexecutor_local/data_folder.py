"""The folder that holds all that `make run` keeps: who uses it now, and the secrets made once."""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
from collections.abc import Callable
from typing import Any, Self

from taskexecutor_local.files import write_private


class FolderInUseError(Exception):
    """Another run holds the data folder; the message is for the user."""


class DataFolder:
    """Paths and locks below one data folder; use it as a context manager to hold it alone."""

    def __init__(self, path: pathlib.Path | str) -> None:
        self.path = pathlib.Path(path).absolute()
        self.logs = self.path / "logs"
        self.run_file = self.path / "run.json"
        self._lock: int | None = None

    def __enter__(self) -> Self:
        self.logs.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            # Held by this process and gone with it, however it ends; children do not inherit it.
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise FolderInUseError(self._in_use_message()) from None
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            os.close(self._lock)

    def log(self, name: str) -> pathlib.Path:
        """Where the process `name` writes its log."""
        return self.logs / f"{name}.log"

    def kept(self, name: str, make: Callable[[], str]) -> str:
        """The secret `name`: read from its file, or made once by `make()` and kept there for its owner alone."""
        path = self.path / name
        if not path.exists():
            write_private(path, make())
        return path.read_text().strip()

    def read_run(self) -> dict[str, Any]:
        """What run.json says about the present run, or about one that was killed; empty when there is none."""
        try:
            return dict(json.loads(self.run_file.read_text()))
        except (FileNotFoundError, ValueError):
            return {}

    def write_run(self, facts: dict[str, Any]) -> None:
        """Tells tools what runs, and where; for the owner alone, as the database's URL carries its password."""
        write_private(self.run_file, json.dumps(facts, indent=2))

    def forget_run(self) -> None:
        """Removes run.json: nothing runs any more."""
        self.run_file.unlink(missing_ok=True)

    def _in_use_message(self) -> str:
        run = self.read_run()
        where = f" (process {run['pid']}, {run['url']})" if run else ""
        return (
            f"Task Executor already runs on the data folder {self.path}{where}.\n"
            "Stop it first, or set TE_DATA_DIR (and TE_HTTP_PORT) to run a second one."
        )
