"""What tests do with the running system again and again: make an endpoint, a job, and wait for what becomes of it."""

from __future__ import annotations

import itertools
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from taskexecutor_local.stack import Stack
from tests.e2e.rest import Json, Rest
from tests.support.receiver import Receiver
from tests.support.waiting import wait_until

_RUN = secrets.token_hex(3)
_numbers = itertools.count(1)
FINAL = {"SUCCESS", "FAILED", "CANCELLED"}


def fresh(what: str) -> str:
    """A name that no other test uses."""
    return f"{what}-{_RUN}-{next(_numbers)}"


def now() -> datetime:
    """Wall clock, UTC."""
    return datetime.now(UTC)


def in_seconds(seconds: float) -> str:
    """A time from now, as the contract writes times."""
    return (now() + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def instant(text: str) -> datetime:
    """A time of an answer."""
    return datetime.fromisoformat(text)


def retries(attempts: int, delay_ms: int = 50, **more: Any) -> Json:
    """A retry policy with a fixed delay."""
    return {"max_attempts": attempts, "backoff": "fixed", "initial_delay_ms": delay_ms, **more}


class System:
    """The stack, its first key's REST client, and a receiver."""

    def __init__(self, stack: Stack, rest: Rest, receiver: Receiver) -> None:
        self.stack = stack
        self.rest = rest
        self.receiver = receiver

    async def endpoint(self, *, rest: Rest | None = None, path: str | None = None, **settings: Any) -> str:
        """Registers an HTTP endpoint of a fresh name; it posts to the receiver's path of the same name.

        `settings` beside `payload_spec`, `config`, `retry_policy` and `flow_control` go into its spec.
        """
        name = fresh("endpoint")
        at_top = ("payload_spec", "config", "retry_policy", "flow_control")
        top = {key: settings.pop(key) for key in at_top if key in settings}
        spec = {"url": self.receiver.url(path or f"/{name}"), "method": "POST", **settings}
        await (rest or self.rest).create("/endpoints", {"name": name, "type": "HTTP", "spec": spec, **top})
        return name

    async def job(self, endpoint: str, *, rest: Rest | None = None, **fields: Any) -> Json:
        """Creates an IMMEDIATE job with a key of its own, unless `fields` say otherwise."""
        body = {"endpoint": endpoint, "trigger": "IMMEDIATE", **fields}
        if body["trigger"] != "CRON":
            body.setdefault("idempotency_key", fresh("key"))
        return await (rest or self.rest).create("/jobs", body)

    async def cron(self, endpoint: str, *, rest: Rest | None = None, **fields: Any) -> Json:
        """Creates a CRON job, yearly unless `fields` say otherwise."""
        return await self.job(
            endpoint, rest=rest, **{"trigger": "CRON", "cron": "0 0 1 1 *", "timezone": "UTC", **fields}
        )

    async def ended(self, execution_id: str, deadline: float = 10.0) -> Json:
        """The execution, once it has reached its end."""

        async def final() -> Json | None:
            execution = await self.rest.get(f"/executions/{execution_id}")
            return execution if execution["status"] in FINAL else None

        return await wait_until(final, deadline, f"the end of {execution_id}")

    async def run(self, endpoint: str, **fields: Any) -> Json:
        """Creates a job and answers its execution when that has ended."""
        return await self.ended((await self.job(endpoint, **fields))["execution"]["execution_id"])

    async def in_status(self, execution_id: str, status: str, deadline: float = 10.0) -> Json:
        """The execution, once it is in this status."""

        async def there() -> Json | None:
            execution = await self.rest.get(f"/executions/{execution_id}")
            return execution if execution["status"] == status else None

        return await wait_until(there, deadline, f"{execution_id} {status}")

    async def attempts(self, execution_id: str) -> list[Json]:
        """Its attempts, oldest first."""
        return await self.rest.items(f"/executions/{execution_id}/attempts")

    async def logs(self, execution_id: str) -> list[Json]:
        """Its log rows, oldest first."""
        return await self.rest.items(f"/executions/{execution_id}/logs")
