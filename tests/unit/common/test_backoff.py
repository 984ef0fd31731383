"""Backoff: the delays of the three policies, their spread, and Retry-After."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskexecutor_common.backoff import delay_ms, retry_delay_ms
from taskexecutor_common.model.endpoint import Backoff, RetryPolicy

LOWEST, MIDDLE, HIGHEST = 0.0, 0.5, 1 - 2**-53


def policy(backoff: Backoff, initial_delay_ms: int = 1000, max_delay_ms: int = 60_000) -> RetryPolicy:
    return RetryPolicy(max_attempts=10, backoff=backoff, initial_delay_ms=initial_delay_ms, max_delay_ms=max_delay_ms)


def delays(policy: RetryPolicy, attempts: range) -> list[int]:
    return [delay_ms(policy, attempt, lambda: MIDDLE) for attempt in attempts]


def test_fixed_stays() -> None:
    assert delays(policy(Backoff.FIXED), range(1, 5)) == [1000, 1000, 1000, 1000]


def test_linear_adds_the_initial_delay() -> None:
    assert delays(policy(Backoff.LINEAR), range(1, 5)) == [1000, 2000, 3000, 4000]


def test_exponential_doubles_up_to_the_bound() -> None:
    assert delays(policy(Backoff.EXPONENTIAL), range(1, 9)) == [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]


@pytest.mark.parametrize(("drawn", "expected"), [(LOWEST, 750), (MIDDLE, 1000), (HIGHEST, 1250)])
def test_jitter_spreads_by_a_quarter(drawn: float, expected: int) -> None:
    assert delay_ms(policy(Backoff.FIXED), 1, lambda: drawn) == expected


def test_jitter_comes_before_the_bound() -> None:
    bounded = policy(Backoff.FIXED, initial_delay_ms=1000, max_delay_ms=1100)
    assert delay_ms(bounded, 1, lambda: LOWEST) == 750
    assert delay_ms(bounded, 1, lambda: HIGHEST) == 1100


@pytest.mark.parametrize("backoff", Backoff)
@pytest.mark.parametrize("attempt", [10_000, 10**9, 2**63])
def test_large_attempts_stay_within_the_bound(backoff: Backoff, attempt: int) -> None:
    assert 0 < delay_ms(policy(backoff, max_delay_ms=10**12), attempt, lambda: HIGHEST) <= 10**12


def test_no_delay_stays_no_delay() -> None:
    assert delay_ms(policy(Backoff.EXPONENTIAL, initial_delay_ms=0), 9, lambda: HIGHEST) == 0


@given(
    backoff=st.sampled_from(Backoff),
    initial=st.integers(0, 2**53),
    bound=st.integers(0, 2**53),
    attempt=st.integers(1, 2**40),
    drawn=st.floats(0, 1, exclude_max=True),
)
def test_a_delay_is_a_whole_number_within_the_bound(
    backoff: Backoff, initial: int, bound: int, attempt: int, drawn: float
) -> None:
    delay = delay_ms(policy(backoff, initial, bound), attempt, lambda: drawn)
    assert isinstance(delay, int)
    assert 0 <= delay <= bound


@pytest.mark.parametrize(
    ("retry_after_ms", "expected"),
    [
        (None, 1000),
        (0, 1000),
        (-5000, 1000),
        (400, 1000),
        (5000, 5000),
        (3_600_000, 60_000),
    ],
)
def test_retry_after_is_obeyed_up_to_the_bound(retry_after_ms: int | None, expected: int) -> None:
    assert retry_delay_ms(policy(Backoff.FIXED), 1, retry_after_ms, lambda: MIDDLE) == expected
