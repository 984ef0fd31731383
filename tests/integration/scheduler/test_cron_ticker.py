"""Cron ticks: one execution each, by one of many tickers, and what becomes of those that were missed."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from taskexecutor_common.model.job import CatchUp, Job, JobStatus
from taskexecutor_scheduler.cron_ticker import CronTicker
from tests.support.engine import NAMESPACE, Engine
from tests.support.hints import HintedQueues
from tests.support.rounds import all_rounds
from tests.support.waiting import wait_until

MINUTE = timedelta(minutes=1)


async def this_minute(engine: Engine) -> datetime:
    """The last full minute by the database's clock."""
    return (await engine.now()).replace(second=0, microsecond=0)


async def ticks(engine: Engine, job_id: uuid.UUID) -> list[datetime]:
    """The nominal times of a job's executions, oldest first."""
    rows = await engine.rows("SELECT tick_at FROM executions WHERE job_id = %s ORDER BY tick_at", job_id)
    return [row[0] for row in rows]


async def job(engine: Engine, job_id: uuid.UUID) -> Job:
    found = await engine.jobs.get(NAMESPACE, job_id)
    assert found is not None
    return found


async def test_a_due_tick_becomes_one_execution_in_its_queue(
    engine: Engine, ticker: CronTicker, hinted: HintedQueues
) -> None:
    endpoint = await engine.endpoint()
    due = await this_minute(engine)
    job_id = await engine.create_cron(endpoint, due, expression="0 0 1 1 *")
    await all_rounds(ticker.run_once)
    assert await ticks(engine, job_id) == [due]
    assert len(await engine.waiting()) == 1
    assert hinted.queues == [endpoint.endpoint_id]


async def test_the_schedule_moves_on_to_the_next_tick(engine: Engine, ticker: CronTicker) -> None:
    due = await this_minute(engine)
    job_id = await engine.create_cron(await engine.endpoint(), due, expression="0 0 1 1 *")
    await all_rounds(ticker.run_once)
    after = await job(engine, job_id)
    assert after.last_tick_at == due
    assert after.next_run_at == datetime(due.year + 1, 1, 1, tzinfo=UTC)


async def test_what_is_not_due_does_not_tick(engine: Engine, ticker: CronTicker) -> None:
    job_id = await engine.create_cron(await engine.endpoint(), await engine.now() + timedelta(hours=1))
    seconds = await all_rounds(ticker.run_once)
    assert await ticks(engine, job_id) == []
    assert seconds is not None
    assert 3590 < seconds <= 3600


async def test_of_many_tickers_at_once_one_wins_each_tick(
    engine: Engine, make_ticker: Callable[..., CronTicker], hinted: HintedQueues
) -> None:
    due = await this_minute(engine)
    endpoint = await engine.endpoint()
    jobs = [await engine.create_cron(endpoint, due - 4 * MINUTE) for _ in range(10)]
    await asyncio.gather(*(all_rounds(make_ticker().run_once) for _ in range(4)))
    now = await this_minute(engine)
    expected = [due - n * MINUTE for n in range(4, -1, -1)]
    for job_id in jobs:
        fired = await ticks(engine, job_id)
        assert fired[:5] == expected
        assert fired[-1] <= now
    assert len(hinted.queues) == len(await engine.waiting())


async def test_a_job_that_was_retired_between_the_look_and_the_tick_does_not_tick(
    engine: Engine, ticker: CronTicker
) -> None:
    due = await this_minute(engine)
    job_id = await engine.create_cron(await engine.endpoint(), due, lane=0)
    (found,) = await engine.timers.find_due_cron_jobs(0, 10)
    tick = ticker._decide(found)
    assert tick is not None
    await engine.cron_jobs.retire(job_id)
    assert await engine.timers.tick([tick]) == []
    assert await ticks(engine, job_id) == []
    assert (await job(engine, job_id)).status is JobStatus.RETIRED


