"""Fairness between queues, as a property: whatever waits and however few slots there are, each queue gets its turn."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from taskexecutor_dispatcher.queues import QueueSet

CHUNK = 100  # queues named in one claim
NOTHING: Mapping[uuid.UUID, int] = {}

depths = st.lists(st.integers(min_value=0, max_value=500), min_size=1, max_size=250)
slots = st.integers(min_value=1, max_value=200)


def named(count: int) -> list[uuid.UUID]:
    return [uuid.UUID(int=n) for n in range(count)]


def claim(queues: QueueSet, free: int, held: Mapping[uuid.UUID, int] = NOTHING) -> dict[uuid.UUID, int]:
    quotas = queues.share_out(free, held)
    queues.take(quotas)
    return quotas


@given(depths, slots)
def test_quotas_are_even_and_no_more_than_the_free_slots(depths: list[int], free: int) -> None:
    queues = QueueSet(time.monotonic)
    queues.add(named(len(depths)))
    quotas = claim(queues, free)
    assert sum(quotas.values()) <= free
    assert len(quotas) == min(len(depths), free, CHUNK)
    assert max(quotas.values()) - min(quotas.values()) <= 1
    assert min(quotas.values()) >= 1


@given(st.lists(st.integers(min_value=0, max_value=200), min_size=1, max_size=20), slots)
def test_however_long_deliveries_take_each_queue_leaves_an_eighth_of_what_it_holds_to_others(
    held: list[int], total: int
) -> None:
    holding = dict(zip(named(len(held)), held, strict=True))
    free = total - sum(held)
    if free <= 0:
        return
    queues = QueueSet(time.monotonic)
    queues.add(holding)
    for queue, quota in queues.share_out(free, holding).items():
        assert (holding[queue] + quota - 1) <= 8 * (free - quota + 1)


def test_a_slow_queue_ends_up_with_eight_ninths_of_the_slots() -> None:
    (slow,) = named(1)
    held = 0
    queues = QueueSet(time.monotonic)
    queues.add([slow])
    while quotas := queues.share_out(1800 - held, {slow: held}):
        held += quotas[slow]
    assert held == 1600


@given(depths, slots)
def test_every_queue_with_work_gets_its_turn_before_any_gets_a_second(depths: list[int], free: int) -> None:
    waiting = dict(zip(named(len(depths)), depths, strict=True))
    queues = QueueSet(time.monotonic)
    queues.add(waiting)
    claims_in_a_turn = math.ceil(len(waiting) / min(free, CHUNK))
    visited: set[uuid.UUID] = set()
    for _ in range(claims_in_a_turn):
        quotas = claim(queues, free)
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
        quotas = claim(queues, free)
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
    first = claim(queues, free)
    queues.give_back(first, {queue: min(quota, deep) for queue, quota in first.items() if queue == deep_queue})
    assert shallow_queue in first or shallow_queue in claim(queues, free)


def test_a_queue_that_gave_less_than_its_quota_is_forgotten() -> None:
    queues = QueueSet(time.monotonic)
    queues.add(named(1))
    queues.give_back(claim(queues, 10), dict.fromkeys(named(1), 1))
    assert not queues


def test_a_hint_during_a_claim_counts() -> None:
    queues = QueueSet(time.monotonic)
    queues.add(named(1))
    quotas = claim(queues, 10)
    queues.add(named(1))
    queues.give_back(quotas, {})
    assert len(queues) == 1


def test_a_hint_does_not_let_a_queue_jump_ahead_or_fall_back() -> None:
    first, second, third = named(3)
    queues = QueueSet(time.monotonic)
    queues.add([first, second, third])
    queues.add([third, first])
    assert list(claim(queues, 2)) == [first, second]


# --- lanes: a claim walks them in order from the one where it begins ---


def rotating(*picked: int) -> QueueSet:
    """A set that begins at these lanes, one after the other, where it may choose."""
    lanes = iter(picked)
    return QueueSet(time.monotonic, lanes=16, pick_lane=lambda _: next(lanes, 0))


def claim_from(queues: QueueSet) -> int:
    """At which lane a claim of the only queue begins."""
    (queue,) = named(1)
    first = queues.first_lane(queue)
    claim(queues, 10)
    return first


def gave(queues: QueueSet, count: int) -> list[uuid.UUID]:
    """What the claim of ten got."""
    return queues.give_back(dict.fromkeys(named(1), 10), dict.fromkeys(named(1), count))


def test_a_queue_with_a_backlog_begins_at_another_lane_each_time() -> None:
    queues = rotating(7, 3)
    queues.add(named(1))
    begun = []
    for _ in range(3):
        begun.append(claim_from(queues))
        gave(queues, 10)
    assert begun == [0, 7, 3]


def test_a_queue_that_ran_dry_above_its_first_lane_is_looked_at_from_the_lowest_once_more() -> None:
    queues = rotating(7)
    queues.add(named(1))
    claim_from(queues)
    gave(queues, 10)
    assert claim_from(queues) == 7
    gave(queues, 4)
    assert queues
    assert claim_from(queues) == 0
    gave(queues, 0)
    assert not queues


def test_an_endpoint_that_is_held_back_by_its_limits_goes_on_from_lane_to_lane() -> None:
    queues = rotating(7, 3)
    queues.add_limited(named(1))
    begun = []
    for _ in range(3):
        begun.append(claim_from(queues))
        assert gave(queues, 2) == named(1)
        queues.add(named(1))
    assert begun == [0, 7, 3]


def test_an_endpoint_with_limits_that_gave_nothing_is_looked_at_from_the_lowest_lane() -> None:
    queues = rotating(7)
    queues.add_limited(named(1))
    claim_from(queues)
    gave(queues, 2)
    queues.add(named(1))
    assert claim_from(queues) == 7
    gave(queues, 0)
    queues.add(named(1))
    assert claim_from(queues) == 0


def test_with_one_lane_every_claim_begins_there() -> None:
    queues = QueueSet(time.monotonic)
    queues.add(named(1))
    for _ in range(3):
        assert claim_from(queues) == 0
        gave(queues, 10)
