"""A receiver that notes to the microsecond when each request arrived: nginx cuts its times to milliseconds, which is an eighth
of what a delivery takes on an idle system.

A program: `python -m bench.receivers.exact`. It prints one JSON line with its port, and for each line that it reads one with
what has arrived since (seconds since 1970, by Idempotency-Key).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import AsyncIterator

import uvloop

from bench.arena import Arena
from bench.children import Child, child
from bench.receivers.connection import Connection, listen
from taskexecutor_local.ports import LOOPBACK


class ExactReceiver:
    """The program as the benchmark sees it."""

    def __init__(self, program: Child, port: int) -> None:
        self._program = program
        self.url = f"http://{LOOPBACK}:{port}/"

    async def arrivals(self) -> dict[str, float]:
        """When each key first arrived, of what came since this was last asked."""
        return dict((await self._program.ask())["arrived"])


@contextlib.asynccontextmanager
async def exact_receiver(arena: Arena) -> AsyncIterator[ExactReceiver]:
    """One inside the block."""
    command = [sys.executable, "-m", __name__]
    async with child("exact receiver", command, arena.log("exact"), os.environ) as program:
        yield ExactReceiver(program, (await program.answer())["port"])


class NotingConnection(Connection):
    """Notes and answers."""

    def __init__(self, arrived: dict[str, float]) -> None:
        super().__init__()
        self._arrived = arrived
        self._at = 0.0
        self._key = ""

    def data_received(self, data: bytes) -> None:
        """Some of a request; what counts is when the last of it came."""
        self._at = time.time()
        super().data_received(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser."""
        if name.lower() == b"idempotency-key":
            self._key = value.decode()

    def on_message_complete(self) -> None:
        """A request has arrived."""
        self._arrived.setdefault(self._key, self._at)
        self.answer()


async def serve() -> None:
    """Serves and tells until there are no more questions."""
    arrived: dict[str, float] = {}
    await listen(lambda: NotingConnection(arrived))
    questions = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(questions), sys.stdin)
    while await questions.readline():
        print(json.dumps({"arrived": arrived}), flush=True)
        arrived.clear()


if __name__ == "__main__":
    uvloop.run(serve())
