"""How much is tried: little and always the same in the suite, much and at random by `make fuzz`."""

from __future__ import annotations

import os
import random
from typing import Any

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("TE_FUZZ_TIMES", "1"))
"""So many times the examples of the suite. More than one: they are drawn at random, and what failed is tried first."""


def bounded(examples: int) -> settings:
    """Settings for `examples` in the suite. What fails is printed with a line that makes it fail again."""
    in_suite: dict[str, Any] = {"derandomize": True, "database": None}
    at_random: dict[str, Any] = {"derandomize": False}
    return settings(
        max_examples=examples * TIMES,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
        **(in_suite if TIMES == 1 else at_random),
    )


def seeds(count: int) -> list[int]:
    """As many seeds: the same ones in the suite, else new ones."""
    return [*range(count)] if TIMES == 1 else random.SystemRandom().sample(range(10**9), count * TIMES)