async def test_a_ticker_that_decided_long_ago_does_not_set_a_schedule_back(engine: Engine, ticker: CronTicker) -> None:
    """Between its look and its set another ticker went on: the set compares."""
    job_id = await engine.create_cron(await engine.endpoint(), await this_minute(engine) - 5 * MINUTE, lane=0)
    (found,) = await engine.timers.find_due_cron_jobs(0, 10)
    late = ticker._decide(found)
    assert late is not None
    await all_rounds(ticker.run_once)
    before = await job(engine, job_id)
    assert await engine.timers.tick([late]) == []
    assert (await job(engine, job_id)).next_run_at == before.next_run_at


async def test_all_missed_ticks_fire_oldest_first(engine: Engine, ticker: CronTicker) -> None:
    due = await this_minute(engine)
    job_id = await engine.create_cron(await engine.endpoint(), due - 9 * MINUTE, catch_up=CatchUp.ALL)
    await all_rounds(ticker.run_once)
    fired = await ticks(engine, job_id)
    assert fired[:10] == [due - n * MINUTE for n in range(9, -1, -1)]
    by_queue = await engine.rows(
        "SELECT e.tick_at FROM ready_queue r JOIN executions e USING (execution_id) ORDER BY r.ready_at, r.execution_id"
    )
    assert [row[0] for row in by_queue] == fired


async def test_a_tick_that_is_due_now_fires_in_the_next_round_beside_a_long_catch_up(
    engine: Engine, make_ticker: Callable[..., CronTicker]
) -> None:
    """Two days of ticks wait in as many schedules as a batch takes, all of them due before it."""
    ticker = make_ticker(batch=4)
    due = await this_minute(engine)
    endpoint, other = await engine.endpoint(), await engine.endpoint(namespace="other")
    busy = [await engine.create_cron(endpoint, due - timedelta(days=2), lane=0) for _ in range(4)]
    prompt = await engine.create_cron(other, due, expression="0 0 1 1 *", lane=0)
    assert await ticker.run_once() == 0
    assert await ticks(engine, prompt) == [due]
    for _ in range(2):
        await ticker.run_once()
    assert all([await ticks(engine, job_id) for job_id in busy]), "the others go on"


async def test_a_catch_up_shows_that_it_lives_and_stops_when_told(
    engine: Engine, make_ticker: Callable[..., CronTicker]
) -> None:
    ticker = make_ticker(batch=4)
    missed = 2 * 24 * 60
    first = await this_minute(engine) - missed * MINUTE
    jobs = [await engine.create_cron(await engine.endpoint(), first) for _ in range(2)]
    await ticker.loop.start()
    await wait_until(lambda: ticker.loop.last_run, 60, "a first round")
    await ticker.loop.stop()
    for job_id in jobs:
        fired = await ticks(engine, job_id)
        assert fired == [first + n * MINUTE for n in range(len(fired))]
        assert len(fired) < missed


async def test_of_missed_ticks_the_latest_alone_fires(engine: Engine, ticker: CronTicker) -> None:
    due = await this_minute(engine)
    job_id = await engine.create_cron(await engine.endpoint(), due - 9 * MINUTE, catch_up=CatchUp.LATEST)
    await all_rounds(ticker.run_once)
    fired = await ticks(engine, job_id)
    assert due <= fired[0] <= await engine.now()
    after = await job(engine, job_id)
    assert after.next_run_at == fired[-1] + MINUTE


async def test_missed_ticks_are_skipped(engine: Engine, ticker: CronTicker) -> None:
    """An hour's ticks were missed; a late one within the grace of ten seconds would still fire."""
    due = await this_minute(engine)
    job_id = await engine.create_cron(
        await engine.endpoint(), due - timedelta(hours=1), expression="30 0 1 1 *", catch_up=CatchUp.NONE
    )
    await all_rounds(ticker.run_once)
    assert await ticks(engine, job_id) == []
    after = await job(engine, job_id)
    assert after.last_tick_at is None
    assert after.next_run_at is not None
    assert after.next_run_at > await engine.now()


