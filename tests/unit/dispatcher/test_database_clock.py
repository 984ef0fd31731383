"""The database's clock as a dispatcher knows it: never early, and no later than the fastest answer of late."""

from __future__ import annotations

import pytest

from taskexecutor_dispatcher.database_clock import DatabaseClock

BEHIND_SEC = 1_000.0  # the database's clock in seconds, at zero of the monotonic one


class Answers:
    """A dispatcher's questions to a database whose clock is set as the test wants."""

    def __init__(self) -> None:
        self.now = 0.0
        self.set_by = BEHIND_SEC
        self.clock = DatabaseClock(lambda: self.now)

    def ask(self, at: float, *, reaches_after: float, answered_after: float) -> float:
        """By how many seconds what is due is reckoned to come later than it does."""
        self.now = at + answered_after
        return self.clock.difference((at + reaches_after + self.set_by) * 1000, at) + self.set_by


@pytest.fixture
def answers() -> Answers:
    return Answers()


def test_a_first_answer_is_late_by_its_own_way_back(answers: Answers) -> None:
    assert answers.ask(10, reaches_after=0.001, answered_after=0.004) == pytest.approx(0.003)


def test_a_slow_answer_profits_from_a_fast_one(answers: Answers) -> None:
    answers.ask(10, reaches_after=0.0005, answered_after=0.001)
    assert answers.ask(10.5, reaches_after=0.001, answered_after=0.250) == pytest.approx(0.0005)


def test_nothing_is_ever_early(answers: Answers) -> None:
    errors = [
        answers.ask(at, reaches_after=at % 7 / 1000, answered_after=at % 7 / 1000 + at % 11 / 1000) for at in range(200)
    ]
    assert min(errors) > -1e-6


def test_a_clock_that_is_set_back_costs_no_more_than_the_way_of_the_question(answers: Answers) -> None:
    """What was learnt of it is wrong for a while, but it cannot have shown this before it was asked."""
    answers.ask(10, reaches_after=0.001, answered_after=0.002)
    answers.set_by -= 3600
    assert answers.ask(11, reaches_after=0.001, answered_after=0.002) == pytest.approx(-0.001)


def test_what_was_learnt_is_forgotten(answers: Answers) -> None:
    answers.ask(10, reaches_after=0.001, answered_after=0.002)
    answers.set_by -= 3600
    answers.ask(11.2, reaches_after=0.001, answered_after=0.002)
    assert answers.ask(12.5, reaches_after=0.001, answered_after=0.002) == pytest.approx(0.001)


def test_after_a_long_silence_only_the_new_answer_counts(answers: Answers) -> None:
    answers.ask(10, reaches_after=0.001, answered_after=0.002)
    answers.set_by -= 0.010
    assert answers.ask(500, reaches_after=0.001, answered_after=0.002) == pytest.approx(0.001)
