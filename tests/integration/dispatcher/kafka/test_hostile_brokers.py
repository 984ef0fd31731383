"""A broker that means harm cannot fill the dispatcher's memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.integration.dispatcher.kafka.conftest import Deliver

ANNOUNCED_BYTES = 90 * 1024 * 1024  # below what librdkafka would take by default


class Boaster:
    """Answers the first request of each connection with the beginning of a very long answer, and no more."""

    def __init__(self) -> None:
        self.port = 0
        self.left = asyncio.Event()
        """Set when a client has gone away instead of waiting for the rest."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
            writer.write(ANNOUNCED_BYTES.to_bytes(4) + request[4:8] + bytes(65536))
            await writer.drain()
            while await reader.read(65536):
                pass
            self.left.set()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.left.set()
        finally:
            writer.close()


@asynccontextmanager
async def boasting() -> AsyncIterator[Boaster]:
    boaster = Boaster()
    server = await asyncio.start_server(boaster.serve, "127.0.0.1", 0)
    boaster.port = server.sockets[0].getsockname()[1]
    async with server:
        yield boaster


async def test_a_broker_that_announces_a_very_long_answer_is_left_at_once(deliver: Deliver) -> None:
    async with boasting() as boaster:
        delivering = asyncio.create_task(deliver(f"127.0.0.1:{boaster.port}", "t", timeout_ms=3000))
        left_first, _ = await asyncio.wait(
            {delivering, asyncio.create_task(boaster.left.wait())}, return_when=asyncio.FIRST_COMPLETED
        )
        assert delivering not in left_first
        outcome = await delivering
    assert outcome.error is not None
    assert outcome.error.type in {"TIMEOUT", "BROKER_ERROR"}
    assert outcome.retryable
