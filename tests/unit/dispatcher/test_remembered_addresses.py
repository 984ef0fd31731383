"""Names are looked up once for all that want them, and for a while."""

from __future__ import annotations

import asyncio
import socket

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from taskexecutor_dispatcher.endpoints.resolver import RememberedAddresses


class Asked(AbstractResolver):
    """Counts what it is asked, and answers when it is told."""

    def __init__(self, *addresses: str) -> None:
        self.times = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.failure: OSError | None = None
        self._addresses = addresses

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        self.times += 1
        await self.may_answer.wait()
        if self.failure is not None:
            raise self.failure
        return [
            ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=0)
            for address in self._addresses
        ]

    async def close(self) -> None:
        pass


class Watch:
    """A clock that stands still."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_an_answer_is_kept_for_its_time() -> None:
    asked, watch = Asked("192.0.2.1"), Watch()
    names = RememberedAddresses(asked, 10, watch)
    await names.resolve("a.test", 80)
    watch.now += 9.9
    await names.resolve("a.test", 80)
    assert asked.times == 1
    watch.now += 0.2
    await names.resolve("a.test", 80)
    assert asked.times == 2


async def test_those_who_ask_at_once_share_a_lookup_however_long_it_takes() -> None:
    asked, watch = Asked("192.0.2.1"), Watch()
    asked.may_answer.clear()
    names = RememberedAddresses(asked, 10, watch)
    first = asyncio.create_task(names.resolve("a.test", 80))
    await asyncio.sleep(0)
    watch.now += 60
    second = asyncio.create_task(names.resolve("a.test", 80))
    await asyncio.sleep(0)
    asked.may_answer.set()
    assert await first == await second
    assert asked.times == 1


async def test_who_stops_waiting_takes_nobody_along() -> None:
    asked = Asked("192.0.2.1")
    asked.may_answer.clear()
    names = RememberedAddresses(asked, 10, Watch())
    impatient, patient = (asyncio.create_task(names.resolve("a.test", 80)) for _ in range(2))
    await asyncio.sleep(0)
    impatient.cancel()
    await asyncio.sleep(0)
    asked.may_answer.set()
    assert [found["host"] for found in await patient] == ["192.0.2.1"]


async def test_a_failure_is_not_kept() -> None:
    asked = Asked("192.0.2.1")
    asked.failure = socket.gaierror(socket.EAI_AGAIN, "later")
    names = RememberedAddresses(asked, 10, Watch())
    with pytest.raises(socket.gaierror):
        await names.resolve("a.test", 80)
    asked.failure = None
    assert await names.resolve("a.test", 80)


async def test_the_addresses_take_turns() -> None:
    names = RememberedAddresses(Asked("192.0.2.1", "192.0.2.2", "192.0.2.3"), 10, Watch())
    firsts = [(await names.resolve("a.test", 80))[0]["host"] for _ in range(4)]
    assert firsts == ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.1"]
