"""Cron schedules: five fields read on a zone's wall clock, ticks given as instants.

`cronsim` finds the next wall time that matches; what a wall time means on the days when clocks change is decided here.

An expression whose hour field does not begin with `*` names **times of day**:

- a time in the gap of a spring change fires once, at the first instant after the gap (several there collapse into one),
- a time in the overlap of an autumn change fires once, at its first pass.

An expression whose hour field begins with `*` (`*`, `*/n`) **follows the clock**: it fires at every instant at which
the local clock shows a matching time, in both passes of an overlap, and a match that a gap swallows is made up for at
the first instant after the gap. So `0 * * * *` has 23 or 25 firings on the days of a one-hour change. `0 */2 * * *`
fires on even hours of the local clock: with the gap 02:00-03:00 at 00:00, 03:00 (instead of 02:00), 04:00 ... (12
firings), with the overlap 02:00-03:00 at 00:00, 02:00, 02:00 again, 04:00 ... (13 firings); never are two of them more
than two hours apart. Where a clock changes by half an hour (Lord Howe), the pause around the overlap is half an hour
longer than usual.

Day-of-month and day-of-week combine with OR when both are restricted; a field that begins with `*` is not restricted,
so `*/2` there means AND (crontab(5)). Beyond crontab(5), `L` and `LW` (last day, last weekday of the month), `5L` (last
Friday) and `MON#2` (second Monday) are understood.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from .errors import InvalidCron

_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

# What each field may hold, in the order of the fields.
_FIELDS = {
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31 on a date that exists, L or LW",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 (0 and 7 are Sunday) or SUN-SAT, also 5L and MON#2",
}

_RANGE_WITH_STEP = re.compile(r"(\w+)-(\w+)/[0-9]+")

_MAX_EXPRESSION_CHARS = 256
_MAX_SHOWN_CHARS = 60

# The calendar from here to 2050 holds every kind of year, so what does not fire in it never fires.
_ANY_ERA = datetime(2000, 1, 1)  # noqa: DTZ001 - wall time, zones do not matter for whether a date exists

# Local clocks cannot be read at the very edge of what datetime holds.
_EARLIEST = datetime(1, 1, 3, tzinfo=UTC)
_FIRST_LOOK_BACK = timedelta(hours=1)
_LOOK_BACK_GROWTH = 12
_JUST_BEFORE = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """When a cron job fires. Instants are UTC-aware in and out.

    `expression` and `timezone` are kept as they were given. All ticks lie in [starts_at, ends_at).
    """

    expression: str
    timezone: str
    starts_at: datetime | None
    ends_at: datetime | None
    _fields: str
    _zone: ZoneInfo
    _follows_clock: bool

    @classmethod
    def parse(
        cls,
        expression: str,
        timezone: str,
        *,
        starts_at: datetime | None = None,
        ends_at: datetime | None = None,
    ) -> CronSchedule:
        """Reads a five-field expression or an alias such as `@daily`, and the IANA name of a zone.

        Raises InvalidCron, its `field` "cron" or "timezone", for what cannot be read and for what can never fire.
        That nothing is left between `starts_at` and `ends_at` is no error here: `first` says None then.
        """
        fields = _expand(expression)
        _require_a_tick(fields)
        return cls(
            expression=expression,
            timezone=timezone,
            starts_at=_aware(starts_at) if starts_at else None,
            ends_at=_aware(ends_at) if ends_at else None,
            _fields=fields,
            _zone=_zone(timezone),
            _follows_clock=fields.split()[1].startswith("*"),
        )

    def first(self, now: datetime) -> datetime | None:
        """The first firing of a schedule made at `now`: from `starts_at` on, itself included, if that lies ahead."""
        return self.next_after(now)

    def next_after(self, instant: datetime) -> datetime | None:
        """The first tick strictly later than `instant`, or None when nothing is left.

        The answer depends on `instant` alone: from anywhere between two ticks it is the second of them.
        """
        instant = max(_aware(instant), _EARLIEST)
        if self.starts_at is not None and self.starts_at > instant:
            instant = self.starts_at - _JUST_BEFORE
        try:
            tick = self._following(instant)
        except OverflowError:  # past the year 9999
            return None
        if tick is None or (self.ends_at is not None and tick >= self.ends_at):
            return None
        return tick

    def missed(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        """The ticks in (after, until], oldest first, at most `limit` of them."""
        return list(islice(self._ticks(after, until), limit))

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        """The newest tick in (after, until]; None: there is none. Looks from the end, so that a long outage costs little."""
        span = _FIRST_LOOK_BACK
        while True:
            start = max(after, until - span) if until - after > span else after
            newest = None
            for newest in self._ticks(start, until):  # noqa: B007 - the last one is what is wanted
                pass
            if newest is not None or start <= after:
                return newest
            span *= _LOOK_BACK_GROWTH

    def _ticks(self, after: datetime, until: datetime) -> Iterator[datetime]:
        tick = self.next_after(after)
        while tick is not None and tick <= until:
            yield tick
            tick = self.next_after(tick)

    def _following(self, instant: datetime) -> datetime | None:
        """The next tick after `instant`, the schedule's own bounds aside."""
        here = instant.astimezone(self._zone)
        tick = self._first_match(here.replace(tzinfo=None), instant)
        setback = self._setback_after(here) if self._follows_clock else None
        if setback is None or (tick is not None and tick < setback):
            return tick
        # The clock is set back first, and then shows times again which lie behind us on the wall.
        shown_again = setback.astimezone(self._zone).replace(tzinfo=None)
        return self._first_match(shown_again - _JUST_BEFORE, setback - _JUST_BEFORE)

    def _first_match(self, wall: datetime, instant: datetime) -> datetime | None:
        """The first instant later than `instant` among those of the matching wall times after `wall`."""
        for match in CronSim(self._fields, wall):
            for tick in self._instants_of(match):
                if tick > instant:
                    return tick
        return None

    def _instants_of(self, wall: datetime) -> tuple[datetime, ...]:
        """When a matching wall time fires: once, or twice in an overlap if the schedule follows the clock."""
        first = wall.replace(tzinfo=self._zone, fold=0).astimezone(UTC)
        second = wall.replace(tzinfo=self._zone, fold=1).astimezone(UTC)
        if first > second:  # in a gap, where `fold` says by which of the two offsets to read a time that is not there
            return (self._clock_change(second, first),)
        if first < second and self._follows_clock:
            return (first, second)
        return (first,)

    def _setback_after(self, here: datetime) -> datetime | None:
        """When the clock is set back, if local time `here` is one that it will show once more."""
        again = here.replace(fold=1)
        if here.fold or again.utcoffset() == here.utcoffset():
            return None
        return self._clock_change(here.replace(microsecond=0).astimezone(UTC), again.astimezone(UTC))

    def _clock_change(self, before: datetime, after: datetime) -> datetime:
        """The first whole second in (before, after] whose offset is no longer that of `before`."""
        offset = before.astimezone(self._zone).utcoffset()
        seconds = range(1, int((after - before).total_seconds()) + 1)

        def changed(second: int) -> bool:
            return (before + timedelta(seconds=second)).astimezone(self._zone).utcoffset() != offset

        return before + timedelta(seconds=seconds[bisect_left(seconds, True, key=changed)])


