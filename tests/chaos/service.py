"""A service with something wrong in it: `python -m tests.chaos.service api|scheduler|dispatcher`.

What is wrong is said by CHAOS, a JSON object; what it leaves out is right:

    {"seed": 7, "rate": 0.1, "kinds": ["LOST_AFTER"]}    statements fail, see tests/support/faulty_database.py
    {"clock_shift_sec": 3600}                            its clock is wrong
    {"hints": "lost"}, {"hints": "doubled"}              what it tells other services
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from taskexecutor_common import clock
from taskexecutor_common.rpc import hints
from tests.support import faulty_database
from tests.support.faulty_database import Fault

VARIABLE = "CHAOS"
_SPARED = ("beat",)  # a service whose very first beat fails does not start, and that is right
_Call = Callable[[Any], Awaitable[Any]]


def spoil(wrong: dict[str, Any]) -> None:
    """Makes this process go wrong as `wrong` says."""
    if rate := wrong.get("rate"):
        kinds = [Fault[name] for name in wrong.get("kinds", [fault.name for fault in Fault])]
        faulty_database.install(wrong["seed"], rate, kinds, spared=_SPARED)
    if shift := wrong.get("clock_shift_sec"):
        _shift_clock(shift)
    if how := wrong.get("hints"):
        _spoil_hints({"lost": 0, "doubled": 2}[how])


def _shift_clock(seconds: float) -> None:
    """All wall clock times come from here (a rule of the linter); what is measured with a stopwatch is not touched."""
    right = clock.Clock()

    class WrongClock(clock.Clock):
        def __init__(self) -> None:
            super().__init__(
                now=lambda: right.now() + timedelta(seconds=seconds),
                epoch_ms=lambda: right.epoch_ms() + int(seconds * 1000),
            )

    clock.Clock = WrongClock  # type: ignore[misc]


def _spoil_hints(times: int) -> None:
    for kind in (hints.DispatcherHints, hints.SchedulerHints):
        original = kind.take

        def take(sender: Any, original: Callable[[Any], _Call | None] = original) -> _Call | None:
            call = original(sender)
            if call is None:
                return None

            async def repeat(line: Any) -> None:
                for _ in range(times):
                    await call(line)

            return repeat

        kind.take = take  # type: ignore[method-assign]


def main() -> int:
    """Runs the service that the command line names."""
    wrong = json.loads(os.environ.get(VARIABLE, "{}"))
    spoil(wrong)
    return int(importlib.import_module(f"taskexecutor_{sys.argv.pop(1)}.main").main())


if __name__ == "__main__":
    sys.exit(main())
