"""What the promoter and the cron ticker know of the next due times, and when a hint is news to them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import datetime

from taskexecutor_common.store.timers import NextDue


class DueTimes:
    """The earliest due time of each lane that a loop sleeps for.

    Times are the database's; none is compared with a clock here. What is measured here is how long ago it told them.
    With `lead_sec`, each counts as reached that long before it comes.
    """

    def __init__(self, lanes: Sequence[int], *, lead_sec: float = 0.0) -> None:
        self._lead_sec = lead_sec
        self._unknown = set(lanes)
        self._next: dict[int, tuple[datetime, float]] = {}

    def forget(self, lanes: Iterable[int]) -> None:
        """The loop is about to look at these lanes: until it has, every hint is news."""
        for lane in lanes:
            self._next.pop(lane, None)
            self._unknown.add(lane)

    def learn(self, lanes: Iterable[int], upcoming: Iterable[NextDue]) -> None:
        """The loop has looked at these lanes, and this is all that waits in them."""
        told_at = time.monotonic()
        self._unknown.difference_update(lanes)
        for due in upcoming:
            self._next[due.lane] = due.due_at, told_at + due.due_in_ms / 1000 - self._lead_sec

    def late(self) -> list[int]:
        """The lanes in which something is reached by now, or may be: that were not looked at to their end."""
        now = time.monotonic()
        return [*self._unknown, *(lane for lane, (_, reached_at) in self._next.items() if reached_at <= now)]

    def wait_sec(self) -> float | None:
        """Until the earliest is reached, 0 when it was, or may have been; None: nothing waits."""
        if self._unknown:
            return 0.0
        if not self._next:
            return None
        return max(0.0, min(reached_at for _, reached_at in self._next.values()) - time.monotonic())

    def is_news(self, due_at: datetime | None) -> bool:
        """True when something due at `due_at` (None: now) comes before what is known."""
        return due_at is None or bool(self._unknown) or all(due_at < known for known, _ in self._next.values())