def _expand(expression: str) -> str:
    """The five fields, an alias written out; InvalidCron when they cannot be read."""
    shown = _shown(expression)
    if len(expression) > _MAX_EXPRESSION_CHARS or not expression.isascii():
        raise _bad_cron(f"{shown} is not plain ASCII of at most {_MAX_EXPRESSION_CHARS} characters.")
    if expression.strip().startswith("@"):
        return _expand_alias(expression.strip())
    parts = expression.split()
    if len(parts) != len(_FIELDS):
        raise _bad_cron(f"{shown} has {len(parts)} fields; right are exactly five: {' '.join(_FIELDS)}.")
    for position, (name, allowed) in enumerate(_FIELDS.items()):
        if not _is_readable(parts[position], position):
            part = _shown(parts[position])
            raise _bad_cron(f"{part} is no {name}; right are {allowed}, lists, ranges, * and steps such as */5.")
    return " ".join(",".join(map(_without_idle_step, part.split(","))) for part in parts)


def _without_idle_step(item: str) -> str:
    """`16-16/3` as `16`: `cronsim` takes a range of one for a beginning, and steps on to the end of the field."""
    match = _RANGE_WITH_STEP.fullmatch(item)
    is_range_of_one = match and match[1].lstrip("0").upper() == match[2].lstrip("0").upper()
    return match[1] if match and is_range_of_one else item


def _expand_alias(alias: str) -> str:
    if alias.lower() not in _ALIASES:
        raise _bad_cron(f"{_shown(alias)} is no known alias; right are {', '.join(_ALIASES)}.")
    return _ALIASES[alias.lower()]


def _is_readable(part: str, position: int) -> bool:
    """Whether one field makes sense by itself, that is with a star in all the others."""
    fields = ["*"] * len(_FIELDS)
    fields[position] = part
    try:
        CronSim(" ".join(fields), _ANY_ERA)
    except CronSimError:
        return False
    return True


def _require_a_tick(fields: str) -> None:
    """InvalidCron for dates that no year has, such as 30 February."""
    try:
        possible = next(CronSim(fields, _ANY_ERA), None) is not None
    except CronSimError:  # each field can be read, so it is their combination that fails
        possible = False
    if not possible:
        raise _bad_cron(f"{_shown(fields)} never fires: no year has such a date. Right is a day that the month has.")


@cache
def _zone_names() -> frozenset[str]:
    names = resources.files("tzdata").joinpath("zones").read_text(encoding="ascii").split()
    return frozenset(names) - {"Factory"}


def _zone(name: str) -> ZoneInfo:
    """The zone of that IANA name, case included.

    Only names of the list are opened, so no path can be. The locked package `tzdata` holds the rules, not the machine:
    services on different machines must agree on when a job fires.
    """
    if name not in _zone_names():
        raise InvalidCron(f"timezone: {_shown(name)} is no IANA time zone; {_advice(name)}", field="timezone")
    return _load_zone(name)


@cache
def _load_zone(name: str) -> ZoneInfo:
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as data:
        return ZoneInfo.from_file(data, key=name)


def _advice(name: str) -> str:
    spelled = {known.lower(): known for known in _zone_names()}
    close = difflib.get_close_matches(name[:_MAX_SHOWN_CHARS].lower(), spelled, n=1)
    return f"did you mean '{spelled[close[0]]}'?" if close else "right is a name such as 'Europe/Berlin' or 'UTC'."


def _bad_cron(message: str) -> InvalidCron:
    return InvalidCron(f"cron: {message}", field="cron")


def _shown(text: str) -> str:
    """What the caller wrote, quoted, in a length and form fit for a message."""
    cut = text if len(text) <= _MAX_SHOWN_CHARS else text[:_MAX_SHOWN_CHARS] + "…"
    return "'" + "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in cut) + "'"


def _aware(instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise ValueError("an instant needs its offset")
    return instant.astimezone(UTC)
