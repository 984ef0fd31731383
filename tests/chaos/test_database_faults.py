"""The database goes away, comes back, and answers what nobody likes to hear."""

from __future__ import annotations

import pytest

from tests.chaos.conftest import Begin
from tests.chaos.fleet import KINDS
from tests.chaos.scenario import JOBS, PER_SEC, SEED
from tests.support.faulty_database import LOSSES, OVERLOAD, UNDONE, Fault

RATE = 0.05


async def test_the_database_is_restarted_in_the_middle_of_everything(begin: Begin) -> None:
    async with begin() as running:
        async for _ in running.under_load(0.25, 0.6):
            await running.fleet.restart(running.fleet.postgres)
            running.fault()


@pytest.mark.quick
async def test_the_database_is_killed_in_the_middle_of_everything(begin: Begin) -> None:
    async with begin() as running:
        async for _ in running.under_load(0.25, 0.6):
            running.fleet.kill(running.fleet.postgres)
            running.fault()


@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(UNDONE, id="are_rolled_back"),
        pytest.param(LOSSES, id="are_lost_or_committed_and_reported_failed", marks=pytest.mark.quick),
        pytest.param(OVERLOAD, id="find_the_disk_full_or_time_out"),
    ],
)
async def test_statements_of_all_services(begin: Begin, kinds: frozenset[Fault]) -> None:
    names = sorted(kind.name for kind in kinds)
    wrong = {kind: {"seed": SEED + number, "rate": RATE, "kinds": names} for number, kind in enumerate(KINDS)}
    async with begin(wrong=wrong) as running:
        running.row.note = f"{RATE:.0%} of the statements of every service"
        await running.load.run(JOBS, PER_SEC)
        running.fault(running.fleet.count_in_logs("fault injected"))
        assert running.row.faults > 0
