"""Cron: any text is a schedule or refused, and what a schedule fires is what somebody sees who watches a wall clock.

The years are past ones, so that a newer edition of the zone rules does not change the answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskexecutor_common.cron import CronSchedule
from taskexecutor_common.errors import InvalidCron
from tests.fuzz.bounds import bounded
from tests.fuzz.trying import attempt

MINUTE = timedelta(minutes=1)
ZONES = (
    "Africa/Cairo",
    "America/Havana",
    "America/New_York",
    "America/Santiago",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Asia/Tehran",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Pacific/Apia",
    "Pacific/Chatham",
    "UTC",
)
YEARS = range(2008, 2025)

_WORDS = """
    * ? - / , # L W LW 0 1 5 7 9 12 23 29 31 59 60 99 JAN feb MON sun MON#2 5L */5 1-5 5-1 */0 1/2/3 @daily @reboot
"""
_words = st.sampled_from(_WORDS.split())
_fields = st.lists(_words, min_size=1, max_size=3).map("".join)
expressions = st.lists(_fields, min_size=4, max_size=6).map(" ".join) | st.text(max_size=30) | _fields
instants = st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - as it wants


@bounded(120)
@given(expressions, st.sampled_from(ZONES), instants)
def test_any_text_is_refused_or_fires_again_and_again(expression: str, zone: str, start: datetime) -> None:
    schedule, refusal = attempt(lambda: CronSchedule.parse(expression, zone), InvalidCron)
    if refusal:
        assert (refusal.field, len(refusal.message) < 300) == ("cron", True)
        return
    ticks = [start]
    for _ in range(4):
        tick = schedule.next_after(ticks[-1])
        assert tick is not None, f"nothing after {ticks[-1]}"
        ticks.append(tick)
    assert all(earlier < later for earlier, later in pairwise(ticks))


@bounded(60)
@given(
    st.text(max_size=40) | st.sampled_from(ZONES).map(str.lower) | st.sampled_from(["", ".", "..", "/", "UTC/", "~"])
)
def test_any_text_is_a_zone_or_refused(zone: str) -> None:
    schedule, refusal = attempt(lambda: CronSchedule.parse("0 0 * * *", zone), InvalidCron)
    if refusal:
        assert (refusal.field, len(refusal.message) < 300) == ("timezone", True)
    else:
        assert schedule.first(datetime(2024, 1, 1, tzinfo=UTC)) is not None


@pytest.mark.parametrize(
    ("item", "hours"), [("16-16/3", [16]), ("05-5/2", [5]), ("1,20-20/2", [1, 20]), ("16/3", [16, 19, 22])]
)
def test_a_range_of_one_is_one_whatever_its_step(item: str, hours: list[int]) -> None:
    day = datetime(2024, 1, 1, tzinfo=UTC)
    ticks = CronSchedule.parse(f"0 {item} * * *", "UTC").missed(day, day + timedelta(hours=23), 24)
    assert [tick.hour for tick in ticks] == hours


# --- a slow reference ---


@dataclass(frozen=True)
class Part:
    """A field, as it is written and as a set of numbers."""

    text: str
    numbers: frozenset[int]

    @property
    def is_open(self) -> bool:
        """Begins with a star: restricts nothing by itself (crontab(5))."""
        return self.text.startswith("*")


def parts(low: int, high: int, names: str = "") -> st.SearchStrategy[Part]:
    """Fields of this range: stars, steps, and lists of numbers, names, ranges and ranges with steps."""
    everything = range(low, high + 1)
    step = st.integers(1, high).map(lambda n: Part(f"*/{n}", frozenset(everything[::n])))
    number = st.integers(low, high).map(lambda n: Part(str(n), frozenset({n})))
    span = st.tuples(st.integers(low, high), st.integers(low, high), st.integers(1, 5)).map(
        lambda drawn: _span(*sorted(drawn[:2]), drawn[2])
    )
    items = number | span
    if names:
        items |= st.sampled_from(list(enumerate(names.split(), start=low))).map(lambda n: Part(n[1], frozenset({n[0]})))
    lists = st.lists(items, min_size=1, max_size=3).map(
        lambda chosen: Part(",".join(p.text for p in chosen), frozenset().union(*(p.numbers for p in chosen)))
    )
    return stars(low, high) | step | lists


def stars(low: int, high: int) -> st.SearchStrategy[Part]:
    """Every number of this range."""
    return st.just(Part("*", frozenset(range(low, high + 1))))


def _span(first: int, last: int, step: int) -> Part:
    text = f"{first}-{last}" + (f"/{step}" if step > 1 else "")
    return Part(text, frozenset(range(first, last + 1, step)))


@cache
def zone_of(name: str) -> ZoneInfo:
    """By the rules of the package that the product goes by, not by those of the machine."""
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as rules:
        return ZoneInfo.from_file(rules, key=name)


@cache
def changes(zone: str) -> list[datetime]:
    """When clocks were changed there, to half a day; in a zone without changes some other instants."""
    moments = [datetime(YEARS[0], 1, 1, tzinfo=UTC) + timedelta(hours=12 * n) for n in range(len(YEARS) * 366 * 2)]
    offsets = [moment.astimezone(zone_of(zone)).utcoffset() for moment in moments]
    return [moments[n] for n in range(1, len(moments)) if offsets[n] != offsets[n - 1]] or moments[::500]


def seen_by_a_watcher(
    zone: str, start: datetime, minutes: int, matches: Callable[[datetime], bool], *, follows_clock: bool
) -> list[datetime]:
    """Looks at a wall clock once a minute and notes when the bell has to ring.

    A matching time that the clock leaps over is made up for at once. One that it shows a second time rings again only for
    who follows the clock, and not for who has an appointment at that time of day.
    """
    local = zone_of(zone)
    before = furthest = start.astimezone(local).replace(tzinfo=None)
    rings = []
    for n in range(1, minutes + 1):
        now = start + n * MINUTE
        shown = now.astimezone(local).replace(tzinfo=None)
        leapt_over = [before + k * MINUTE for k in range(1, (shown - before) // MINUTE)]
        is_new = shown > furthest
        if any(matches(wall) for wall in leapt_over) or (matches(shown) and (is_new or follows_clock)):
            rings.append(now)
        before, furthest = shown, max(furthest, shown)
    return rings


@bounded(25)
@given(
    zone=st.sampled_from(ZONES),
    which=st.integers(0, 100),
    lead=st.integers(0, 36 * 60),
    minute=parts(0, 59),
    hour=parts(0, 23),
    day=stars(1, 31) | parts(1, 31),
    month=stars(1, 12) | parts(1, 12, "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC"),
    weekday=parts(0, 7, "SUN MON TUE WED THU FRI SAT"),
)
def test_ticks_around_a_change_of_the_clock_are_those_that_a_watcher_sees(
    zone: str, which: int, lead: int, minute: Part, hour: Part, day: Part, month: Part, weekday: Part
) -> None:
    def matches(wall: datetime) -> bool:
        on_day = wall.day in day.numbers
        on_weekday = bool({wall.isoweekday(), wall.isoweekday() % 7} & weekday.numbers)
        day_is_right = on_day and on_weekday if day.is_open or weekday.is_open else on_day or on_weekday
        return (
            wall.minute in minute.numbers and wall.hour in hour.numbers and wall.month in month.numbers and day_is_right
        )

    moments = changes(zone)
    start = moments[which % len(moments)] - lead * MINUTE
    expression = f"{minute.text} {hour.text} {day.text} {month.text} {weekday.text}"
    schedule, refusal = attempt(lambda: CronSchedule.parse(expression, zone), InvalidCron)
    if refusal:
        assert "never fires" in refusal.message
        return
    length = 2 * 24 * 60
    ticks = schedule.missed(start, start + length * MINUTE, length)
    # The watcher begins a day early, so as to know which times are shown for the second time.
    rings = seen_by_a_watcher(zone, start - timedelta(days=1), length + 24 * 60, matches, follows_clock=hour.is_open)
    assert ticks == [ring for ring in rings if ring > start]
