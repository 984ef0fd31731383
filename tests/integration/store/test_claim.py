"""Claiming: quotas, order, and that no two workers hold the same."""

from __future__ import annotations

from tests.support.engine import Engine


async def test_a_claim_takes_up_to_its_quota_of_each_queue(engine: Engine) -> None:
    deep, shallow = await engine.endpoint(), await engine.endpoint()
    await engine.create(deep, 5)
    await engine.create(shallow, 1)
    worker = await engine.worker()
    claims = await worker.queue.claim({deep.endpoint_id: 3, shallow.endpoint_id: 3})
    assert sorted(claim.queue for claim in claims) == sorted([deep.endpoint_id] * 3 + [shallow.endpoint_id])
