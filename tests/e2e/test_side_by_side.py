"""Several schedulers and dispatchers on one database: nothing fires twice that should fire once, nothing is left behind."""

from __future__ import annotations

import contextlib
import pathlib
import subprocess
from collections import Counter
from collections.abc import Iterator

import psycopg

from taskexecutor_local import programs
from tests.e2e.conftest import system_in
from tests.e2e.rest import Json
from tests.e2e.system import System, fresh, in_seconds, retries
from tests.support.receiver import Answer, running_receiver
from tests.support.waiting import wait_until

ONE_SHOT_JOBS = 10_000
CRON_JOBS = 200
MISSED_MINUTES = 3
BATCH = 1000  # what one call may create


@contextlib.contextmanager
def more_processes(system: System, *names: str) -> Iterator[None]:
    """Further instances of services beside those of the stack, with addresses of their own."""
    environment = system.stack.environment() | {"TE_INTERNAL_LISTEN_ADDR": "127.0.0.1:0", "TE_METRICS_ADDR": ""}
    processes = [
        subprocess.Popen(programs.script(f"taskexecutor-{name}"), env=environment, stdout=subprocess.DEVNULL)
        for name in names
    ]
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            assert process.wait(30) == 0


async def live_instances(database: psycopg.AsyncConnection, component: str) -> int:
    cursor = await database.execute(
        "SELECT count(*) FROM region_heartbeats WHERE component = %s AND status = 'ALIVE'", (component,)
    )
    return (await cursor.fetchone() or (0,))[0]


async def create_one_shots(system: System, steady: str, flaky: str) -> list[str]:
    """Half of them due now, half in a moment; one in ten goes to an endpoint whose receiver refuses at first."""
    ids: list[str] = []
    for start in range(0, ONE_SHOT_JOBS, BATCH):
        jobs: list[Json] = []
        for number in range(start, start + BATCH):
            job: Json = {
                "endpoint": flaky if number % 10 == 0 else steady,
                "trigger": "IMMEDIATE",
                "idempotency_key": f"job-{number}",
                "input": {"number": number},
            }
            if number % 2:
                job |= {"trigger": "DELAYED", "run_at": in_seconds(2)}
            jobs.append(job)
        answer = await system.rest.call("POST", "/jobs/batch", {"jobs": jobs})
        assert answer.status == 200, answer.text
        ids += [item["job"]["execution"]["execution_id"] for item in answer.items]
    return ids


async def create_crons_with_missed_ticks(system: System, database: psycopg.AsyncConnection, endpoint: str) -> None:
    """Every minute; then their next tick is set back, as if no scheduler had run for some minutes."""
    jobs = [{"endpoint": endpoint, "trigger": "CRON", "cron": "* * * * *", "timezone": "UTC"}] * CRON_JOBS
    answer = await system.rest.call("POST", "/jobs/batch", {"jobs": jobs})
    assert all("job" in item for item in answer.items), answer.text
    await database.execute(
        "UPDATE cron_jobs SET next_run_at = date_trunc('minute', now()) - %s * interval '1 minute'",
        (MISSED_MINUTES - 1,),
    )


async def test_two_schedulers_and_three_dispatchers_fire_each_tick_once_and_lose_no_job(tmp_path: pathlib.Path) -> None:
    with running_receiver() as receiver:
        async with (
            system_in(tmp_path / "data", receiver) as system,
            await psycopg.AsyncConnection.connect(system.stack.database_url, autocommit=True) as database,
        ):
            with more_processes(system, "scheduler", "dispatcher", "dispatcher"):

                async def all_up() -> bool:
                    return (
                        await live_instances(database, "scheduler"),
                        await live_instances(database, "dispatcher"),
                    ) == (2, 3)

                await wait_until(all_up, 20, "two schedulers and three dispatchers")
                steady, ticking = await system.endpoint(), await system.endpoint()
                flaky = await system.endpoint(path=f"/{fresh('flaky')}", retry_policy=retries(50, 20))
                flaky_path = (await system.rest.get(f"/endpoints/{flaky}"))["spec"]["url"].partition(
                    f":{receiver.port}"
                )[2]
                receiver.script(flaky_path, *[Answer(503)] * 300, Answer(200))

                await create_crons_with_missed_ticks(system, database, ticking)
                wanted = await create_one_shots(system, steady, flaky)

                async def all_ended() -> bool:
                    cursor = await database.execute("SELECT count(*) FROM executions WHERE completed_at IS NULL")
                    return (await cursor.fetchone() or (1,))[0] == 0

                await wait_until(all_ended, 90, "the end of all executions")

                cursor = await database.execute("SELECT status, count(*) FROM executions GROUP BY status")
                statuses = dict(await cursor.fetchall())
                assert set(statuses) == {"SUCCESS"}
                cursor = await database.execute(
                    "SELECT count(*), count(DISTINCT (job_id, tick_at)), min(ticks) FROM executions "
                    "JOIN (SELECT job_id, count(*) AS ticks FROM executions WHERE tick_at IS NOT NULL GROUP BY job_id) t "
                    "USING (job_id) WHERE tick_at IS NOT NULL"
                )
                firings, distinct, fewest = await cursor.fetchone() or (0, 0, 0)
                assert firings == distinct
                assert fewest >= MISSED_MINUTES, "a missed tick was not caught up with"
                assert len(set(wanted)) == ONE_SHOT_JOBS

                once = Counter(
                    request.key for path in (f"/{steady}", f"/{ticking}") for request in receiver.requests(path)
                )
                assert set(once.values()) == {1}, "nothing failed there, so nothing may have been sent twice"
                flaky_keys = Counter(request.key for request in receiver.requests(flaky_path))
                assert once.keys() | flaky_keys.keys() >= set(wanted)
                assert sum(flaky_keys.values()) == ONE_SHOT_JOBS // 10 + 300, "one request an attempt"
