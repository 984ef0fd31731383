"""Time as a thing that is passed in: UTC for the borders, monotonic for durations.

What is due is never decided here: that is the database's clock (docs/states.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def _utc_now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251  # the one place


def _epoch_ms() -> int:
    return time.time_ns() // 1_000_000


def rfc3339(time: datetime) -> str:
    """A UTC time as receivers and templates see it."""
    return time.isoformat().replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Clock:
    """The clocks of a process."""

    now: Callable[[], datetime] = _utc_now
    epoch_ms: Callable[[], int] = _epoch_ms
    monotonic: Callable[[], float] = time.monotonic
