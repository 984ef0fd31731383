"""Fairness between lanes: a backlog in the low ones holds up the high ones for a while, and never for good."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from tests.integration.dispatcher.engine.dispatchers import Target, a_dispatcher, running
from tests.support.engine import Engine, MadeEndpoint
from tests.support.waiting import wait_until

SLOTS = 16
BACKLOG = 40 * SLOTS
HIGHEST = 15

pytestmark = pytest.mark.parametrize("lanes", [HIGHEST + 1])


async def create_in(engine: Engine, lane: int, endpoint: MadeEndpoint, count: int) -> list[UUID]:
    jobs = [replace(engine.job(endpoint), lane=lane) for _ in range(count)]
    assert len(await engine.jobs.create_many(jobs)) == count
    return [job.job_id for job in jobs]


async def test_the_highest_lane_is_served_while_the_lowest_has_a_standing_backlog(engine: Engine) -> None:
    """What is delivered from the lowest lane is replaced at once, so it never runs dry."""
    endpoint = await engine.endpoint()
    await create_in(engine, 0, endpoint, BACKLOG)
    high = await create_in(engine, HIGHEST, endpoint, 1)
    target = Target()
    dispatcher = await a_dispatcher(engine, target, slots=SLOTS)

    async def served() -> bool:
        waiting = await engine.value("SELECT count(*) FROM ready_queue WHERE lane = 0")
        if waiting < BACKLOG / 2:
            await create_in(engine, 0, endpoint, BACKLOG // 2)
        return target.executions[high[0]] == 1

    async with running(dispatcher):
        await wait_until(served, 20, "a delivery from the highest lane")
        assert await engine.value("SELECT count(*) FROM ready_queue WHERE lane = 0") > 0


async def test_all_lanes_run_dry_without_another_look(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    created = [execution for lane in range(HIGHEST + 1) for execution in await create_in(engine, lane, endpoint, 20)]
    dispatcher = await a_dispatcher(engine, Target(), slots=SLOTS)
    async with running(dispatcher):
        await wait_until(lambda: len(dispatcher.target.delivered) == len(created))
    assert dispatcher.target.executions == dict.fromkeys(created, 1)
