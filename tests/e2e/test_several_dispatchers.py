"""`make run` with more than one dispatcher (TE_DISPATCHER_PROCESSES)."""

from __future__ import annotations

import pathlib

import psycopg

from tests.e2e.conftest import system_in
from tests.support.receiver import Answer, running_receiver
from tests.support.waiting import wait_until

JOBS = 40


async def test_two_dispatchers_share_the_work(tmp_path: pathlib.Path) -> None:
    with running_receiver() as receiver:
        settings = {"TE_DISPATCHER_PROCESSES": "2", "TE_WORKER_MAX_CONCURRENT": "1"}
        async with (
            system_in(tmp_path / "data", receiver, **settings) as system,
            await psycopg.AsyncConnection.connect(system.stack.database_url, autocommit=True) as database,
        ):
            assert system.stack.pid("dispatcher") != system.stack.pid("dispatcher-2")
            endpoint = await system.endpoint()
            receiver.script(f"/{endpoint}", Answer(delay_sec=0.05))  # one of them alone would take two seconds
            for _ in range(JOBS):
                await system.job(endpoint)

            async def workers() -> set[str] | None:
                rows = await database.execute("SELECT worker_id FROM attempts WHERE status = 'SUCCESS'")
                found = [str(worker) for (worker,) in await rows.fetchall()]
                return set(found) if len(found) == JOBS else None

            assert len(await wait_until(workers, 20, "the end of all jobs") or ()) == 2
