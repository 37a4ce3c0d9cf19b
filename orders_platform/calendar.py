"""The business calendar. Belongs here: which days and weeks exist and their windows in UTC, as pure functions.

Not here: Dagster's partition definitions (partitions.py), or anything that reads the clock: callers pass `now`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from orders_platform.errors import OrdersError, SettingsError

DAY = timedelta(days=1)
WEEK = timedelta(days=7)


class NotEnded(OrdersError):
    """An interval that has not ended yet."""


@cache
def zone(name: str) -> ZoneInfo:
    """The time zone of that IANA name.

    Raises:
        SettingsError: No such zone.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise SettingsError(
            f"ORDERS_BUSINESS_TIMEZONE={name!r} is not a time zone.", "Use an IANA name such as Europe/London or UTC."
        ) from error


def parse_interval(text: str) -> date:
    """The date an interval is named by: a business day, or the Monday of an ISO week.

    >>> parse_interval("2026-01-05")
    datetime.date(2026, 1, 5)
    """
    try:
        found = date.fromisoformat(text)
        if found.isoformat() != text:  # 20260105 and 2026-W02-1 would be other names of the same day
            raise ValueError(text)
    except ValueError as error:
        raise OrdersError(f"{text!r} is not an interval.", "Intervals are dates such as 2026-01-05.") from error
    return found


def monday(day: date) -> date:
    """The Monday of the ISO week that holds the day.

    >>> monday(date(2026, 2, 1))
    datetime.date(2026, 1, 26)
    """
    return day - timedelta(days=day.weekday())


def blocks(intervals: Sequence[str], step: timedelta = DAY) -> list[list[str]]:
    """Contiguous runs of intervals, in order.

    >>> blocks(["2026-01-07", "2026-01-05", "2026-01-06", "2026-01-09"])
    [['2026-01-05', '2026-01-06', '2026-01-07'], ['2026-01-09']]
    """
    found: list[list[str]] = []
    for interval in sorted(set(intervals)):
        if found and date.fromisoformat(found[-1][-1]) + step == date.fromisoformat(interval):
            found[-1].append(interval)
        else:
            found.append([interval])
    return found


def describe(intervals: Sequence[str], step: timedelta = DAY) -> str:
    """Intervals as a person would write them.

    >>> describe(["2026-01-05", "2026-01-06", "2026-01-09"])
    '2026-01-05...2026-01-06, 2026-01-09'
    """
    return ", ".join(block[0] if len(block) == 1 else f"{block[0]}...{block[-1]}" for block in blocks(intervals, step))


@dataclass(frozen=True)
class Calendar:
    """Business days from `start` (a Monday) to `end` (a Sunday, inclusive; open when None) in `timezone`.

    Raises:
        SettingsError: The start is not a Monday, the end not a Sunday, or the zone unknown; the message names the date to use.
    """

    start: date
    end: date | None = None
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        zone(self.timezone)
        if self.start.weekday() != 0:
            raise SettingsError(
                f"ORDERS_START_DATE={self.start} is a {self.start:%A}; weeks start on Monday.",
                f"Use {monday(self.start)} or {monday(self.start) + WEEK}.",
            )
        if self.end is None:
            return
        if self.end < self.start:
            raise SettingsError(
                f"ORDERS_END_DATE={self.end} lies before ORDERS_START_DATE={self.start}.",
                f"Use {self.start + 6 * DAY} or later.",
            )
        if self.end.weekday() != 6:
            sunday = monday(self.end) + 6 * DAY
            raise SettingsError(
                f"ORDERS_END_DATE={self.end} is a {self.end:%A}; a week ends on Sunday.",
                f"Use {sunday}" + (f" or {sunday - WEEK}." if sunday - WEEK > self.start else "."),
            )

    def today(self, now: datetime) -> date:
        """The business day that `now` (aware) falls in."""
        return now.astimezone(zone(self.timezone)).date()

    def days(self, now: datetime) -> list[str]:
        """Every business day that has ended by `now`, in order.

        >>> Calendar(date(2026, 1, 5)).days(datetime(2026, 1, 7, 12, tzinfo=UTC))
        ['2026-01-05', '2026-01-06']
        """
        stop = self.today(now)
        if self.end is not None:
            stop = min(stop, self.end + DAY)
        return [(self.start + n * DAY).isoformat() for n in range((stop - self.start).days)]

    def weeks(self, now: datetime) -> list[str]:
        """The Monday of every ISO week that has ended by `now`, in order."""
        return self.days(now)[: len(self.days(now)) // 7 * 7 : 7]

    def days_of(self, week: str) -> tuple[str, ...]:
        """The seven days of the ISO week named by its Monday.

        >>> Calendar(date(2026, 1, 5)).days_of("2026-01-05")[-1]
        '2026-01-11'
        """
        first = monday(parse_interval(week))
        return tuple((first + n * DAY).isoformat() for n in range(7))

    def window(self, day: str) -> tuple[datetime, datetime]:
        """First instant of the business day and first instant after it, in UTC: 23 or 25 hours where the clocks change.

        >>> a, b = Calendar(date(2026, 1, 5), timezone="Europe/London").window("2026-03-29")
        >>> (b - a).total_seconds() / 3600
        23.0
        """
        first = parse_interval(day)
        tz = zone(self.timezone)
        bounds = (datetime.combine(d, time(), tz).astimezone(UTC) for d in (first, first + DAY))
        return next(bounds), next(bounds)

    def require(self, intervals: list[str], now: datetime, step: timedelta = DAY) -> list[str]:
        """The days, or weeks where `step` is one, checked to exist.

        Raises:
            NotEnded: An interval that has not ended by `now`.
            OrdersError: An interval outside the calendar, or a week that is not named by its Monday.
        """
        today = self.today(now)
        for interval in intervals:
            day = parse_interval(interval)
            if step == WEEK and day != monday(day):
                raise OrdersError(f"{interval} is no week: weeks are named by their Monday.", f"Use {monday(day)}.")
            if day < self.start or (self.end is not None and day > self.end):
                raise OrdersError(
                    f"{interval} lies outside the calendar ({self.start} to {self.end or 'open'}).",
                    "See ORDERS_START_DATE and ORDERS_END_DATE.",
                )
            if day + step > today:
                newest = monday(today) - WEEK if step == WEEK else today - DAY
                raise NotEnded(f"{interval} has not ended yet.", f"The newest interval is {newest}.")
        return intervals


WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True)
class ClosedDays:
    """Days that may have no order: whole weekdays, and single dates."""

    weekdays: frozenset[int] = frozenset()
    dates: frozenset[date] = frozenset()

    @classmethod
    def parse(cls, text: str) -> "ClosedDays":
        """Closed days as they are written in a setting.

        >>> ClosedDays.parse("sun, 2026-12-25").reason("2026-01-11")
        'closed every sun'

        Raises:
            ValueError: A word that is neither a weekday nor a date.
        """
        words = [word.strip().lower() for word in text.split(",") if word.strip()]
        days = frozenset(WEEKDAYS.index(word) for word in words if word in WEEKDAYS)
        return cls(days, frozenset(date.fromisoformat(word) for word in words if word not in WEEKDAYS))

    def reason(self, interval: str) -> str:
        """Why the interval may be empty; empty when it may not.

        >>> ClosedDays.parse("2026-12-25").reason("2026-12-25")
        'closed on 2026-12-25'
        """
        day = date.fromisoformat(interval)
        if day in self.dates:
            return f"closed on {day}"
        return f"closed every {WEEKDAYS[day.weekday()]}" if day.weekday() in self.weekdays else ""
