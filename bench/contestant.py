"""What a scenario needs of a job system, this one or a peer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Contestant(Protocol):
    """A job system that runs, with idle workers."""

    name: str

    @property
    def pids(self) -> Mapping[str, int]:
        """Process ids by role; descendants count with them. The shared PostgreSQL and nginx are not among them."""

    async def stage(self, count: int) -> None:
        """Prepares `count` jobs, each a POST to the receiver, that no worker can see yet."""

    async def release(self) -> None:
        """Shows all staged jobs to the workers at once; returns when that is committed."""

    async def unfinished(self) -> int:
        """How many released jobs are not recorded as done; 0 means that all are, durably, and all were successful."""
