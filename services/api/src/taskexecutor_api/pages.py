"""Cursors: the key of a page's last row, bound to the list and its filters, so that no other list takes it.

A cursor is base64url of a JSON array and a checksum. The checksum is keyed with nothing secret: a cursor grants nothing,
the check is there so that a damaged or foreign one is refused and not silently answered with a wrong page.
"""

from __future__ import annotations

import base64
import binascii
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
LAST_NAME = "\x7f"
"""Sorts after every resource name."""
LAST_ID = UUID(int=2**128 - 1)


def _checksum(list_name: str, filters: Sequence[Any], body: bytes) -> bytes:
    bound = orjson.dumps([list_name, *filters]) + b"\x00" + body
    return hashlib.sha256(bound).digest()[:_CHECKSUM_BYTES]


def write_cursor(list_name: str, filters: Sequence[Any], key: Sequence[Any]) -> str:
    """The cursor behind a row with this key."""
    body = orjson.dumps(list(key), option=orjson.OPT_UTC_Z)
    return base64.urlsafe_b64encode(_checksum(list_name, filters, body) + body).decode().rstrip("=")


def read_cursor(request: Any, list_name: str, filters: Sequence[Any]) -> list[Any] | None:
    """The key in a request's cursor; None for the first page. Raises InvalidRequest for any other list's."""
    if not request.HasField("cursor"):
        return None
    text = request.cursor
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        body = raw[_CHECKSUM_BYTES:]
        genuine = raw[:_CHECKSUM_BYTES] == _checksum(list_name, filters, body)
        canonical = base64.urlsafe_b64encode(raw).decode().rstrip("=") == text
        key = orjson.loads(body) if genuine and canonical else None
    except (binascii.Error, ValueError):
        key = None
    if not isinstance(key, list):
        raise InvalidRequest("cursor: is damaged, or belongs to another list or filter", field="cursor")
    return key


def time_key(key: Sequence[Any] | None, last: Any, parse: Callable[[str], Any]) -> tuple[datetime, Any]:
    """(created_at, name or id) of a cursor; the first page begins behind everything."""
    return (END_OF_TIME, last) if key is None else (datetime.fromisoformat(key[0]), parse(key[1]))


def cut(
    rows: list[RowT], limit: int, key: Callable[[RowT], Sequence[Any]], list_name: str, filters: Sequence[Any]
) -> tuple[list[RowT], str | None]:
    """Cuts what was read, one more than a page, to the page and its cursor."""
    if len(rows) <= limit:
        return rows, None
    page = rows[:limit]
    return page, write_cursor(list_name, filters, key(page[-1]))
