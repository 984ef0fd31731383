"""Holds inputs against schemas in a process that may be lost: what takes too much processor time ends it.

Reads one line of JSON for each check and answers one line, until its input ends. `InputChecks` starts it; the argument
is the processor time of one check in seconds. The kernel ends the process after it, for the library cannot be interrupted.
"""

from __future__ import annotations

import signal
import sys
from functools import lru_cache

import orjson

from taskexecutor_common.errors import InputValidationFailed
from taskexecutor_common.json_schema import CompiledSchema, compile_schema

_REMEMBERED_SCHEMAS = 8


@lru_cache(_REMEMBERED_SCHEMAS)
def _compiled(schema: str) -> CompiledSchema:
    return compile_schema(orjson.loads(schema))


def answer(line: bytes) -> bytes:
    """`{"schema", "value"}`, the schema as text, makes `null` or `{"message", "field"}`."""
    wanted = orjson.loads(line)
    try:
        _compiled(wanted["schema"]).validate(wanted["value"])
    except InputValidationFailed as failure:
        return orjson.dumps({"message": failure.message, "field": failure.field})
    return b"null"


def main() -> None:
    """Answers until there is nothing more to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the api, which ends this
    budget_sec = float(sys.argv[1])
    for line in sys.stdin.buffer:
        signal.setitimer(signal.ITIMER_VIRTUAL, budget_sec)
        answered = answer(line)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        sys.stdout.buffer.write(answered + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
