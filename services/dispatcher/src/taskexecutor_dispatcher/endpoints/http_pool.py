"""The HTTP connections of a process: those that are kept for the next delivery, and the room for new ones."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from dataclasses import dataclass

from taskexecutor_dispatcher.endpoints.http_connection import HttpConnection
from taskexecutor_dispatcher.endpoints.http_connections import HttpConnections
from taskexecutor_dispatcher.endpoints.http_destinations import Origin


@dataclass(slots=True, eq=False)
class _Waiter:
    """A delivery that waits for a kept connection, or for room where it needs a fresh one."""

    origin: Origin
    needs_fresh: bool
    given: asyncio.Future[HttpConnection]


class HttpPool:
    """Gives out connections and takes them back.

    A connection that was given back is used again for `keep_alive_sec`, the last one first, so that the others can go.
    `max_connections` and `max_per_origin` bound what is open or being opened, 0: unbounded; deliveries beyond that wait
    their turn. Idle connections to elsewhere make room for them.
    """

    def __init__(
        self, connections: HttpConnections, *, keep_alive_sec: float, max_connections: int, max_per_origin: int
    ) -> None:
        self._connections = connections
        self._keep_alive_sec = keep_alive_sec
        self._max_connections = max_connections
        self._max_per_origin = max_per_origin
        self._loop = asyncio.get_running_loop()
        self._open: set[HttpConnection] = set()
        self._open_per_origin: Counter[Origin] = Counter()
        self._idle: dict[Origin, list[HttpConnection]] = {}  # each list by the time of coming back
        self._waiting: deque[_Waiter] = deque()
        self._sweep: asyncio.TimerHandle | None = None
        self._is_closed = False

    def take(self, origin: Origin) -> HttpConnection | None:
        """A kept connection that is still good, if there is one."""
        idle = self._idle.get(origin)
        if not idle:
            return None
        good_since = self._loop.time() - self._keep_alive_sec
        while idle:
            connection = idle.pop()
            if connection.idle_since > good_since and connection.is_quiet():
                return connection
            connection.close()
        return None

    async def open(self, origin: Origin, *, needs_fresh: bool) -> HttpConnection:
        """A new connection once there is room; or, unless it needs to be fresh, one that comes back meanwhile.

        Raises NotConnected.
        """
        connection = self._reserve(origin) if self._has_room(origin) else await self._wait(origin, needs_fresh)
        if not connection.is_connected:
            try:
                await self._connections.connect(connection)
            except BaseException:
                self._forget(connection)
                raise
        return connection

    def give_back(self, connection: HttpConnection) -> None:
        """Takes a connection back after an answer; keeps it if it may be used again."""
        if self._is_closed or not connection.may_be_reused():
            connection.abort()
            return
        connection.keep()
        if self._waiting and self._pass_on(connection):
            return
        connection.idle_since = self._loop.time()
        idle = self._idle.get(connection.origin)
        if idle is None:
            self._idle[connection.origin] = [connection]
        else:
            idle.append(connection)
        if self._sweep is None:
            self._set_sweep()

    def close(self, failure: Exception) -> None:
        """Closes all connections; exchanges under way end with `failure`."""
        self._is_closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        self._idle.clear()
        for connection in [each for each in self._open if each.is_connected]:
            connection.fail(failure)
            connection.abort()

    # --- room ---

    def _has_room(self, origin: Origin) -> bool:
        return not (self._is_full() or self._is_full_for(origin))

    def _is_full(self) -> bool:
        return 0 < self._max_connections <= len(self._open)

    def _is_full_for(self, origin: Origin) -> bool:
        return 0 < self._max_per_origin <= self._open_per_origin[origin]

    def _reserve(self, origin: Origin) -> HttpConnection:
        connection = HttpConnection(origin, on_lost=self._forget)
        self._open.add(connection)
        self._open_per_origin[origin] += 1
        return connection

    def _forget(self, connection: HttpConnection) -> None:
        if connection not in self._open:
            return
        self._open.discard(connection)
        self._open_per_origin[connection.origin] -= 1
        if not self._open_per_origin[connection.origin]:
            del self._open_per_origin[connection.origin]
        self._let_in()

    # --- waiting ---

    async def _wait(self, origin: Origin, needs_fresh: bool) -> HttpConnection:
        waiter = _Waiter(origin, needs_fresh, self._loop.create_future())
        self._waiting.append(waiter)
        self._give_up_an_idle_one(origin)
        try:
            return await waiter.given
        except asyncio.CancelledError:
            self._undo(waiter)
            raise

    def _undo(self, waiter: _Waiter) -> None:
        """Frees what a delivery that gave up was given in the same moment."""
        if waiter in self._waiting:
            self._waiting.remove(waiter)
        elif waiter.given.done() and not waiter.given.cancelled():
            given = waiter.given.result()
            self.give_back(given) if given.is_connected else self._forget(given)

    def _pass_on(self, connection: HttpConnection) -> bool:
        """Gives a connection that came back to the first who can use it, or its room to the first who can use that."""
        for waiter in self._patient():
            if waiter.origin == connection.origin and not waiter.needs_fresh:
                self._waiting.remove(waiter)
                waiter.given.set_result(connection)
                return True
            if waiter.origin == connection.origin or not self._is_full_for(waiter.origin):
                connection.abort()
                return True
        return False

    def _let_in(self) -> None:
        """Gives free room to those who wait for it, in the order of their coming."""
        for waiter in self._patient():
            if self._has_room(waiter.origin):
                self._waiting.remove(waiter)
                waiter.given.set_result(self._reserve(waiter.origin))

    def _patient(self) -> list[_Waiter]:
        """Who waits still. One that gave up in this turn of the loop is on its way out, and takes nothing any more."""
        return [waiter for waiter in self._waiting if not waiter.given.done()]

    def _give_up_an_idle_one(self, origin: Origin) -> None:
        candidates = (self._idle.get(origin, []),) if self._is_full_for(origin) else self._idle.values()
        oldest = next((idle for idle in candidates if idle), None)
        if oldest is not None:
            oldest.pop(0).abort()

    # --- expiry ---

    def _set_sweep(self) -> None:
        self._sweep = self._loop.call_later(self._keep_alive_sec / 2, self._close_expired)

    def _close_expired(self) -> None:
        """One timer for all that is idle. It may come late, which is why `take` looks at the time itself."""
        self._sweep = None
        good_since = self._loop.time() - self._keep_alive_sec
        for origin, idle in list(self._idle.items()):
            expired = [connection for connection in idle if connection.idle_since <= good_since]
            for connection in expired:
                connection.close()
            del idle[: len(expired)]
            if not idle:
                del self._idle[origin]
        if self._idle:
            self._set_sweep()
