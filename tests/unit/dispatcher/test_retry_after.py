"""When a receiver wants to be asked again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskexecutor_dispatcher.endpoints.retry_after import retry_after_ms

NOW = datetime(2026, 3, 15, 10, 0, 0, tzinfo=UTC)
YEAR_MS = 366 * 24 * 3600 * 1000


@pytest.mark.parametrize(
    ("value", "wait_ms"),
    [
        ("0", 0),
        ("120", 120_000),
        (" 5 ", 5000),
        ("99999999999999999999999999", YEAR_MS),
        ("Sun, 15 Mar 2026 10:00:30 GMT", 30_000),
        ("Sunday, 15-Mar-26 10:00:30 GMT", 30_000),
        ("Sun Mar 15 10:00:30 2026", 30_000),
        ("Sun, 15 Mar 2026 09:00:00 GMT", 0),
        ("Sun, 15 Mar 9998 09:00:00 GMT", YEAR_MS),
        ("", None),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("٣", None),
        ("Sun, 99 Mar 2026 10:00:30 GMT", None),
    ],
)
def test_seconds_and_dates_are_read(value: str, wait_ms: int | None) -> None:
    assert retry_after_ms({"Retry-After": value}, NOW) == wait_ms


PARTS = [
    "Sun",
    ",",
    " ",
    "15",
    "-",
    "Mar",
    "2026",
    "26",
    "10:00:30",
    ":",
    "10.0",
    "GMT",
    "+9999999",
    "-0000",
    "(",
    ")",
    '"',
    "0",
]


@given(st.one_of(st.text(), st.lists(st.sampled_from(PARTS), max_size=12).map("".join)))
def test_no_value_is_too_odd(value: str) -> None:
    wait_ms = retry_after_ms({"Retry-After": value, "Date": value}, NOW)
    assert wait_ms is None or 0 <= wait_ms <= YEAR_MS


def test_nothing_asked_is_nothing() -> None:
    assert retry_after_ms({}, NOW) is None


def test_a_date_is_compared_with_the_answers_own() -> None:
    headers = {"Retry-After": "Mon, 03 Jan 2000 10:01:30 GMT", "Date": "Mon, 03 Jan 2000 10:00:00 GMT"}
    assert retry_after_ms(headers, NOW) == 90_000


def test_an_unreadable_date_of_the_answer_counts_as_none() -> None:
    headers = {"Retry-After": "Sun, 15 Mar 2026 10:00:30 GMT", "Date": "today"}
    assert retry_after_ms(headers, NOW) == 30_000
