"""A client that creates jobs and does what clients must: after a lost answer or a 503 it sends the same key again."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp

from tests.chaos.fleet import Fleet
from tests.e2e.rest import Answered, Json, Rest

_CALL_SEC = 15.0
_PAUSE_SEC = 0.2
_TRY_LATER = {429, 503}
_GATEWAY_GAVE_UP = {502, 504}  # what any proxy may say while all behind it is down


class Load:
    """Jobs for `endpoints`, one in three DELAYED by up to `longest_delay_sec`, one in five calls a batch.

    `accepted` has the execution id of every job that was answered for; `failures` counts what calls met before.
    """

    def __init__(
        self, rest: Rest, endpoints: Sequence[str], dice: random.Random, *, longest_delay_sec: float = 3.0
    ) -> None:
        self._rest = rest
        self._endpoints = endpoints
        self._dice = dice
        self._longest_delay_sec = longest_delay_sec
        self.patience_sec = 120.0
        """How long a call is tried again."""
        self._numbers = itertools.count()
        self.accepted: set[str] = set()
        self.keys: dict[str, str] = {}
        """Execution id by idempotency key."""
        self.failures: Counter[str] = Counter()

    async def register(self, wanted: Json) -> None:
        """Makes an endpoint; that it is there already is what an earlier try has done, whose answer was lost."""
        answered = await self.call("POST", "/endpoints", wanted)
        assert answered.status in (201, 409), answered

    async def schedule(self, number: int) -> None:
        """A cron job of every minute. Cron jobs have no key: one whose answer was lost is there besides."""
        wanted = {"endpoint": self._endpoints[number % len(self._endpoints)], "trigger": "CRON"}
        answered = await self.call(
            "POST", "/jobs", wanted | {"cron": "* * * * *", "timezone": "UTC", "catch_up": "ALL"}
        )
        assert answered.status == 201, answered

    async def unschedule(self) -> None:
        """Ends all cron jobs."""
        for job in (await self.call("GET", "/jobs?trigger=CRON&status=ACTIVE&limit=200")).items:
            await self.call("POST", f"/jobs/{job['job_id']}/cancel")

    async def run(self, jobs: int, per_sec: float, batch: int = 20) -> None:
        """Creates so many jobs at about that rate; returns when all are accepted."""
        begin = time.monotonic()
        under_way: set[asyncio.Task[None]] = set()
        made = 0
        while made < jobs:
            count = min(jobs - made, batch if self._dice.random() < 0.2 else 1)
            wanted = [self._job() for _ in range(count)]
            made += count
            task = asyncio.create_task(self._create(wanted))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            await asyncio.sleep(max(0.0, begin + made / per_sec - time.monotonic()))
            for done in [task for task in under_way if task.done()]:
                await done  # what failed for good fails the run
        await asyncio.gather(*under_way)

    async def call(self, method: str, target: str, body: Any = None) -> Answered:
        """One call until it is answered with something else than "try again". Raises TimeoutError when patience is over."""
        async with asyncio.timeout(self.patience_sec):
            while True:
                try:
                    answered = await self._rest.call(method, target, body)
                except (aiohttp.ClientConnectionError, TimeoutError) as error:
                    self.failures[type(error).__name__] += 1
                else:
                    if answered.status not in _TRY_LATER | _GATEWAY_GAVE_UP:
                        return answered
                    self.failures[str(answered.status)] += 1
                    if answered.status in _TRY_LATER:
                        assert float(answered.headers["retry-after"]) > 0, answered
                await asyncio.sleep(_PAUSE_SEC)

    def _job(self) -> Json:
        number = next(self._numbers)
        job: Json = {
            "endpoint": self._endpoints[number % len(self._endpoints)],
            "trigger": "IMMEDIATE",
            "idempotency_key": f"key-{number}",
            "input": {"number": number},
        }
        if self._dice.random() < 0.34:
            run_at = datetime.now(UTC) + timedelta(seconds=self._dice.uniform(0, self._longest_delay_sec))
            job |= {"trigger": "DELAYED", "run_at": run_at.isoformat()}
        return job

    async def _create(self, wanted: list[Json]) -> None:
        if len(wanted) == 1:
            answered = await self.call("POST", "/jobs", wanted[0])
            assert answered.status in (200, 201), answered
            self._note(wanted[0], answered.json)
            return
        while wanted:
            answered = await self.call("POST", "/jobs/batch", {"jobs": wanted})
            assert answered.status == 200, answered
            left = []
            for job, item in zip(wanted, answered.items, strict=True):
                if "job" in item:
                    self._note(job, item["job"])
                else:
                    assert item["error"]["code"] in ("UNAVAILABLE", "RATE_LIMITED"), item
                    self.failures["in a batch"] += 1
                    left.append(job)
            wanted = left

    def _note(self, wanted: Json, job: Json) -> None:
        execution_id = job["execution"]["execution_id"]
        known = self.keys.setdefault(wanted["idempotency_key"], execution_id)
        assert known == execution_id, f"two executions for one key: {known}, {execution_id}"
        self.accepted.add(execution_id)


@asynccontextmanager
async def client_of(fleet: Fleet) -> AsyncIterator[Rest]:
    """REST with the fleet's key."""
    timeout = aiohttp.ClientTimeout(total=_CALL_SEC)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=200)) as session:
        yield Rest(session, fleet.url, fleet.api_key)
