"""The stores on a database that fails by the dice, beside a sound one to look at what became of it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest

from taskexecutor_common.store.database import Database
from tests.support.faulty_database import Faults, FaultyDatabase

RATE = 0.15
SEEDS = range(int(os.environ.get("TE_TEST_FAULT_SEEDS", "1")))


@pytest.fixture(params=SEEDS, ids=lambda seed: f"seed{seed}")
def faults(request: pytest.FixtureRequest) -> Faults:
    """What strikes `faulty_db`; TE_TEST_FAULT_SEEDS=50 tries that many seeds."""
    return Faults(request.param, RATE)


@pytest.fixture
async def faulty_db(database_url: str, isolation: str, faults: Faults) -> AsyncIterator[Database]:
    """A pool on this test's database whose tries are struck."""
    database = FaultyDatabase(database_url, faults, pool_size=8, application_name="faulty", isolation=isolation)
    await database.open()
    yield database
    await database.close()
