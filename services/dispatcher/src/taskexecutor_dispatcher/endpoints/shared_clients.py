"""Clients that deliveries share: made when first needed, a bounded number of them, closed when nobody uses them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class Client(Protocol):
    """What can be shared."""

    async def close(self) -> None:
        """Ends it, for good; never raises."""


KeyT = TypeVar("KeyT", bound=Hashable)
ClientT = TypeVar("ClientT", bound=Client)


@dataclass(slots=True, eq=False)
class _Place(Generic[ClientT]):
    client: ClientT
    users: int = 0
    idle_timer: asyncio.TimerHandle | None = None


class SharedClients(Generic[KeyT, ClientT]):
    """The clients by key. A client in use is never closed to make room: while more than `limit` are in use, there are
    more than `limit`. One that nobody used for `idle_sec` seconds is closed."""

    def __init__(self, make: Callable[[KeyT], ClientT], *, limit: int, idle_sec: float) -> None:
        self._make = make
        self._limit = limit
        self._idle_sec = idle_sec
        self._places: OrderedDict[KeyT, _Place[ClientT]] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._places)

    @contextmanager
    def borrow(self, key: KeyT) -> Iterator[ClientT]:
        """The client of `key`, which stays open while it is borrowed."""
        place = self._take(key)
        try:
            yield place.client
        finally:
            self._give_back(key, place)

    def drop(self, key: KeyT, client: ClientT) -> None:
        """Lets the next borrower have a new client, and closes this one when its last user is done."""
        place = self._places.get(key)
        if place is not None and place.client is client:
            self._remove(key, place)

    async def close(self) -> None:
        """Closes all clients, used or not, and waits for it."""
        for place in self._places.values():
            _stop_timer(place)
            self._close(place)
        self._places.clear()
        await asyncio.gather(*self._closing)

    def _take(self, key: KeyT) -> _Place[ClientT]:
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = _Place(self._make(key))
        self._places.move_to_end(key)
        _stop_timer(place)
        place.users += 1
        self._make_room()
        return place

    def _give_back(self, key: KeyT, place: _Place[ClientT]) -> None:
        place.users -= 1
        if place.users:
            return
        if self._places.get(key) is not place:
            self._close(place)
            return
        place.idle_timer = asyncio.get_running_loop().call_later(self._idle_sec, self._remove, key, place)
        self._make_room()

    def _make_room(self) -> None:
        """Gives up the unused clients that were not used for longest, as many as there are too many."""
        unused = ((key, place) for key, place in list(self._places.items()) if not place.users)
        while len(self._places) > self._limit and (oldest := next(unused, None)):
            self._remove(*oldest)

    def _remove(self, key: KeyT, place: _Place[ClientT]) -> None:
        _stop_timer(place)
        del self._places[key]
        if not place.users:
            self._close(place)

    def _close(self, place: _Place[ClientT]) -> None:
        task = asyncio.get_running_loop().create_task(place.client.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _stop_timer(place: _Place[ClientT]) -> None:
    if place.idle_timer is not None:
        place.idle_timer.cancel()
        place.idle_timer = None
