"""The bounded pool, in orders of events that no receiver can bring about."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from taskexecutor_dispatcher.endpoints.http_connection import HttpConnection
from taskexecutor_dispatcher.endpoints.http_destinations import Origin
from taskexecutor_dispatcher.endpoints.http_pool import HttpPool

ORIGIN = Origin("http", "receiver.test", 80)


class NoSockets:
    """Stands in for the network: each connection is there at once."""

    async def connect(self, connection: HttpConnection) -> None:
        transport = SimpleNamespace(is_closing=lambda: False, abort=lambda: connection.connection_lost(None))
        connection._transport = cast(Any, transport)
        connection.is_connected = True


def a_pool() -> HttpPool:
    return HttpPool(cast(Any, NoSockets()), keep_alive_sec=60, max_connections=1, max_per_origin=0)


async def one_taken_and_one_giving_up(pool: HttpPool) -> HttpConnection:
    """The only connection, for which somebody waited whose time has just been up."""
    taken = await pool.open(ORIGIN, needs_fresh=False)
    waiting = asyncio.create_task(pool.open(ORIGIN, needs_fresh=False))
    await asyncio.sleep(0)
    waiting.cancel()
    return taken


async def test_a_connection_that_comes_back_passes_by_who_has_just_given_up() -> None:
    pool = a_pool()
    taken = await one_taken_and_one_giving_up(pool)
    pool.give_back(taken)
    await asyncio.sleep(0)
    assert pool._idle[ORIGIN] == [taken]


async def test_room_that_comes_free_passes_by_who_has_just_given_up() -> None:
    pool = a_pool()
    taken = await one_taken_and_one_giving_up(pool)
    taken.abort()
    await asyncio.sleep(0)
    assert (await asyncio.wait_for(pool.open(ORIGIN, needs_fresh=False), 5)).is_connected
