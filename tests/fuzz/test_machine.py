"""The public API against a model of the brief: any sequence of calls is answered as the model says, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.fuzz.bounds import bounded, seeds
from tests.fuzz.machine import ApiMachine
from tests.fuzz.world import World

pytestmark = pytest.mark.e2e

RUNS = 6
CALLS = 40
# Each run is seeded by itself: of several from one seed, most would be variations of the first. The first of the two examples
# is the plainest there is, the second is drawn. Explaining a failure takes many more runs, and its notes tell more.
SETTINGS = settings(
    bounded(RUNS),
    max_examples=2,
    stateful_step_count=CALLS,
    phases=[phase for phase in Phase if phase is not Phase.explain],
    report_multiple_bugs=False,
)


@pytest.mark.parametrize("number", seeds(RUNS))
def test_any_sequence_of_calls_is_answered_as_the_model_says(new_world: Callable[[], World], number: int) -> None:
    @seed(number)
    def machine() -> ApiMachine:
        return ApiMachine(new_world())

    run_state_machine_as_test(machine, settings=SETTINGS)
