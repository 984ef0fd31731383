"""The one place where statements are run again: what may be repeated, and what is said when nobody knows."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid

import pytest

from taskexecutor_common.errors import AmbiguousResult, Unavailable
from taskexecutor_common.model.setup import Config, PayloadSpec
from taskexecutor_common.observability import metrics
from taskexecutor_common.store.database import Database, Transaction
from taskexecutor_common.store.setup import SetupStore
from tests.support.engine import NAMESPACE, Engine
from tests.support.line import Cut, Line
from tests.support.waiting import wait_until


async def create_spec(db: Database, name: str, *, repeatable: bool) -> PayloadSpec | None:
    return await db.fetch_one(
        "create_payload_spec",
        PayloadSpec,
        namespace=NAMESPACE,
        name=name,
        revision_id=uuid.uuid4(),
        schema_json="{}",
        repeatable=repeatable,
    )


async def names(engine: Engine) -> list[str]:
    return [row[0] for row in await engine.rows("SELECT name FROM payload_specs ORDER BY name")]


async def test_a_lost_answer_is_ambiguous_where_the_statement_may_not_be_repeated(
    engine: Engine, far_db: Database, line: Line
) -> None:
    line.plan(Cut.AFTER_COMMIT)
    with pytest.raises(AmbiguousResult):
        await create_spec(far_db, "once", repeatable=False)
    assert line.cuts == 1
    assert await names(engine) == ["once"]


async def test_a_lost_statement_is_as_ambiguous_as_a_lost_answer(engine: Engine, far_db: Database, line: Line) -> None:
    line.plan(Cut.BEFORE)
    with pytest.raises(AmbiguousResult):
        await create_spec(far_db, "never", repeatable=False)
    assert await names(engine) == []


async def test_a_repeatable_statement_is_run_again_after_a_lost_answer(
    engine: Engine, far_db: Database, line: Line
) -> None:
    line.plan(Cut.AFTER_COMMIT)
    assert await create_spec(far_db, "twice", repeatable=True) is None  # the name is taken: by the first run
    assert await names(engine) == ["twice"]


async def test_a_creation_whose_answer_was_lost_knows_its_own_row(engine: Engine, far_db: Database, line: Line) -> None:
    line.plan(Cut.AFTER_COMMIT)
    assert await SetupStore(far_db).create_payload_spec(NAMESPACE, "mine", {}) is not None


async def test_a_transaction_whose_commit_was_lost_is_ambiguous(engine: Engine, far_db: Database, line: Line) -> None:
    async def work(tx: Transaction) -> None:
        await tx.execute("lock_payload_spec", namespace=NAMESPACE, name="a")
        await tx.execute("ensure_namespace", namespace="n")

    line.plan(Cut.AFTER_COMMIT)
    with pytest.raises(AmbiguousResult):
        await far_db.run("work", work, repeatable=False)
    assert line.cuts == 1
    assert await engine.value("SELECT count(*) FROM namespaces WHERE namespace = 'n'") == 1


async def test_a_database_that_is_away_is_unavailable_and_comes_back_by_itself(far_db: Database, line: Line) -> None:
    line.cut()
    with pytest.raises(Unavailable):
        await far_db.ping()
    line.mend()
    assert await create_spec(far_db, "back", repeatable=True) is not None


async def test_the_way_back_is_not_longer_the_longer_a_database_was_away(far_db: Database, line: Line) -> None:
    """A pool that doubles its pauses would find it again at its leisure, and meanwhile its beats are missed."""
    line.cut()
    ends = time.monotonic() + 8.0  # the pool's next look would be at 15
    while time.monotonic() < ends:
        with pytest.raises(Unavailable):
            await far_db.ping()
    line.mend()

    async def is_back() -> bool:
        with contextlib.suppress(Unavailable):
            await far_db.ping()
            return True
        return False

    await wait_until(is_back, 4.0, "the database")


async def test_a_connection_that_the_server_ended_is_replaced(engine: Engine, far_db: Database) -> None:
    await engine.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'far'")
    assert await create_spec(far_db, "again", repeatable=True) is not None


async def test_a_statement_that_takes_too_long_is_unavailable(database_url: str, engine: Engine) -> None:
    hasty = Database(database_url, pool_size=1, application_name="hasty", statement_timeout_ms=50)
    await hasty.open()
    await create_spec(engine.db, "held", repeatable=True)

    async def hold(tx: Transaction) -> None:
        await tx.execute("lock_payload_spec", namespace=NAMESPACE, name="held")
        with pytest.raises(Unavailable):
            await hasty.execute("delete_payload_spec", namespace=NAMESPACE, name="held")

    await engine.db.run("hold", hold)
    await hasty.close()
    assert await names(engine) == ["held"]


async def test_a_deadlock_is_resolved_by_running_one_of_the_two_again(engine: Engine) -> None:
    for name in ("a", "b"):
        await create_spec(engine.db, name, repeatable=True)
    meeting = asyncio.Barrier(2)
    met = False

    async def lock(tx: Transaction, first: str, second: str) -> None:
        nonlocal met
        await tx.execute("lock_payload_spec", namespace=NAMESPACE, name=first)
        if not met:
            await meeting.wait()
            met = True
        await tx.execute("lock_payload_spec", namespace=NAMESPACE, name=second)

    await asyncio.gather(
        engine.db.run("ab", lambda tx: lock(tx, "a", "b")), engine.db.run("ba", lambda tx: lock(tx, "b", "a"))
    )


@pytest.mark.parametrize("isolation", ["serializable"])
async def test_a_serialization_failure_is_run_again(engine: Engine) -> None:
    """Five increments at once of one counter, read and written in two statements: none is lost."""
    await engine.setup.create_config(NAMESPACE, "counter", {"n": 0})

    async def increment(tx: Transaction) -> None:
        config = await tx.fetch_one("get_config", Config, namespace=NAMESPACE, name="counter")
        assert config is not None
        values = f'{{"n": {config.values_json["n"] + 1}}}'
        await tx.execute(
            "update_config", namespace=NAMESPACE, name="counter", revision_id=uuid.uuid4(), values_json=values
        )

    await asyncio.gather(*(engine.db.run("increment", increment) for _ in range(5)))
    counter = await engine.setup.get_config(NAMESPACE, "counter")
    assert counter is not None
    assert counter.values_json == {"n": 5}


async def test_a_small_statement_whose_kept_plan_takes_too_long_runs_again_with_a_new_one(engine: Engine) -> None:
    """A lock stands for the bad plan: over the connections that keep plans the statement is given up for it."""
    endpoint = await engine.endpoint()
    (job,) = await engine.create(endpoint)
    worker = await engine.worker()
    slow = metrics.STORE_RETRIES.labels(statement="claim_executions", reason="slow")
    before = slow._value.get()
    await engine.rows("BEGIN")
    await engine.rows("SELECT 1 FROM executions WHERE execution_id = %s FOR UPDATE", job.job_id)
    claiming = asyncio.create_task(worker.queue.claim({endpoint.endpoint_id: 1}, small=True))
    await wait_until(lambda: slow._value.get() > before)
    await engine.rows("ROLLBACK")
    assert [claim.execution_id for claim in await claiming] == [job.job_id]
