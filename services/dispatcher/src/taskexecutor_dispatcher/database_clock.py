"""How the database's clock relates to that of this process."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

# What was learnt is forgotten after once to twice this, because clocks are set and run at different rates: by NTP up to 500
# millionths apart, which is a millisecond in two seconds and nearly always far below what the fastest answer takes.
_WINDOW_SEC = 1.0


class DatabaseClock:
    """Learns from every answer that says what the database's clock showed.

    It showed that somewhere between the question and the answer. Of many answers the fastest leaves the least doubt
    (F. Cristian, Probabilistic clock synchronization, Distributed Computing 3, 1989), and all err to the same side: what is
    due by the database's clock is reckoned a little late and never early.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._since = -math.inf
        self._least = math.inf
        self._least_before = math.inf

    def difference(self, shown_ms: float, asked_at: float) -> float:
        """What has to be added to the database's seconds since the epoch to have monotonic ones. To be called when the
        answer to a question of `asked_at` has just come, and said that it was `shown_ms`."""
        answered_at = self._monotonic()
        self._forget(answered_at)
        shown = shown_ms / 1000
        self._least = min(self._least, answered_at - shown)
        return max(asked_at - shown, min(self._least, self._least_before))

    def _forget(self, now: float) -> None:
        age = now - self._since
        if age >= _WINDOW_SEC:
            self._least_before = self._least if age < 2 * _WINDOW_SEC else math.inf
            self._least = math.inf
            self._since = now
