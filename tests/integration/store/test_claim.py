"""Claiming: quotas, order, and that no two workers hold the same."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from taskexecutor_common.errors import AmbiguousResult
from taskexecutor_common.model.endpoint import EndpointType
from taskexecutor_common.model.execution import Claim
from taskexecutor_common.model.state import ExecutionStatus
from taskexecutor_common.store.database import Database
from tests.integration.store.one_lane import in_one_lane
from tests.support.engine import GRACE_MS, NAMESPACE, Engine, MadeEndpoint, Worker, retrying
from tests.support.line import Cut, Line


async def test_a_claim_takes_up_to_its_quota_of_each_queue(engine: Engine) -> None:
    deep, middling, shallow = [await engine.endpoint() for _ in range(3)]
    for endpoint, count in ((deep, 9), (middling, 3), (shallow, 1)):
        await engine.create(endpoint, count)
    worker = await engine.worker()
    claims = await worker.queue.claim({deep.endpoint_id: 4, middling.endpoint_id: 2, shallow.endpoint_id: 5})
    taken = Counter(claim.queue for claim in claims)
    assert taken == {deep.endpoint_id: 4, middling.endpoint_id: 2, shallow.endpoint_id: 1}


async def test_a_claim_leaves_queues_alone_that_it_does_not_name(engine: Engine) -> None:
    named, unnamed = await engine.endpoint(), await engine.endpoint()
    await engine.create(unnamed)
    assert await (await engine.worker()).queue.claim({named.endpoint_id: 10}) == []


@in_one_lane
async def test_the_oldest_is_claimed_first(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    created = [await engine.create_one(endpoint) for _ in range(4)]
    worker = await engine.worker()
    claimed = [(await engine.claim_one(endpoint, worker)).execution_id for _ in range(4)]
    assert claimed == created


@in_one_lane
async def test_the_more_urgent_is_claimed_before_the_older(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    _, urgent = await engine.create_one(endpoint), await engine.create_one(endpoint)
    await engine.rows("UPDATE ready_queue SET priority = 0 WHERE execution_id = %s", urgent)
    assert (await engine.claim_one(endpoint, await engine.worker())).execution_id == urgent


async def test_what_another_claim_has_in_its_hand_is_passed_over(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    first, second = await engine.create_one(endpoint), await engine.create_one(endpoint)
    worker = await engine.worker()
    await engine.rows("BEGIN")
    await engine.rows("SELECT 1 FROM ready_queue WHERE execution_id = %s FOR UPDATE", first)
    assert (await engine.claim_one(endpoint, worker)).execution_id == second
    await engine.rows("ROLLBACK")


async def claim_all(worker: Worker, endpoints: list[MadeEndpoint], quota: int) -> list[Claim]:
    """Claims until nothing is left."""
    claims: list[Claim] = []
    while taken := await worker.queue.claim({endpoint.endpoint_id: quota for endpoint in endpoints}):
        claims += taken
    return claims


async def test_claimers_at_once_share_the_work_without_duplicates(engine: Engine) -> None:
    endpoints = [await engine.endpoint() for _ in range(4)]
    created = {job.job_id for endpoint in endpoints for job in await engine.create(endpoint, 100)}
    workers = [await engine.worker() for _ in range(8)]
    shares = await asyncio.gather(*(claim_all(worker, endpoints, 3) for worker in workers))
    claims = [claim for share in shares for claim in share]
    assert len(claims) == len(created)
    assert {claim.execution_id for claim in claims} == created
    assert {claim.attempt_count for claim in claims} == {1}
    for worker, share in zip(workers, shares, strict=True):
        held = await engine.rows("SELECT execution_id FROM leases WHERE worker_id = %s", worker.worker_id)
        assert {row[0] for row in held} == {claim.execution_id for claim in share}


async def test_a_cancelled_execution_is_dropped_by_the_claim(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    execution_id = await engine.create_one(endpoint)
    assert await engine.executions.cancel(NAMESPACE, execution_id)
    assert await (await engine.worker()).queue.claim({endpoint.endpoint_id: 1}) == []
    assert await engine.status(execution_id) is ExecutionStatus.CANCELLED
    assert await engine.waiting() == []
    assert await engine.count("leases") == 0


async def test_a_claim_holds_for_the_timeout_and_the_grace(engine: Engine) -> None:
    endpoint = await engine.endpoint(timeout_ms=7000)
    await engine.create(endpoint)
    before = await engine.now()
    await engine.claim_one(endpoint, await engine.worker())
    held_for = await engine.value("SELECT expires_at FROM leases") - before
    assert timedelta(milliseconds=7000 + GRACE_MS) <= held_for <= timedelta(milliseconds=7000 + GRACE_MS, seconds=5)


async def test_a_claim_says_when_the_execution_should_have_fired(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    run_at = await engine.now() + timedelta(hours=1)
    await engine.create(endpoint, run_at=run_at)
    await engine.timers_come_due()
    await engine.promote()
    assert (await engine.claim_one(endpoint, await engine.worker())).scheduled_at == run_at


async def claimed_ahead(engine: Engine) -> tuple[Worker, Claim, datetime]:
    """A claim of what is due in ten seconds, and when that is."""
    endpoint = await engine.endpoint(timeout_ms=7000)
    run_at = await engine.now() + timedelta(seconds=10)
    await engine.create(endpoint, run_at=run_at)
    await engine.promote(ahead_ms=20_000)
    worker = await engine.worker()
    return worker, await engine.claim_one(endpoint, worker), run_at


async def test_a_claim_ahead_says_when_it_is_ready(engine: Engine) -> None:
    worker, claim, run_at = await claimed_ahead(engine)
    (found,) = await worker.queue.find_held([])
    for said in (claim, found):
        ready_at = datetime.fromtimestamp(said.ready_at_ms / 1000, UTC)
        assert abs(ready_at - run_at) < timedelta(microseconds=2)
        assert said.claimed_at_ms < said.ready_at_ms


async def test_the_attempt_and_lease_of_a_claim_ahead_begin_when_it_is_due(engine: Engine) -> None:
    _, claim, run_at = await claimed_ahead(engine)
    assert (await engine.execution(claim.execution_id)).started_at == run_at
    lease_ends_at = await engine.value("SELECT expires_at FROM leases")
    assert lease_ends_at == run_at + timedelta(milliseconds=7000 + GRACE_MS)


async def test_the_config_is_pinned_at_the_first_claim_and_kept_over_retries(engine: Engine) -> None:
    await engine.setup.create_config(NAMESPACE, "settings", {"n": 1})
    endpoint = await engine.endpoint(max_attempts=2, config="settings")
    await engine.create(endpoint)
    await change_config(engine, {"n": 2})
    worker = await engine.worker()
    first = await engine.claim_one(endpoint, worker)
    await change_config(engine, {"n": 3})
    await worker.queue.finalise([retrying(first)])
    await engine.promote()
    second = await engine.claim_one(endpoint, worker)
    assert second.config_revision_id == first.config_revision_id
    assert second.config_revision_id is not None
    assert await engine.setup.get_config_revision(second.config_revision_id) == {"n": 2}


async def change_config(engine: Engine, values: dict[str, int]) -> None:
    changed, _ = await engine.setup.update_config(NAMESPACE, "settings", values, lambda path: False)
    assert changed is not None


async def test_a_job_keeps_the_endpoint_revision_that_it_was_created_with(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    await engine.create(endpoint)
    assert await engine.endpoints.update(NAMESPACE, endpoint.name, EndpointType.HTTP, engine.settings(timeout_ms=5))
    assert (await engine.claim_one(endpoint, await engine.worker())).endpoint_revision == endpoint.revision


@pytest.mark.parametrize(("cut", "held"), [(Cut.AFTER_COMMIT, 3), (Cut.BEFORE, 0)])
async def test_what_a_claim_without_an_answer_took_is_found_again(
    engine: Engine, far_db: Database, line: Line, cut: Cut, held: int
) -> None:
    endpoint = await engine.endpoint()
    await engine.create(endpoint, 4)
    worker = await engine.worker(far_db)
    known = await engine.claim_one(endpoint, worker)
    line.plan(cut)
    with pytest.raises(AmbiguousResult):
        await worker.queue.claim({endpoint.endpoint_id: 3})
    adopted = await worker.queue.find_held([known.execution_id])
    assert len(adopted) == held
    assert known.execution_id not in {claim.execution_id for claim in adopted}
    assert await engine.count("ready_queue") == 3 - held


async def test_a_found_claim_says_the_same_as_the_claim_itself(engine: Engine) -> None:
    worker, claim = await engine.running()
    (found,) = await worker.queue.find_held([])
    times = ("claimed_at_ms", "ready_at_ms", "late_ms")
    assert {name: getattr(found, name) for name in Claim.__slots__ if name not in times} == {
        name: getattr(claim, name) for name in Claim.__slots__ if name not in times
    }
