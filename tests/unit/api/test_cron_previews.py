"""Previews of expressions that seldom fire, which cost the most."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from taskexecutor_api.operations.cron_jobs import preview

LEAP_SUNDAYS = "0 0 */29 2 */7"  # 29 February on a Sunday: every 28 years
COUNT = 200
LEAST_TURNS = 10


async def test_other_calls_are_answered_while_a_preview_runs() -> None:
    turns = 0

    async def answer_others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    others = asyncio.create_task(answer_others())
    now = datetime(2026, 11, 22, tzinfo=UTC)
    firings = await preview(LEAP_SUNDAYS, "UTC", starts_at=None, ends_at=None, now=now, count=COUNT)
    others.cancel()
    assert len(firings) == COUNT
    assert turns >= LEAST_TURNS
