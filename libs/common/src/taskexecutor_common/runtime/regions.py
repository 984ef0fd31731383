"""The regions whose work this process does: its own one, until there is more than one to choose from.

The brief wants the reading in place and the acting deferred: the table is read every ten seconds, a change is logged, and
`active_regions` stays what it is. When a second region comes, this is where a dead one's work is adopted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from taskexecutor_common.observability.logging import get_logger
from taskexecutor_common.runtime.loop import Loop

_INTERVAL_SEC = 10.0

_log = get_logger("regions")


class State(Protocol):
    """What is known of a region; the store's RegionState is one."""

    @property
    def region(self) -> str:
        """Which."""

    @property
    def alive(self) -> bool:
        """Whether it lives."""


class ActiveRegions:
    """Reads the state of all regions again and again."""

    def __init__(self, own_region: str, list_all: Callable[[], Awaitable[Sequence[State]]]) -> None:
        self._list_all = list_all
        self._dead: frozenset[str] = frozenset()
        self.active_regions: tuple[str, ...] = (own_region,)
        """The regions whose executions are claimed."""
        self.loop = Loop("regions", self.run_once, interval_sec=_INTERVAL_SEC)

    async def run_once(self) -> float | None:
        """One look."""
        dead = frozenset(state.region for state in await self._list_all() if not state.alive)
        if dead != self._dead:
            _log.warning("regions marked dead", dead=sorted(dead), active=self.active_regions)
        self._dead = dead
        return None
