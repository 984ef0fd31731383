"""The state machine of an execution, in the one place that defines it; docs/states.md draws it.

The database enforces each move: every statement that changes a status names the statuses it leaves, and a test compares
the statements with this table.
"""

from __future__ import annotations

from enum import StrEnum


class ExecutionStatus(StrEnum):
    """Where an execution stands."""

    PENDING = "PENDING"
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    RETRYING = "RETRYING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def is_final(self) -> bool:
        """True when nothing can happen to it any more."""
        return not MOVES[self]


MOVES: dict[ExecutionStatus, frozenset[ExecutionStatus]] = {
    # promoted when due; claimed in the moment between promotion and its record; cancelled
    ExecutionStatus.PENDING: frozenset({ExecutionStatus.QUEUED, ExecutionStatus.RUNNING, ExecutionStatus.CANCELLED}),
    # claimed; cancelled
    ExecutionStatus.QUEUED: frozenset({ExecutionStatus.RUNNING, ExecutionStatus.CANCELLED}),
    # finalised by its worker, or reclaimed from a dead one
    ExecutionStatus.RUNNING: frozenset({ExecutionStatus.SUCCESS, ExecutionStatus.FAILED, ExecutionStatus.RETRYING}),
    # claimed again; cancelled
    ExecutionStatus.RETRYING: frozenset({ExecutionStatus.RUNNING, ExecutionStatus.CANCELLED}),
    ExecutionStatus.SUCCESS: frozenset(),
    ExecutionStatus.FAILED: frozenset(),
    ExecutionStatus.CANCELLED: frozenset(),
}

WAITING = frozenset(status for status, targets in MOVES.items() if ExecutionStatus.CANCELLED in targets)
"""Statuses that can be cancelled, which are those that can be claimed."""


class AttemptStatus(StrEnum):
    """How an attempt ended."""

    SUCCESS = "SUCCESS"
    FAILED = "FAILED"


class LogLevel(StrEnum):
    """How much a log row matters."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"
