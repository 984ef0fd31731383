"""Ids: 16-byte UUIDs that carry a lane and a time, and their public forms `job_<hex>` and `exec_<hex>`."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from uuid import UUID

_PUBLIC = re.compile(r"(job|exec)_([0-9a-f]{32})")


def laned_id(lane: int, ms: int, entropy: Callable[[int], bytes] = os.urandom) -> UUID:
    """A version 8 UUID: one lane byte, 48 bits of milliseconds, the rest random.

    The lane byte spreads inserts over a cluster's ranges; inside a lane ids grow with time, which keeps PostgreSQL's
    B-trees dense and lets retention walk the primary key.
    """
    raw = bytearray(bytes([lane]) + ms.to_bytes(6, "big") + entropy(9))
    raw[6] = (raw[6] & 0x0F) | 0x80
    raw[8] = (raw[8] & 0x3F) | 0x80
    return UUID(bytes=bytes(raw))


def first_id(lane: int, ms: int) -> UUID:
    """Sorts before every id of this lane that was made at `ms` or later."""
    return UUID(bytes=bytes([lane]) + ms.to_bytes(6, "big") + bytes(9))


class LaneIds:
    """Makes ids in lanes chosen at random, so that writers spread without talking to each other."""

    def __init__(self, lanes: int, epoch_ms: Callable[[], int]) -> None:
        self._lanes = lanes
        self._epoch_ms = epoch_ms

    def new(self) -> tuple[UUID, int]:
        """A new id and its lane."""
        lane = 0 if self._lanes == 1 else os.urandom(1)[0] % self._lanes
        return laned_id(lane, self._epoch_ms()), lane


def job_id_text(job_id: UUID) -> str:
    """`job_` and 32 hex digits."""
    return f"job_{job_id.hex}"


def execution_id_text(execution_id: UUID) -> str:
    """`exec_` and 32 hex digits."""
    return f"exec_{execution_id.hex}"


def parse_id(text: str, prefix: str) -> UUID | None:
    """The UUID of a public id with this prefix; None when it is no such id."""
    match = _PUBLIC.fullmatch(text)
    return UUID(match[2]) if match and match[1] == prefix else None


def cron_key(job_id: UUID, tick_epoch_ms: int) -> str:
    """The idempotency key of a cron firing."""
    return f"cron_{job_id_text(job_id)}_{tick_epoch_ms}"


def dedup_hash(endpoint_id: UUID, idempotency_key: str) -> bytes:
    """16 bytes that stand for (endpoint, key) in the unique index: random order, so that no index range runs hot."""
    return hashlib.sha256(endpoint_id.bytes + idempotency_key.encode()).digest()[:16]
