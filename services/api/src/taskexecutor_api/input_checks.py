"""Holds inputs against payload schemas without holding up other calls.

Both come from callers, and some pairs take seconds. What is certain to be quick, which is nearly everything, is done at
once; the rest goes to a process of its own, one after the other, with a bound on its processor time. (A thread would not
help: the library looks at Python's objects and never lets go of the interpreter.)
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import dataclass, field
from typing import Any

import orjson

from taskexecutor_api import checking_process
from taskexecutor_common.errors import InputValidationFailed, RateLimited, Unavailable
from taskexecutor_common.json_schema import CompiledSchema
from taskexecutor_common.observability.logging import get_logger

MOST_WAITING = 500
"""Checks of one namespace that may wait for the other process; beyond that, its calls are told to come back."""

BUDGET_SEC = 2.0
"""Processor time of one check in the other process."""

# How the process ends when a check was too much for it: out of time, or out of stack or memory.
_TOO_MUCH = {-signal.SIGVTALRM, -signal.SIGSEGV, -signal.SIGABRT}
# Of the clock on the wall: a machine that has no time for the process, or a process that hangs.
_PATIENCE_SEC = 15.0
_PAUSE_SEC = 0.2

_log = get_logger("input_checks")


class _Ended(Exception):
    """The other process has ended, by a signal if `status` is negative."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(slots=True)
class _Queue:
    """The checks of one namespace that wait for the other process."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    length: int = 0


class InputChecks:
    """Checks inputs. A Service; the other process is started when it is first needed.

    Namespaces take turns: one that sends only what takes long holds up its own checks, and those of others by no more than
    one of its own.
    """

    def __init__(self, budget_sec: float = BUDGET_SEC) -> None:
        self._budget_sec = budget_sec
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._queues: dict[str, _Queue] = {}

    async def start(self) -> None:
        """Nothing to do."""

    async def stop(self) -> None:
        """Ends the other process."""
        async with self._turn:
            process = self._process
            self._kill()
            if process is not None:
                await process.wait()

    async def check(self, namespace: str, schema: CompiledSchema | None, value: dict[str, Any] | None) -> None:
        """Returns when the input is good. Raises InputValidationFailed, also for what takes too long to check;
        RateLimited for a namespace that asks for too much of that at once; Unavailable."""
        if schema is None or schema.validate_at_once(value or {}):
            return
        queue = self._queues.setdefault(namespace, _Queue())
        if queue.length >= MOST_WAITING:
            raise RateLimited("input: too many inputs that take long to check are waiting", retry_after=1)
        queue.length += 1
        try:
            async with queue.turn, self._turn:
                await self._check_elsewhere(schema, value or {})
        finally:
            queue.length -= 1
            if not queue.length:
                del self._queues[namespace]

    async def _check_elsewhere(self, schema: CompiledSchema, value: dict[str, Any]) -> None:
        try:
            async with asyncio.timeout(_PATIENCE_SEC):
                answered = await self._ask_twice(orjson.dumps({"schema": schema.text, "value": value}) + b"\n")
        except _Ended as ended:
            if ended.status in _TOO_MUCH:
                raise InputValidationFailed(
                    "input: takes too long to be held against the schema.", field="input"
                ) from None
            raise Unavailable("the input could not be checked", retry_after=1) from None
        except TimeoutError:
            self._kill()
            raise Unavailable("the input could not be checked in time", retry_after=5) from None
        except asyncio.CancelledError:
            self._kill()  # the answer to this question must not be taken for that to the next
            raise
        except Exception as error:
            self._kill()
            raise Unavailable("the input could not be checked", retry_after=1) from error
        if failure := orjson.loads(answered):
            raise InputValidationFailed(failure["message"], field=failure["field"])

    async def _ask_twice(self, question: bytes) -> bytes:
        """The answer, with another process if the first cannot be started or the way to it breaks: that says nothing about
        the input, and a machine may be short of something for a moment."""
        try:
            return await self._ask(question)
        except _Ended:
            raise
        except Exception:
            _log.exception("an input could not be checked; trying once more")
            self._kill()
        await asyncio.sleep(_PAUSE_SEC)
        return await self._ask(question)

    async def _ask(self, question: bytes) -> bytes:
        """The other process's answer. Raises _Ended."""
        process = self._process = self._process or await self._start_process()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(question)
            await process.stdin.drain()
        except ConnectionError:
            pass  # it has ended, and there is nothing more to read
        answered = await process.stdout.readline()
        if not answered.endswith(b"\n"):
            status = await process.wait()
            self._process = None
            _log.info("the checking process ended", status=status)
            raise _Ended(status)
        return answered

    async def _start_process(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", checking_process.__name__, str(self._budget_sec)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={"PYTHONPATH": os.pathsep.join(sys.path)},  # and nothing else: ours holds the key of all secrets
        )

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
