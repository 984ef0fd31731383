"""A receiver that answers every request after some seconds: nginx has no such thing.

A program: `python -m bench.receivers.slow SECONDS`. It prints one JSON line with its port, and serves until it is ended.
"""

from __future__ import annotations

import asyncio
import sys

import uvloop

from bench.receivers.connection import Connection, listen


class SlowConnection(Connection):
    """Answers late."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def on_message_complete(self) -> None:
        """A request has arrived."""
        asyncio.get_running_loop().call_later(self._seconds, self.answer)


async def serve(seconds: float) -> None:
    """Serves until cancelled."""
    server = await listen(lambda: SlowConnection(seconds))
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(float(sys.argv[1])))
