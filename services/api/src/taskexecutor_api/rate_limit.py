"""Token buckets: how many requests a key may send to this process."""

from __future__ import annotations

import time
from collections.abc import Callable

_MAX_KEYS = 10_000


class RateLimiter:
    """A bucket of `burst` tokens per key, refilled at `per_sec`."""

    def __init__(self, per_sec: float, burst: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._per_sec = per_sec
        self._burst = burst
        self._monotonic = monotonic
        self._buckets: dict[str, tuple[float, float]] = {}

    def admit(self, key: str) -> float:
        """Takes a token. Answers 0, or the seconds until there is one."""
        now = self._monotonic()
        tokens, since = self._buckets.get(key, (float(self._burst), now))
        tokens = min(self._burst, tokens + (now - since) * self._per_sec)
        if tokens < 1:
            self._buckets[key] = (tokens, now)
            return (1 - tokens) / self._per_sec
        if key not in self._buckets and len(self._buckets) >= _MAX_KEYS:
            self._buckets.pop(next(iter(self._buckets)))
        self._buckets[key] = (tokens - 1, now)
        return 0.0
