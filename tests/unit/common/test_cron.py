"""Cron: what is read and refused, and which instants wall times mean on the days when clocks change.

The days are past ones, so that a newer edition of the zone rules does not change the answers.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskexecutor_common.cron import CronSchedule
from taskexecutor_common.errors import InvalidCron

MINUTE = timedelta(minutes=1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def local_ticks(expression: str, zone: str, day: str) -> list[str]:
    """The ticks of one local day, as local time with offset."""
    midnight = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone))
    start, end = midnight.astimezone(UTC), (midnight + timedelta(days=1)).astimezone(UTC)
    schedule = CronSchedule.parse(expression, zone)
    ticks = schedule.missed(start - timedelta(microseconds=1), end - timedelta(microseconds=1), 2000)
    return [f"{tick.astimezone(ZoneInfo(zone)):%H:%M%z}" for tick in ticks]


# What is read


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("* * * * *", "2025-01-01T00:01"),
        ("0 9 * * MON", "2025-01-06T09:00"),
        ("0 9 * * mon-fri", "2025-01-01T09:00"),
        ("0 0 * * 0", "2025-01-05T00:00"),
        ("0 0 * * 7", "2025-01-05T00:00"),
        ("0 0 1 FEB *", "2025-02-01T00:00"),
        ("5/20 3 * * *", "2025-01-01T03:05"),
        ("0 0 29 2 *", "2028-02-29T00:00"),
        ("0 0 29 2 */7", "2032-02-29T00:00"),
        ("0 0 L * *", "2025-01-31T00:00"),
        ("0 0 * * FRI#2", "2025-01-10T00:00"),
        ("  0\t9  * * *  ", "2025-01-01T09:00"),
        ("@hourly", "2025-01-01T01:00"),
        ("@daily", "2025-01-02T00:00"),
        ("@midnight", "2025-01-02T00:00"),
        ("@weekly", "2025-01-05T00:00"),
        ("@monthly", "2025-02-01T00:00"),
        ("@yearly", "2026-01-01T00:00"),
        ("@annually", "2026-01-01T00:00"),
        ("@Daily", "2025-01-02T00:00"),
    ],
)
def test_an_expression_fires_next_at(expression: str, expected: str) -> None:
    assert CronSchedule.parse(expression, "UTC").next_after(utc("2025-01-01")) == utc(expected)


def test_day_of_month_or_day_of_week_when_both_are_restricted() -> None:
    ticks = CronSchedule.parse("0 0 13 * FRI", "UTC").missed(utc("2025-06-01"), utc("2025-06-30"), 10)
    assert [tick.day for tick in ticks] == [6, 13, 20, 27]


def test_day_of_month_and_day_of_week_when_one_begins_with_a_star() -> None:
    ticks = CronSchedule.parse("0 0 */2 * FRI", "UTC").missed(utc("2025-06-01"), utc("2025-06-30"), 10)
    assert [tick.day for tick in ticks] == [13, 27]


# What is refused


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("", "0 fields"),
        ("* * * *", "4 fields"),
        ("0 * * * * *", "6 fields; right are exactly five"),
        ("*/0 * * * *", "'*/0' is no minute; right are 0-59"),
        ("60 * * * *", "'60' is no minute"),
        ("* 24 * * *", "'24' is no hour; right are 0-23"),
        ("* * 0 * *", "'0' is no day-of-month"),
        ("* * * 13 *", "'13' is no month"),
        ("* * * * 8", "'8' is no day-of-week"),
        ("30-10 * * * *", "'30-10' is no minute"),
        ("1/2/3 * * * *", "'1/2/3' is no minute"),
        (", * * * *", "',' is no minute"),
        ("-1 * * * *", "'-1' is no minute"),
        ("0 0 30 2 *", "never fires"),
        ("0 0 31 4,6 *", "never fires"),
        ("0 0 */40 * 1L", "never fires"),
        ("@reboot", "'@reboot' is no known alias; right are @hourly"),
        ("@every 5m", "no known alias"),
        ("0 0 * * ſun", "ASCII"),
        ("*/" + "9" * 5000 + " * * * *", "at most 256"),
    ],
)
def test_a_bad_expression_is_refused_in_words_that_help(expression: str, words: str) -> None:
    with pytest.raises(InvalidCron) as raised:
        CronSchedule.parse(expression, "UTC")
    assert words in raised.value.message
    assert raised.value.field == "cron"
    assert len(raised.value.message) < 300


@pytest.mark.parametrize(
    ("zone", "words"),
    [
        ("", "no IANA time zone"),
        ("Mars/Base", "right is a name such as"),
        ("europe/berlin", "did you mean 'Europe/Berlin'?"),
        ("localtime", "no IANA time zone"),
        ("Factory", "no IANA time zone"),
        ("posixrules", "no IANA time zone"),
        ("posix/Europe/Berlin", "no IANA time zone"),
        ("right/Europe/Berlin", "no IANA time zone"),
        ("/usr/share/zoneinfo/UTC", "no IANA time zone"),
        ("../../etc/passwd", "no IANA time zone"),
        ("Europe/../UTC", "no IANA time zone"),
        ("UTC\0", "no IANA time zone"),
        ("x" * 100_000, "no IANA time zone"),
    ],
)
def test_what_is_no_iana_zone_is_refused(zone: str, words: str) -> None:
    with pytest.raises(InvalidCron) as raised:
        CronSchedule.parse("* * * * *", zone)
    assert words in raised.value.message
    assert raised.value.field == "timezone"
    assert len(raised.value.message) < 300


def test_an_instant_without_offset_is_a_programming_error() -> None:
    with pytest.raises(ValueError, match="offset"):
        CronSchedule.parse("* * * * *", "UTC").next_after(datetime(2025, 1, 1))  # noqa: DTZ001 - the point


# Bounds


def test_a_tick_at_the_instant_itself_is_not_after_it() -> None:
    schedule = CronSchedule.parse("0 9 * * *", "UTC")
    assert schedule.next_after(utc("2025-01-01T09:00")) == utc("2025-01-02T09:00")
    assert schedule.next_after(utc("2025-01-01T08:59:59.999999")) == utc("2025-01-01T09:00")
    assert schedule.next_after(utc("2025-01-01T09:00:00.000001")) == utc("2025-01-02T09:00")


def test_a_tick_exactly_at_starts_at_fires() -> None:
    schedule = CronSchedule.parse("0 9 * * *", "UTC", starts_at=utc("2025-03-01T09:00"))
    assert schedule.first(utc("2025-01-01")) == utc("2025-03-01T09:00")


def test_no_tick_lies_before_starts_at() -> None:
    schedule = CronSchedule.parse("0 9 * * *", "UTC", starts_at=utc("2025-03-01T09:00:01"))
    assert schedule.next_after(utc("2025-01-01")) == utc("2025-03-02T09:00")


def test_a_past_starts_at_means_strictly_after_now() -> None:
    schedule = CronSchedule.parse("0 9 * * *", "UTC", starts_at=utc("2020-01-01"))
    assert schedule.first(utc("2025-01-01T09:00")) == utc("2025-01-02T09:00")


def test_a_tick_at_ends_at_does_not_fire() -> None:
    schedule = CronSchedule.parse("0 9 * * *", "UTC", ends_at=utc("2025-01-03T09:00"))
    assert schedule.next_after(utc("2025-01-01T09:00")) == utc("2025-01-02T09:00")
    assert schedule.next_after(utc("2025-01-02T09:00")) is None


def test_bounds_may_carry_any_offset() -> None:
    starts_at = datetime.fromisoformat("2025-03-01T11:00+02:00")
    first = CronSchedule.parse("0 9 * * *", "UTC", starts_at=starts_at).first(utc("2025-01-01"))
    assert first == utc("2025-03-01T09:00")
    assert first is not None
    assert first.tzinfo is UTC


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Apia", "America/New_York"])
def test_the_edges_of_time_are_survived(zone: str) -> None:
    schedule = CronSchedule.parse("* * * * *", zone)
    assert schedule.next_after(datetime.max.replace(tzinfo=UTC)) is None
    assert schedule.next_after(datetime.min.replace(tzinfo=UTC)) is not None


def test_missed_ticks_are_the_oldest_ones_until_included() -> None:
    schedule = CronSchedule.parse("* * * * *", "UTC")
    missed = schedule.missed(utc("2025-01-01T09:00"), utc("2025-01-01T09:10"), 100)
    assert missed == [utc("2025-01-01T09:00") + n * MINUTE for n in range(1, 11)]
    assert schedule.missed(utc("2025-01-01T09:00"), utc("2025-01-01T09:10"), 3) == missed[:3]


@given(
    expression=st.sampled_from(["* * * * *", "*/15 * * * *", "0 * * * *", "0 9 * * MON", "30 2 * * *", "0 0 1 1 *"]),
    after_minutes=st.integers(0, 500_000),
    length_minutes=st.integers(0, 200_000),
)
def test_the_latest_tick_is_the_last_of_the_missed_ones(
    expression: str, after_minutes: int, length_minutes: int
) -> None:
    schedule = CronSchedule.parse(expression, "Europe/Berlin")
    after = utc("2025-01-01") + after_minutes * MINUTE
    until = after + min(length_minutes, 3_000 if expression == "* * * * *" else length_minutes) * MINUTE
    missed = schedule.missed(after, until, 1_000_000)
    assert schedule.latest(after, until) == (missed[-1] if missed else None)


def test_nothing_is_missed_between_two_ticks() -> None:
    assert CronSchedule.parse("@hourly", "UTC").missed(utc("2025-01-01T09:00"), utc("2025-01-01T09:59"), 5) == []


# Days on which clocks change: (expression, zone, local day, all ticks of that day)

TIMES_OF_DAY = [
    # Gap 02:00-03:00 and overlap 02:00-03:00.
    ("30 2 * * *", "Europe/Berlin", "2025-03-30", ["03:00+0200"]),
    ("0 2 * * *", "Europe/Berlin", "2025-03-30", ["03:00+0200"]),
    ("0 3 * * *", "Europe/Berlin", "2025-03-30", ["03:00+0200"]),
    ("*/20 2,3 * * *", "Europe/Berlin", "2025-03-30", ["03:00+0200", "03:20+0200", "03:40+0200"]),
    ("59 1 * * *", "Europe/Berlin", "2025-03-30", ["01:59+0100"]),
    ("30 2 * * *", "Europe/Berlin", "2025-10-26", ["02:30+0200"]),
    ("0 2,3 * * *", "Europe/Berlin", "2025-10-26", ["02:00+0200", "03:00+0100"]),
    ("30 1 * * *", "America/New_York", "2025-11-02", ["01:30-0400"]),
    ("15,45 2 * * *", "America/New_York", "2025-03-09", ["03:00-0400"]),
    # Half an hour: gap 02:00-02:30, overlap 01:30-02:00.
    ("15 2 * * *", "Australia/Lord_Howe", "2025-10-05", ["02:30+1100"]),
    ("45 2 * * *", "Australia/Lord_Howe", "2025-10-05", ["02:45+1100"]),
    ("45 1 * * *", "Australia/Lord_Howe", "2025-04-06", ["01:45+1100"]),
    # Midnight does not exist.
    ("0 0 * * *", "America/Sao_Paulo", "2018-11-04", ["01:00-0200"]),
    ("0 0 * * *", "Asia/Beirut", "2025-03-30", ["01:00+0300"]),
    ("0 0 * * *", "Africa/Cairo", "2025-04-25", ["01:00+0300"]),
    ("30 23 * * *", "Africa/Cairo", "2025-10-30", ["23:30+0300"]),
    # Two hours.
    ("30 1,2 * * *", "Antarctica/Troll", "2025-03-30", ["03:00+0200"]),
    ("30 1,2 * * *", "Antarctica/Troll", "2025-10-26", ["01:30+0200", "02:30+0200"]),
    # No changes.
    ("30 2 * * *", "Asia/Kolkata", "2025-03-30", ["02:30+0530"]),
    ("30 2 * * *", "UTC", "2025-03-30", ["02:30+0000"]),
]

FOLLOWING_THE_CLOCK = [
    ("30 */2 * * *", "Asia/Kolkata", "2025-03-30", [f"{hour:02}:30+0530" for hour in range(0, 24, 2)]),
    (
        "0 */2 * * *",
        "Europe/Berlin",
        "2025-03-30",
        ["00:00+0100", "03:00+0200", *(f"{hour:02}:00+0200" for hour in range(4, 24, 2))],
    ),
    (
        "0 */2 * * *",
        "Europe/Berlin",
        "2025-10-26",
        ["00:00+0200", "02:00+0200", "02:00+0100", *(f"{hour:02}:00+0100" for hour in range(4, 24, 2))],
    ),
    ("0 */24 * * *", "America/Havana", "2025-11-02", ["00:00-0400", "00:00-0500"]),
    (
        "*/15 * * * *",
        "Australia/Lord_Howe",
        "2025-04-06",
        [
            *(f"{hour:02}:{minute:02}+1100" for hour in range(2) for minute in range(0, 60, 15)),
            "01:30+1030",
            "01:45+1030",
            *(f"{hour:02}:{minute:02}+1030" for hour in range(2, 24) for minute in range(0, 60, 15)),
        ],
    ),
    (
        "0 * * * *",
        "Australia/Lord_Howe",
        "2025-10-05",
        ["00:00+1030", "01:00+1030", "02:30+1100", *(f"{hour:02}:00+1100" for hour in range(3, 24))],
    ),
]


@pytest.mark.parametrize(("expression", "zone", "day", "expected"), TIMES_OF_DAY + FOLLOWING_THE_CLOCK)
def test_ticks_of_a_day_on_which_clocks_change(expression: str, zone: str, day: str, expected: list[str]) -> None:
    assert local_ticks(expression, zone, day) == expected


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", "2025-03-30", 23),
        ("Europe/Berlin", "2025-10-26", 25),
        ("America/New_York", "2025-03-09", 23),
        ("America/New_York", "2025-11-02", 25),
        ("Antarctica/Troll", "2025-03-30", 22),
        ("Antarctica/Troll", "2025-10-26", 26),
        ("Asia/Kolkata", "2025-03-30", 24),
        ("UTC", "2025-03-30", 24),
    ],
)
def test_an_hourly_job_fires_once_per_hour_that_passes(zone: str, day: str, hours: int) -> None:
    assert len(local_ticks("0 * * * *", zone, day)) == hours
    assert len(local_ticks("*/15 * * * *", zone, day)) == hours * 4


def test_a_day_that_was_skipped_fires_once_at_its_end() -> None:
    """Samoa had no 30 December 2011."""
    ticks = CronSchedule.parse("0 9,15 * * *", "Pacific/Apia").missed(
        utc("2011-12-30T02:00"), utc("2011-12-31T02:00"), 9
    )
    assert ticks == [utc("2011-12-30T10:00"), utc("2011-12-30T19:00"), utc("2011-12-31T01:00")]


def test_a_yearly_tick_in_a_second_pass_is_found_from_the_first() -> None:
    """Havana's overlap begins at midnight; the next match on the wall lies a year ahead, the next tick an hour."""
    schedule = CronSchedule.parse("0 */24 2 11 *", "America/Havana")
    assert schedule.next_after(utc("2025-11-02T04:00")) == utc("2025-11-02T05:00")
    assert schedule.next_after(utc("2025-11-02T04:59:59.999999")) == utc("2025-11-02T05:00")


