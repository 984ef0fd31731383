"""What a loop shows of itself: enough to tell by numbers alone that it does not come round."""

from __future__ import annotations

import asyncio
import time

from prometheus_client import REGISTRY

from taskexecutor_common.runtime.loop import Loop

DEADLINE_SEC = 30.0


def shown(metric: str, loop: str) -> float | None:
    return REGISTRY.get_sample_value(f"taskexecutor_loop_{metric}", {"loop": loop})


async def test_a_loop_that_only_ever_fails_shows_when_it_started() -> None:
    ends: list[float] = []
    failed_thrice = asyncio.Event()

    async def fail() -> float | None:
        ends.append(time.time())
        if len(ends) == 3:
            failed_thrice.set()
        raise RuntimeError("on purpose")

    before = time.time()
    loop = Loop("hopeless", fail, interval_sec=0.001)
    await loop.start()
    async with asyncio.timeout(DEADLINE_SEC):
        await failed_thrice.wait()
    started = shown("last_run_timestamp_seconds", "hopeless")
    await loop.stop()
    assert started is not None
    assert before <= started <= ends[0]


async def test_a_good_round_is_shown() -> None:
    begun: list[float] = []
    second_round = asyncio.Event()

    async def work() -> float | None:
        begun.append(time.time())
        if len(begun) == 2:
            second_round.set()
        return None

    loop = Loop("diligent", work, interval_sec=0.001)
    await loop.start()
    async with asyncio.timeout(DEADLINE_SEC):
        await second_round.wait()
    last_run = shown("last_run_timestamp_seconds", "diligent")
    await loop.stop()
    assert last_run is not None
    assert last_run >= begun[0]


async def test_a_loop_says_how_long_it_may_sleep_and_once_it_has_ended_it_cannot_be_late() -> None:
    begun = asyncio.Event()

    async def work() -> float | None:
        begun.set()
        return 0.001

    loop = Loop("finite", work, interval_sec=60.0, jitter=0.2)
    await loop.start()
    async with asyncio.timeout(DEADLINE_SEC):
        await begun.wait()
    assert shown("interval_seconds", "finite") == 60.0
    assert shown("last_run_timestamp_seconds", "finite") is not None
    await loop.stop()
    assert shown("last_run_timestamp_seconds", "finite") is None
