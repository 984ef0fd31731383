"""Programs that the benchmark starts: tied to its life, ended by process id, their output kept in a file."""

from __future__ import annotations

import asyncio
import contextlib
import json
import pathlib
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from taskexecutor_local import tether
from taskexecutor_local.logs import last_lines

STOP_SEC = 15.0
ANSWER_SEC = 180.0
LONGEST_LINE = 64 * 2**20  # an answer may hold a number per job


class ChildFailed(Exception):
    """A program of the benchmark ended or did not answer; the message ends with its own words."""


class Child:
    """One running program. What it prints as JSON lines is read by `answer`, what it writes to stderr goes to its log."""

    def __init__(self, process: asyncio.subprocess.Process, name: str, log: pathlib.Path) -> None:
        self._process = process
        self.name = name
        self._log = log

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    async def answer(self, deadline_sec: float = ANSWER_SEC) -> dict[str, Any]:
        """The next JSON object that it prints. Raises ChildFailed when it ends, fails or takes too long instead."""
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(deadline_sec):
                line = await self._process.stdout.readline()
        except TimeoutError:
            raise ChildFailed(f"{self.name} did not answer within {deadline_sec:g} s\n{self._last_words()}") from None
        if not line:
            raise ChildFailed(f"{self.name} ended\n{self._last_words()}")
        said = dict(json.loads(line))
        if "error" in said:
            raise ChildFailed(f"{self.name}: {said['error']}\n{self._last_words()}")
        return said

    async def ask(self, deadline_sec: float = ANSWER_SEC, /, **question: Any) -> dict[str, Any]:
        """Writes a question as one JSON line and waits for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        await self._process.stdin.drain()
        return await self.answer(deadline_sec)

    def send(self, number: signal.Signals) -> None:
        """Sends it a signal, if it runs."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def stop(self) -> None:
        """Asks it to end, and kills it when it does not within STOP_SEC."""
        if self._process.returncode is not None:
            return
        self.send(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_SEC):
                await self._process.wait()
        except TimeoutError:
            self.send(signal.SIGKILL)
            await self._process.wait()

    def _last_words(self) -> str:
        return last_lines(self._log, 12)


@contextlib.asynccontextmanager
async def child(
    name: str, command: Sequence[str], log: pathlib.Path, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Child]:
    """Runs a program inside the block. It dies with this process, however that ends."""
    with log.open("ab") as stderr:
        process = await asyncio.create_subprocess_exec(
            *tether.command_line(command, death_signal=signal.SIGKILL),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            env=environment,
            limit=LONGEST_LINE,
            start_new_session=True,  # Ctrl-C reaches us alone; we end our children in order
        )
    running = Child(process, name, log)
    try:
        yield running
    finally:
        await asyncio.shield(running.stop())
