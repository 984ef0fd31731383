"""Far more work than can be done: nothing breaks, nothing grows without bound, and all of it is done afterwards."""

from __future__ import annotations

import os

from tests.chaos.conftest import Begin
from tests.chaos.watching import watching
from tests.support.receiver import Answer

SECONDS = float(os.environ.get("TE_OVERLOAD_SEC", "300"))
SLOTS = 10
ANSWER_SEC = 0.5
OFFERED_PER_SEC = 10 * SLOTS / ANSWER_SEC
MOST_MB = 250
GROWTH = 1.3
READ_P99_SEC = 1.0


async def test_ten_times_more_work_than_capacity(begin: Begin) -> None:
    """Slots bound what is delivered; the backlog is rows in a table, not memory."""
    async with begin(unruliness=0.0, TE_WORKER_MAX_CONCURRENT=str(SLOTS)) as running:
        running.targets.answer_with(Answer(delay_sec=ANSWER_SEC))
        async with watching(running.fleet, "/jobs?limit=20") as watch:
            await running.load.run(int(OFFERED_PER_SEC * SECONDS), OFFERED_PER_SEC)
            running.fault()
        running.targets.answer_with(Answer())
        most = watch.most_mb()
        running.row.note = f"reads p99 {watch.percentile_sec(99) * 1000:.0f} ms; " + ", ".join(
            f"{name} {mb:.0f} MB" for name, mb in most.items()
        )
        assert max(most.values()) < MOST_MB, most
        for name, samples in watch.memory_mb.items():
            early, late = max(samples[: len(samples) // 3]), max(samples[-len(samples) // 3 :])
            assert late < GROWTH * early, f"{name} grew from {early:.0f} to {late:.0f} MB"
        assert set(watch.read_answers) == {200}, watch.read_answers
        assert watch.percentile_sec(99) < READ_P99_SEC
        assert set(running.load.failures) <= {"429", "503"}, running.load.failures
        await running.settle(deadline_sec=max(120.0, SECONDS))


async def test_clients_send_more_than_the_api_admits(begin: Begin) -> None:
    """429 with Retry-After, and what was admitted is done."""
    async with begin(unruliness=0.0, TE_RATE_LIMIT_PER_SEC="50", TE_RATE_LIMIT_BURST="50") as running:
        await running.load.run(400, 400.0, batch=1)
        running.fault()
        assert running.load.failures["429"] > 0
        assert set(running.load.failures) <= {"429"}, running.load.failures
        running.row.note = f"{running.load.failures['429']} answers 429"