# Properties

# Each window holds a change of the clock.
WINDOWS = [
    ("Europe/Berlin", "2025-03-29T12:00"),
    ("Europe/Berlin", "2025-10-25T12:00"),
    ("America/New_York", "2025-11-01T12:00"),
    ("Australia/Lord_Howe", "2025-04-05T00:00"),
    ("Australia/Lord_Howe", "2025-10-04T00:00"),
    ("America/Sao_Paulo", "2018-11-03T12:00"),
    ("Africa/Cairo", "2025-10-30T00:00"),
    ("Antarctica/Troll", "2025-10-25T12:00"),
    ("Antarctica/Troll", "2025-03-29T12:00"),
    ("Pacific/Apia", "2011-12-29T22:00"),
    ("Asia/Kolkata", "2025-03-29T12:00"),
]
WINDOW_MINUTES = 2 * 24 * 60

minutes = st.sets(st.sampled_from([0, 1, 15, 29, 30, 45, 59]), min_size=1)
hours = st.one_of(
    st.sampled_from(["*", "*/2", "*/3", "*/5", "*/24"]),
    st.sets(st.integers(0, 23), min_size=1, max_size=6).map(lambda chosen: ",".join(map(str, sorted(chosen)))),
)


def hour_set(field: str) -> set[int]:
    if field.startswith("*"):
        return set(range(0, 24, int(field[2:] or 1)))
    return {int(hour) for hour in field.split(",")}


