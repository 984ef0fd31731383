"""The heartbeat's fence: who cannot reach the database stops before others may take over."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest

from taskexecutor_common.clock import Clock
from taskexecutor_common.config.settings import DEAD_AFTER_SEC, FENCE_AFTER_SEC, HEARTBEAT_INTERVAL_SEC
from taskexecutor_common.runtime.heartbeat import Beat, Heartbeat
from taskexecutor_common.store.database import Database
from taskexecutor_common.store.instances import InstanceStore
from tests.support.engine import DEAD_AFTER_MS, REGION, Engine
from tests.support.line import Line
from tests.support.waiting import wait_until

INSTANCE = uuid.uuid4()


@pytest.fixture
async def heartbeat(far_db: Database) -> AsyncIterator[Heartbeat]:
    made = a_heartbeat(InstanceStore(far_db, REGION, DEAD_AFTER_MS).beat, interval_sec=0.05)
    yield made
    await made.stop()


def a_heartbeat(beat: Beat, interval_sec: float) -> Heartbeat:
    return Heartbeat(
        beat,
        "dispatcher",
        INSTANCE,
        address=lambda: "127.0.0.1:1",
        metadata={},
        interval_sec=interval_sec,
        fence_after_sec=0.3,
        now=Clock().now,
    )


async def stored_status(engine: Engine) -> str:
    return str(await engine.value("SELECT status FROM region_heartbeats WHERE instance_id = %s", INSTANCE))


async def test_an_instance_that_never_beat_is_fenced(heartbeat: Heartbeat) -> None:
    assert heartbeat.is_fenced


async def test_it_is_known_before_it_acts(engine: Engine, heartbeat: Heartbeat) -> None:
    await heartbeat.start()
    assert not heartbeat.is_fenced
    assert [peer.instance_id for peer in await engine.instances.list_live("dispatcher")] == [INSTANCE]


async def test_who_cannot_reach_the_database_is_fenced_until_a_beat_gets_through(
    heartbeat: Heartbeat, line: Line
) -> None:
    await heartbeat.start()
    line.cut()
    await wait_until(lambda: heartbeat.is_fenced, what="the fence")
    line.mend()
    await wait_until(lambda: not heartbeat.is_fenced, what="a beat")


async def test_a_beat_that_hung_is_followed_by_a_fresh_one(
    far_db: Database, line: Line, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It tells the time at which it began: by its end the others may believe this instance dead."""
    monkeypatch.setattr("taskexecutor_common.runtime.heartbeat._SLOW_SEC", 0.1)
    beats = []
    store = InstanceStore(far_db, REGION, DEAD_AFTER_MS)

    async def beat(*args: Any) -> datetime:
        beats.append(time.monotonic())
        return await store.beat(*args)

    seldom = a_heartbeat(beat, interval_sec=3600)
    await seldom.start()
    line.slow(0.2)
    before = len(beats)
    await seldom.drain()  # which wakes it
    await wait_until(lambda: len(beats) > before + 1, what="another beat")
    line.mend()
    await seldom.stop()


async def test_a_drain_is_told_and_takes_no_hints(engine: Engine, heartbeat: Heartbeat) -> None:
    await heartbeat.start()
    await heartbeat.drain()

    async def is_draining() -> bool:
        return await stored_status(engine) == "DRAINING"

    await wait_until(is_draining)
    assert await engine.instances.list_live("dispatcher") == []


async def test_a_stop_says_goodbye(engine: Engine, heartbeat: Heartbeat) -> None:
    await heartbeat.start()
    await heartbeat.stop()
    assert await stored_status(engine) == "DEAD"


async def test_the_clocks_forward_and_backward_play_no_role(engine: Engine, heartbeat: Heartbeat) -> None:
    """The stored time is the database's."""
    await heartbeat.start()
    beat = await engine.value("SELECT last_beat_at FROM region_heartbeats WHERE instance_id = %s", INSTANCE)
    assert abs((await engine.now() - beat).total_seconds()) < 5


def test_the_fence_falls_before_death_and_after_a_missed_beat() -> None:
    assert 2 * HEARTBEAT_INTERVAL_SEC < FENCE_AFTER_SEC < DEAD_AFTER_SEC
