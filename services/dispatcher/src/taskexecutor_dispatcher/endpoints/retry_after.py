"""When a receiver wants to be asked again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

# Longer than any delay that a policy allows; keeps absurd numbers small.
_LONGEST_SEC = 366 * 24 * 3600


def retry_after_ms(headers: Mapping[str, str], now: datetime) -> int | None:
    """The wait that `Retry-After` (RFC 9110, 10.2.3) asks for, in milliseconds; None when absent or unreadable.

    A date is compared with the answer's own `Date` where there is one, so that neither clock has to be right.
    """
    value = headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return _bounded_ms(float(value[:20]))
    until = _date(value)
    if until is None:
        return None
    answered = _date(headers.get("Date", "")) or now
    return _bounded_ms((until - answered).total_seconds())


def _bounded_ms(seconds: float) -> int:
    return round(min(max(seconds, 0), _LONGEST_SEC) * 1000)


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