def ticks_by_reading_the_clock(zone: str, start: datetime, minutes: set[int], hours: str) -> list[datetime]:
    """The rule, told another way: look at a wall clock once a minute and write down when the bell has to ring."""
    local = ZoneInfo(zone)
    shown_before = (start.astimezone(local)).replace(tzinfo=None)
    furthest = shown_before
    ticks = []
    for n in range(1, WINDOW_MINUTES + 1):
        now = start + n * MINUTE
        shown = now.astimezone(local).replace(tzinfo=None)
        skipped = [shown_before + k * MINUTE for k in range(1, (shown - shown_before) // MINUTE)]
        is_second_pass = shown <= furthest
        due = any(wall.minute in minutes and wall.hour in hour_set(hours) for wall in [*skipped, shown])
        if due and (hours.startswith("*") or not is_second_pass):
            ticks.append(now)
        shown_before, furthest = shown, max(furthest, shown)
    return ticks


@settings(max_examples=120, deadline=None)
@given(window=st.sampled_from(WINDOWS), minutes=minutes, hours=hours)
def test_ticks_are_those_of_somebody_who_watches_the_clock(
    window: tuple[str, str], minutes: set[int], hours: str
) -> None:
    zone, start = window
    schedule = CronSchedule.parse(f"{','.join(map(str, minutes))} {hours} * * *", zone)
    ticks = schedule.missed(utc(start), utc(start) + WINDOW_MINUTES * MINUTE, 10_000)
    assert ticks == ticks_by_reading_the_clock(zone, utc(start), minutes, hours)


@settings(max_examples=300, deadline=None)
@given(
    window=st.sampled_from(WINDOWS),
    minutes=minutes,
    hours=hours,
    offset=st.timedeltas(timedelta(0), WINDOW_MINUTES * MINUTE),
    share=st.floats(0, 0.999999),
)
def test_the_next_tick_is_the_same_from_anywhere_before_it(
    window: tuple[str, str], minutes: set[int], hours: str, offset: timedelta, share: float
) -> None:
    zone, start = window
    schedule = CronSchedule.parse(f"{','.join(map(str, minutes))} {hours} * * *", zone)
    tick = schedule.next_after(utc(start) + offset)
    assert tick is not None
    following = schedule.next_after(tick)
    assert following is not None
    assert schedule.next_after(tick + share * (following - tick)) == following


@settings(max_examples=60, deadline=None)
@given(
    expression=st.tuples(minutes, hours, st.sampled_from(["*", "1", "*/7", "28-31"]), st.sampled_from(["*", "1-5"])),
    zone=st.sampled_from(sorted({zone for zone, _ in WINDOWS})),
    start=st.datetimes(datetime(1975, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - as it wants
)
def test_ticks_only_ever_go_forward(expression: tuple[set[int], str, str, str], zone: str, start: datetime) -> None:
    minutes, hours, day, weekday = expression
    schedule = CronSchedule.parse(f"{','.join(map(str, minutes))} {hours} {day} * {weekday}", zone)
    ticks = [start, *schedule.missed(start, datetime.max.replace(tzinfo=UTC), 50)]
    assert len(ticks) == 51
    assert all(earlier < later for earlier, later in pairwise(ticks))
