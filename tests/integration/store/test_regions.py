"""The table of regions is read; what it says is not acted on while there is one region."""

from __future__ import annotations

import psycopg

from taskexecutor_common.runtime.regions import ActiveRegions
from taskexecutor_common.store.database import Database
from taskexecutor_common.store.regions import RegionStore


async def test_a_region_marked_dead_is_seen_and_the_own_one_stays_active(db: Database, database_url: str) -> None:
    store = RegionStore(db)
    regions = ActiveRegions("default", store.list_all)
    await regions.run_once()
    assert [(state.region, state.alive) for state in await store.list_all()] == [("default", True)]
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute("UPDATE region_status SET alive = false, failed_at = now() WHERE region = 'default'")
    await regions.run_once()
    assert [(state.region, state.alive) for state in await store.list_all()] == [("default", False)]
    assert regions.active_regions == ("default",)