async def test_a_tick_that_is_late_by_no_more_than_the_grace_fires(engine: Engine, ticker: CronTicker) -> None:
    due = await engine.now() - timedelta(seconds=2)
    job_id = await engine.create_cron(await engine.endpoint(), due, expression="0 0 1 1 *", catch_up=CatchUp.NONE)
    await all_rounds(ticker.run_once)
    assert await ticks(engine, job_id) == [due]


async def test_the_last_tick_before_the_end_retires_the_job(engine: Engine, ticker: CronTicker) -> None:
    due = await this_minute(engine)
    job_id = await engine.create_cron(await engine.endpoint(), due, ends_at=due + timedelta(seconds=30))
    await all_rounds(ticker.run_once)
    assert await ticks(engine, job_id) == [due]
    after = await job(engine, job_id)
    assert (after.status, after.next_run_at) == (JobStatus.RETIRED, None)
    assert after.retired_at is not None


async def test_a_retired_job_ticks_no_more(engine: Engine, ticker: CronTicker) -> None:
    job_id = await engine.create_cron(await engine.endpoint(), await this_minute(engine))
    await engine.cron_jobs.retire(job_id)
    assert await all_rounds(ticker.run_once) is None
    assert await ticks(engine, job_id) == []


async def test_schedules_that_cannot_be_read_hold_up_nobody_else(
    engine: Engine, make_ticker: Callable[..., CronTicker]
) -> None:
    """Neither in their lane, however many they are, nor in another; and the ticker goes on as if they were not there."""
    ticker = make_ticker(batch=2)
    due = await this_minute(engine)
    endpoint = await engine.endpoint()
    broken = [await engine.create_cron(endpoint, due - MINUTE, timezone="Mars/Phobos", lane=0) for _ in range(3)]
    neighbour = await engine.create_cron(endpoint, due, expression="0 0 1 1 *", lane=0)
    elsewhere = await engine.create_cron(endpoint, due, expression="0 0 1 1 *", lane=1)
    seconds = await all_rounds(ticker.run_once)
    assert seconds is not None
    assert seconds > MINUTE.total_seconds(), "the next tick is that of those that can be read"
    assert [await ticks(engine, job_id) for job_id in broken] == [[], [], []]
    assert await ticks(engine, neighbour) == [due]
    assert await ticks(engine, elsewhere) == [due]


async def test_a_schedule_that_can_be_read_again_catches_up(
    engine: Engine, ticker: CronTicker, monkeypatch: pytest.MonkeyPatch
) -> None:
    due = await this_minute(engine)
    job_id = await engine.create_cron(await engine.endpoint(), due, expression="0 0 1 1 *", timezone="Mars/Phobos")
    await all_rounds(ticker.run_once)
    assert await ticks(engine, job_id) == []
    await engine.rows("UPDATE jobs SET cron_timezone = 'UTC' WHERE job_id = %s", job_id)
    monkeypatch.setattr(ticker, "_read_again_at", 0.0)  # a minute has passed
    await all_rounds(ticker.run_once)
    assert await ticks(engine, job_id) == [due]


async def test_a_tick_fires_when_it_is_due_though_the_interval_is_long(engine: Engine, ticker: CronTicker) -> None:
    due = await engine.now() + timedelta(seconds=0.2)
    job_id = await engine.create_cron(await engine.endpoint(), due, expression="0 0 1 1 *")
    await ticker.loop.start()
    await wait_until(engine.waiting, what="a tick")
    await ticker.loop.stop()
    assert await ticks(engine, job_id) == [due]


async def test_a_hint_wakes_it_for_a_new_schedule(engine: Engine, ticker: CronTicker) -> None:
    await engine.create_cron(await engine.endpoint(), await engine.now() + timedelta(hours=1))
    await ticker.loop.start()
    await wait_until(lambda: ticker.loop.last_run, what="a first round")
    due = await engine.now()
    job_id = await engine.create_cron(await engine.endpoint(), due, expression="0 0 1 1 *")
    ticker.hint(due)
    await wait_until(engine.waiting, what="a tick")
    await ticker.loop.stop()
    assert await ticks(engine, job_id) == [due]
