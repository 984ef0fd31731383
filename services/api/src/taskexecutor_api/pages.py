"""Cursors: the key of a page's last row, bound to the list and its filters, so that no other list takes it.

A cursor is base64url of a JSON array and a checksum. The checksum is keyed with nothing secret: a cursor grants nothing,
the check is there so that a damaged or foreign one is refused and not silently answered with a wrong page.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

import orjson

from taskexecutor_common.errors import InvalidRequest

RowT = TypeVar("RowT")

_CHECKSUM_BYTES = 12
END_OF_TIME = datetime(9999, 12, 31, tzinfo=UTC)
NEWEST_BY_NAME = (END_OF_TIME, "\x7f")
"""Where a list by (created_at, name) begins: behind everything."""
NEWEST_BY_ID = (END_OF_TIME, UUID(int=2**128 - 1))
"""Where a list by (created_at, id) begins."""
LARGEST_NUMBER = 2**31 - 1

Part = Callable[[Any], Any]
"""Reads one part of a key. Raises ValueError or TypeError for what is no such part."""


def instant(part: Any) -> datetime:
    """A time, with its offset."""
    return datetime.fromisoformat(part).astimezone(UTC)


def name(part: Any) -> str:
    """Text that the database can compare with."""
    if not isinstance(part, str) or "\x00" in part:
        raise ValueError
    return part


def identifier(part: Any) -> UUID:
    """A UUID."""
    return UUID(name(part))


def number(part: Any) -> int:
    """What the database can compare an integer with."""
    if not isinstance(part, int) or not 0 <= part <= LARGEST_NUMBER:
        raise ValueError
    return part


def _checksum(list_name: str, filters: Sequence[Any], body: bytes) -> bytes:
    bound = orjson.dumps([list_name, *filters]) + b"\x00" + body
    return hashlib.sha256(bound).digest()[:_CHECKSUM_BYTES]


def write_cursor(list_name: str, filters: Sequence[Any], key: Sequence[Any]) -> str:
    """The cursor behind a row with this key."""
    body = orjson.dumps(list(key), option=orjson.OPT_UTC_Z)
    return base64.urlsafe_b64encode(_checksum(list_name, filters, body) + body).decode().rstrip("=")


def read_cursor(request: Any, list_name: str, filters: Sequence[Any], *parts: Part) -> tuple[Any, ...] | None:
    """The key in a request's cursor, which has these parts; None for the first page.

    Raises InvalidRequest for the cursor of any other list, and for a forged one that holds something else.
    """
    if not request.HasField("cursor"):
        return None
    text = request.cursor
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        body = raw[_CHECKSUM_BYTES:]
        genuine = raw[:_CHECKSUM_BYTES] == _checksum(list_name, filters, body)
        canonical = base64.urlsafe_b64encode(raw).decode().rstrip("=") == text
        key: Any = orjson.loads(body) if genuine and canonical else None
        return tuple(read(part) for read, part in zip(parts, key, strict=True))
    except (ValueError, TypeError, OverflowError):
        raise InvalidRequest("cursor: is damaged, or belongs to another list or filter", field="cursor") from None


def cut(
    rows: list[RowT], limit: int, key: Callable[[RowT], Sequence[Any]], list_name: str, filters: Sequence[Any]
) -> tuple[list[RowT], str | None]:
    """Cuts what was read, one more than a page, to the page and its cursor."""
    if len(rows) <= limit:
        return rows, None
    page = rows[:limit]
    return page, write_cursor(list_name, filters, key(page[-1]))
