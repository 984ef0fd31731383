"""How long to wait before the next attempt."""

from __future__ import annotations

from collections.abc import Callable

from .model.endpoint import Backoff, RetryPolicy

# Doubling further cannot matter: one millisecond doubled this often outlasts every bound.
_MAX_DOUBLINGS = 62


def delay_ms(policy: RetryPolicy, attempt: int, random: Callable[[], float]) -> int:
    """The delay in milliseconds after attempt number `attempt` (from 1) has failed.

    `random` answers a number in [0, 1), which spreads the delay by ±25 %. The spread comes before the bound: the result
    lies in 0..max_delay_ms, and once even the shortest delay exceeds max_delay_ms it is exactly that.
    """
    delay = _undisturbed_ms(policy, attempt)
    quarter = delay // 4
    jitter = round((2 * random() - 1) * quarter)
    return _clamp(delay + jitter, policy)


def retry_delay_ms(policy: RetryPolicy, attempt: int, retry_after_ms: int | None, random: Callable[[], float]) -> int:
    """As `delay_ms`, but at least what the receiver asked for with Retry-After, as far as max_delay_ms permits."""
    return _clamp(max(delay_ms(policy, attempt, random), retry_after_ms or 0), policy)


def _undisturbed_ms(policy: RetryPolicy, attempt: int) -> int:
    match policy.backoff:
        case Backoff.FIXED:
            return policy.initial_delay_ms
        case Backoff.LINEAR:
            return policy.initial_delay_ms * attempt
        case Backoff.EXPONENTIAL:
            return policy.initial_delay_ms << min(attempt - 1, _MAX_DOUBLINGS)


def _clamp(delay: int, policy: RetryPolicy) -> int:
    return max(0, min(delay, policy.max_delay_ms))
