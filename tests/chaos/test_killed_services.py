"""kill -9, SIGSTOP and restarts of our services under load."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.chaos.conftest import Begin
from tests.chaos.fleet import KINDS
from tests.chaos.scenario import JOBS, PER_SEC, Chaos
from tests.support.receiver import Answer
from tests.support.waiting import wait_until

DEAD_SEC = 15  # silence that counts as death
PICKED_UP_SEC = 20
HANDFUL = 10  # deliveries under way


@pytest.mark.parametrize("kind", KINDS)
async def test_a_service_is_killed_again_and_again(begin: Begin, kind: str) -> None:
    async with begin() as running:
        async for _ in running.under_load(0.2, 0.45, 0.7):
            running.fleet.kill(running.fleet.members[kind].process)
            running.fault()


@pytest.mark.quick
async def test_all_services_are_killed_at_once(begin: Begin) -> None:
    async with begin() as running:
        async for _ in running.under_load(0.33):
            for member in running.fleet.members.values():
                running.fleet.kill(member.process)
                running.fault()


async def test_a_dead_dispatchers_work_is_picked_up(begin: Begin) -> None:
    """Within 20 seconds, by the other one, though it said no goodbye."""
    async with begin(counts={"dispatcher": 2}, unruliness=0.0) as running:
        running.targets.answer_with(Answer(delay_sec=0.9))  # so that much is under way
        load = asyncio.create_task(running.load.run(JOBS, PER_SEC))
        await wait_until(lambda: has_its_hands_full(running), 30, "deliveries under way")
        running.fleet.freeze("dispatcher")
        running.fault()
        held, began = await held_by(running, "dispatcher"), time.monotonic()

        async def taken_back() -> bool:
            return await held_by(running, "dispatcher") == 0

        await wait_until(taken_back, PICKED_UP_SEC, "its work to be taken back")
        running.row.note = f"{held} taken back after {time.monotonic() - began:.1f} s"
        running.targets.answer_with(Answer())
        await load
        await running.settle()
        running.fleet.thaw("dispatcher")


async def test_a_frozen_dispatcher_thaws_after_its_lease(begin: Begin) -> None:
    """It wakes to find that all it had in its hands has failed; but others have delivered that, and theirs counts."""
    async with begin(counts={"dispatcher": 2}) as running:
        running.targets.answer_with(Answer(hangs=True))
        load = asyncio.create_task(running.load.run(JOBS, PER_SEC))

        async def is_in_the_middle_of_it() -> bool:
            return running.targets.count > 3 * HANDFUL and await has_its_hands_full(running)

        await wait_until(is_in_the_middle_of_it, 30, "deliveries under way")
        running.fleet.freeze("dispatcher")
        running.fault()
        running.targets.answer_with(Answer())
        await asyncio.sleep(DEAD_SEC + 10)
        running.fleet.thaw("dispatcher")
        running.fault()
        await load
        await running.settle()


async def test_both_schedulers_are_frozen(begin: Begin) -> None:
    async with begin(counts={"scheduler": 2}) as running:
        async for _ in running.under_load(0.25):
            for name in ("scheduler", "scheduler-2"):
                running.fleet.freeze(name)
                running.fault()
            await asyncio.sleep(DEAD_SEC + 5)
            for name in ("scheduler", "scheduler-2"):
                running.fleet.thaw(name)
                running.fault()


@pytest.mark.quick
async def test_every_service_is_restarted_in_turn_and_no_client_notices(begin: Begin) -> None:
    async with begin(counts=dict.fromkeys(KINDS, 2), unruliness=0.0, straight=True) as running:
        async for _ in running.under_load(0.05, per_sec=PER_SEC / 2):
            for member in running.fleet.members.values():
                await running.fleet.restart(member.process)
                running.fault()
        assert not running.load.failures, dict(running.load.failures)


async def has_its_hands_full(running: Chaos[Any]) -> bool:
    """Whether the first dispatcher has deliveries under way."""
    return await held_by(running, "dispatcher") >= HANDFUL


async def held_by(running: Chaos[Any], name: str) -> int:
    """How many leases a dispatcher has."""
    async with running.fleet.connection() as connection:
        rows = await connection.execute(
            "SELECT count(*) FROM leases AS l JOIN region_heartbeats AS h ON h.instance_id = l.worker_id WHERE h.address = %s",
            (running.fleet.members[name].to_it.address,),
        )
        return int((await rows.fetchall())[0][0])


async def test_the_only_api_is_restarted_and_no_client_notices(begin: Begin) -> None:
    """Envoy holds the calls of that second and a half, and sends them when the api is back."""
    async with begin(unruliness=0.0, straight=True) as running:
        async for _ in running.under_load(0.2, 0.45, 0.7, per_sec=PER_SEC / 2):
            await running.fleet.restart(running.fleet.members["api"].process)
            running.fault()
        assert not running.load.failures, dict(running.load.failures)
