"""Token buckets: how often something may happen in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

_MAX_KEYS = 10_000


class RateLimiter:
    """A bucket of `burst` tokens per key, refilled at `per_sec`."""

    def __init__(self, per_sec: float, burst: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._per_sec = per_sec
        self._burst = burst
        self._monotonic = monotonic
        self._buckets: dict[Hashable, tuple[float, float]] = {}

    def admit(self, key: Hashable) -> float:
        """Takes a token. Answers 0, or the seconds until there is one."""
        now = self._monotonic()
        tokens = self._tokens(key, now)
        if tokens < 1:
            self._buckets[key] = (tokens, now)
            return (1 - tokens) / self._per_sec
        if key not in self._buckets and len(self._buckets) >= _MAX_KEYS:
            self._buckets.pop(next(iter(self._buckets)))
        self._buckets[key] = (tokens - 1, now)
        return 0.0

    def wait(self, key: Hashable) -> float:
        """The seconds until there is a token, 0 when there is one. Takes none."""
        if key not in self._buckets:
            return 0.0
        return max(0.0, (1 - self._tokens(key, self._monotonic())) / self._per_sec)

    def give_back(self, key: Hashable) -> None:
        """Undoes an `admit` that turned out not to count."""
        now = self._monotonic()
        if key in self._buckets:
            self._buckets[key] = (self._tokens(key, now) + 1, now)

    def _tokens(self, key: Hashable, now: float) -> float:
        tokens, since = self._buckets.get(key, (float(self._burst), now))
        return min(self._burst, tokens + (now - since) * self._per_sec)
