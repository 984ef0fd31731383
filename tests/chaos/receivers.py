"""Receivers that misbehave by the dice: slow, hanging, talking nonsense, hanging up, answering when it is too late."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.support.receiver import Answer, Received

TIMEOUT_MS = 1000
OK = Answer()
SILENT_END = Answer(raw=b"")
"""After it a sender may try once more within the same attempt: nobody can tell it from a kept connection that had died."""

MISBEHAVIOURS = {
    "slow": Answer(delay_sec=0.4),
    "hanging": Answer(hangs=True),
    "nonsense": Answer(raw=b"220 mail.example ESMTP ready\r\n"),
    "half an answer": Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"),
    "silent end": SILENT_END,
    "too late": Answer(delay_sec=TIMEOUT_MS / 1000 + 0.3),
    "refusing": Answer(503, b"later"),
}


def unruly(seed: int, share: float) -> Callable[[Received], Answer]:
    """What answers requests well but for a share of them, 0 to 1; called by one thread only."""
    dice = random.Random(seed)
    kinds = list(MISBEHAVIOURS.values())

    def choose(_: Received) -> Answer:
        return dice.choice(kinds) if dice.random() < share else OK

    return choose
