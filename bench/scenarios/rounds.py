"""Runs contestants in turns, round after round, and goes on when one of them fails."""

from __future__ import annotations

import time
import traceback
from collections.abc import Awaitable, Callable, Sequence

from bench.arena import Arena

Turn = Callable[[Arena, int], Awaitable[None]]


async def in_turns(arena: Arena, scenario: str, turns: Sequence[Turn], rounds: int | None = None) -> None:
    """Each turn once a round: what changes on the machine in the course of a run then hits all alike."""
    for number in range(1, (rounds or arena.plan.rounds) + 1):
        for turn in turns:
            name = turn.__name__.strip("_").replace("_", " ")
            begin = time.monotonic()
            try:
                await turn(arena, number)
            except Exception as error:  # a run of twenty minutes is not lost to one turn; the results say what failed
                with arena.log("failures").open("a") as log:
                    traceback.print_exc(file=log)
                arena.results.add_problem(scenario, name, number, f"{type(error).__name__}: {error}")
                arena.say(f"  {scenario}, round {number}: {name} FAILED: {type(error).__name__}: {error}")
            else:
                arena.say(f"  {scenario}, round {number}: {name} ({time.monotonic() - begin:.0f} s)")
