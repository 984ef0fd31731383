"""What a process says of its own health: the truth, looked at every second."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from taskexecutor_common.observability import metrics
from taskexecutor_common.observability.logging import get_logger
from taskexecutor_common.runtime.loop import Loop

Check = Callable[[], str | None]
"""Answers what is wrong; None: nothing."""

_INTERVAL_SEC = 1.0

_log = get_logger("health")


class HealthMonitor:
    """Asks all checks, and passes a change on to `set_serving`: the gRPC health service, and through it the gateway.

    The checks look at what the parts know already; none of them costs a query.
    """

    def __init__(self, set_serving: Callable[[bool], Awaitable[None]], checks: Mapping[str, Check]) -> None:
        self._set_serving = set_serving
        self._checks = checks
        self._problems: dict[str, str] = {}
        self._loop = Loop("health", self.run_once, interval_sec=_INTERVAL_SEC)

    async def start(self) -> None:
        """Begins to look."""
        metrics.HEALTHY.set(1)
        await self._loop.start()

    async def stop(self) -> None:
        """Looks no more; the server says NOT_SERVING by itself when it stops."""
        await self._loop.stop()

    async def run_once(self) -> float | None:
        """One look."""
        problems = {name: problem for name, check in self._checks.items() if (problem := check())}
        if problems != self._problems:
            if problems:
                _log.warning("unhealthy", **problems)
            else:
                _log.info("healthy again")
        if bool(problems) != bool(self._problems):
            metrics.HEALTHY.set(0 if problems else 1)
            await self._set_serving(not problems)
        self._problems = problems
        return None
