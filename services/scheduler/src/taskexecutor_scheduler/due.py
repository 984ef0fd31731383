"""What the promoter and the cron ticker know of the next due time, and when a hint is news to them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from taskexecutor_common.store.timers import NextDue


class DueTimes:
    """The earliest due time that a loop sleeps for. All times are the database's; none is compared with a clock here."""

    def __init__(self) -> None:
        self._next: datetime | None = None

    def forget(self) -> None:
        """The loop is about to look: until it has, every hint is news."""
        self._next = None

    def learn(self, upcoming: Sequence[NextDue]) -> float | None:
        """The loop has looked. Answers the seconds until the earliest is due, 0 when it is late; None: nothing waits."""
        earliest = min(upcoming, key=lambda due: due.due_in_ms, default=None)
        if earliest is None:
            return None
        self._next = earliest.due_at
        return max(0.0, earliest.due_in_ms / 1000)

    def is_news(self, due_at: datetime | None) -> bool:
        """True when something due at `due_at` (None: now) comes before what is known."""
        return due_at is None or self._next is None or due_at < self._next
