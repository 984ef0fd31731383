"""The stack of `make run` on the arena's PostgreSQL server, with a database of its own."""

from __future__ import annotations

import contextlib
import json
import shutil
import urllib.request
from collections.abc import AsyncIterator, Mapping
from typing import Any

from bench.arena import Arena
from taskexecutor_local.stack import Stack, running_stack

DATABASE = "ours"
# Both are what a user of this size of load would set. A load test with one key must not measure its rate limit.
ENVIRONMENT = {
    "TE_LOG_LEVEL": "WARNING",
    "TE_RATE_LIMIT_PER_SEC": "1000000",
    "TE_RATE_LIMIT_BURST": "1000000",
    "TE_EGRESS_ALLOW": "loopback",
}

BODY = {"order": "{{input.order}}", "customer": "{{input.customer}}", "amount": "{{input.amount}}"}
"""What an endpoint sends: three values taken from the job's input."""


class OurStack:
    """The running system and the few calls that scenarios make."""

    def __init__(self, stack: Stack, arena: Arena, dispatchers: int) -> None:
        self.stack = stack
        self.arena = arena
        self.dispatchers = [name for name in stack.processes if name.startswith("dispatcher")]
        assert len(self.dispatchers) == dispatchers

    @property
    def pids(self) -> Mapping[str, int]:
        """The services and Envoy."""
        return {name: self.stack.pid(name) for name in self.stack.processes}

    @property
    def database_url(self) -> str:
        """URL of the system's database."""
        return self.stack.database_url

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """One REST call. Raises urllib.error.HTTPError."""
        request = urllib.request.Request(
            self.stack.url + path,
            method=method,
            data=json.dumps(body).encode() if body is not None else None,
            headers={"Authorization": f"Bearer {self.stack.api_key}", "Content-Type": "application/json"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=30) as answer:
            return dict(json.loads(answer.read() or b"{}"))

    def http_endpoint(self, name: str, url: str, **more: Any) -> str:
        """Registers an HTTP endpoint; answers its name."""
        return self.endpoint(name, "HTTP", {"url": url, "method": "POST", "body_template": BODY}, **more)

    def endpoint(self, name: str, kind: str, spec: dict[str, Any], **more: Any) -> str:
        """Registers any endpoint; answers its name."""
        self.call("POST", "/endpoints", {"name": name, "type": kind, "spec": spec, **more})
        return name


@contextlib.asynccontextmanager
async def our_stack(
    arena: Arena, *, dispatchers: int = 1, database_url: str | None = None, **environment: str
) -> AsyncIterator[OurStack]:
    """The system inside the block, ready, stopped after it; on a fresh database unless one is given."""
    folder = arena.folder / "ours"
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        if database_url is None:
            database_url = await stack.enter_async_context(arena.postgres.database(DATABASE))
        processes = {"TE_DATABASE_URL": database_url, "TE_DISPATCHER_PROCESSES": str(dispatchers)}
        running = running_stack(folder, environment=ENVIRONMENT | environment | processes)
        yield OurStack(await stack.enter_async_context(running), arena, dispatchers)
