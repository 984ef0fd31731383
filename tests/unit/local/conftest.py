"""Stand-ins for the programs of the system, as real processes."""

import pathlib
import signal
import sys
from collections.abc import Callable
from typing import Any

import pytest

from taskexecutor_local import tether
from taskexecutor_local.process import Program

HERE = pathlib.Path(__file__).parent


@pytest.fixture
def make_program(tmp_path: pathlib.Path) -> Callable[..., Program]:
    """Makes programs that run stand_in.py; `stops` in the same folder tells in which order they were stopped."""

    def make(name: str = "api", *behaviour: str, **fields: Any) -> Program:
        ready = tmp_path / name

        async def is_ready() -> bool:
            return ready.exists()

        command = [sys.executable, str(HERE / "stand_in.py"), str(ready), str(tmp_path / "stops"), *behaviour]
        return Program(
            name=name,
            command=tether.command_line(command, death_signal=signal.SIGKILL),
            log_path=tmp_path / f"{name}.log",
            is_ready=is_ready,
            **fields,
        )

    return make
