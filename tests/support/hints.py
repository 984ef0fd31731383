"""Receives hints in a test as the other services would."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID


class HintedQueues:
    """Collects the queues that somebody was told to have work."""

    def __init__(self) -> None:
        self.queues: list[UUID] = []

    def __call__(self, queues: Iterable[UUID]) -> None:
        self.queues += queues
