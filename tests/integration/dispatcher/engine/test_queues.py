"""Fairness between queues, as a property: whatever waits and however few slots there are, each queue gets its turn."""

from __future__ import annotations

import math
import time
import uuid

from hypothesis import given
from hypothesis import strategies as st

from taskexecutor_dispatcher.queues import QueueSet

CHUNK = 100  # queues named in one claim

depths = st.lists(st.integers(min_value=0, max_value=500), min_size=1, max_size=250)
slots = st.integers(min_value=1, max_value=200)


def named(count: int) -> list[uuid.UUID]:
    return [uuid.UUID(int=n) for n in range(count)]


@given(depths, slots)
def test_quotas_fill_the_free_slots_and_no_more(depths: list[int], free: int) -> None:
    queues = QueueSet(time.monotonic)
    queues.add(named(len(depths)))
    quotas = queues.take(free)
    assert sum(quotas.values()) == free
    assert len(quotas) == min(len(depths), free, CHUNK)
    assert max(quotas.values()) - min(quotas.values()) <= 1
    assert min(quotas.values()) >= 1


@given(depths, slots)
def test_every_queue_with_work_gets_its_turn_before_any_gets_a_second(depths: list[int], free: int) -> None:
    waiting = dict(zip(named(len(depths)), depths, strict=True))
    queues = QueueSet(time.monotonic)
    queues.add(waiting)
    claims_in_a_turn = math.ceil(len(waiting) / min(free, CHUNK))
    visited: set[uuid.UUID] = set()
    for _ in range(claims_in_a_turn):
        quotas = queues.take(free)
        visited |= quotas.keys()
        claimed = {queue: min(quota, waiting[queue]) for queue, quota in quotas.items()}
        queues.give_back(quotas, claimed)
    assert visited == waiting.keys()


@given(depths, slots)
def test_everything_is_claimed_in_the_end(depths: list[int], free: int) -> None:
    waiting = dict(zip(named(len(depths)), depths, strict=True))
    queues = QueueSet(time.monotonic)
    queues.add(waiting)
    while queues:
        quotas = queues.take(free)
        claimed = {queue: min(quota, waiting[queue]) for queue, quota in quotas.items()}
        for queue, count in claimed.items():
            waiting[queue] -= count
        queues.give_back(quotas, claimed)
    assert set(waiting.values()) == {0}


@given(st.integers(min_value=1, max_value=1000), slots)
def test_a_shallow_queue_waits_for_one_claim_behind_a_deep_one(deep: int, free: int) -> None:
    deep_queue, shallow_queue = named(2)
    queues = QueueSet(time.monotonic)
    queues.add([deep_queue, shallow_queue])
    first = queues.take(free)
    queues.give_back(first, {queue: min(quota, deep) for queue, quota in first.items() if queue == deep_queue})
    assert shallow_queue in first or shallow_queue in queues.take(free)


def test_a_queue_that_gave_less_than_its_quota_is_forgotten() -> None:
    queues = QueueSet(time.monotonic)
    queues.add(named(1))
    queues.give_back(queues.take(10), dict.fromkeys(named(1), 9))
    assert not queues


def test_a_hint_during_a_claim_counts() -> None:
    queues = QueueSet(time.monotonic)
    queues.add(named(1))
    quotas = queues.take(10)
    queues.add(named(1))
    queues.give_back(quotas, {})
    assert len(queues) == 1


def test_a_hint_does_not_let_a_queue_jump_ahead_or_fall_back() -> None:
    first, second, third = named(3)
    queues = QueueSet(time.monotonic)
    queues.add([first, second, third])
    queues.add([third, first])
    assert list(queues.take(2)) == [first, second]
