"""The calendar: which days and weeks there are, and where they begin in UTC, in zones that make it hard."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import dagster as dg
import pytest

from orders_platform.calendar import Calendar, blocks, describe, parse_interval
from orders_platform.errors import OrdersError, SettingsError

# Changes at one in the morning, at midnight, of half an hour, in the middle of a month, and of a whole day.
ZONES = {
    "UTC": 2025,
    "Europe/London": 2025,
    "America/New_York": 2025,
    "America/Havana": 2025,
    "Africa/Cairo": 2025,
    "Asia/Beirut": 2025,
    "America/Santiago": 2025,
    "America/Sao_Paulo": 2018,
    "Australia/Lord_Howe": 2025,
    "Africa/El_Aaiun": 2025,
    "Pacific/Kiritimati": 2025,
    "Pacific/Apia": 2011,
}


def first_monday(year: int) -> date:
    return next(day for day in (date(year, 1, n) for n in range(1, 8)) if day.weekday() == 0)


@pytest.mark.parametrize(("zone", "year"), ZONES.items())
def test_days_and_weeks_are_those_of_dagster_and_leave_no_instant_out(zone: str, year: int) -> None:
    calendar, now = Calendar(first_monday(year), None, zone), datetime(year + 1, 6, 1, tzinfo=UTC)
    start = calendar.start.isoformat()
    days, weeks = calendar.days(now), calendar.weeks(now)
    assert days == list(dg.DailyPartitionsDefinition(start, timezone=zone).get_partition_keys(now))
    assert weeks == list(dg.WeeklyPartitionsDefinition(start, timezone=zone, day_offset=1).get_partition_keys(now))
    windows = [calendar.window(day) for day in days]
    assert all(before[1] == after[0] for before, after in pairwise(windows))
    assert all(begin <= end for begin, end in windows)
    assert windows[-1][1] <= now < windows[-1][1] + timedelta(days=1)


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("America/New_York", "2026-03-08", 23),
        ("America/New_York", "2026-11-01", 25),
        ("Europe/London", "2026-03-29", 23),
        ("Europe/London", "2026-10-25", 25),
        ("Africa/Cairo", "2026-04-24", 23),
        ("Australia/Lord_Howe", "2026-04-05", 24.5),
        ("UTC", "2026-03-29", 24),
    ],
)
def test_a_day_is_as_long_as_it_is_where_the_business_is(zone: str, day: str, hours: float) -> None:
    begin, end = Calendar(date(2026, 1, 5), None, zone).window(day)
    assert (end - begin) / timedelta(hours=1) == hours
    assert begin.utcoffset() == end.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    ("now", "last_day", "last_week"),
    [
        ("2026-01-05T12:00:00+00:00", None, None),
        ("2026-01-06T04:59:59+00:00", None, None),
        ("2026-01-06T05:00:00+00:00", "2026-01-05", None),
        ("2026-01-12T04:59:59+00:00", "2026-01-10", None),
        ("2026-01-12T05:00:00+00:00", "2026-01-11", "2026-01-05"),
        ("2027-01-01T00:00:00+00:00", "2026-02-01", "2026-01-26"),
        ("2025-01-01T00:00:00+00:00", None, None),
    ],
)
def test_an_interval_exists_once_it_has_ended_in_business_time(now: str, last_day: str | None, last_week: str | None) -> None:
    calendar, moment = Calendar(date(2026, 1, 5), date(2026, 2, 1), "America/New_York"), datetime.fromisoformat(now)
    assert (calendar.days(moment)[-1:] or [None])[0] == last_day
    assert (calendar.weeks(moment)[-1:] or [None])[0] == last_week


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"start": date(2026, 1, 6)}, "is a Tuesday; weeks start on Monday. Use 2026-01-05 or 2026-01-12"),
        ({"end": date(2026, 2, 2)}, "is a Monday; a week ends on Sunday. Use 2026-02-08 or 2026-02-01"),
        ({"end": date(2026, 1, 7)}, "is a Wednesday; a week ends on Sunday. Use 2026-01-11[.]$"),
        ({"end": date(2026, 1, 4)}, "lies before .*Use 2026-01-11 or later"),
        ({"timezone": "Europe/Atlantis"}, "'Europe/Atlantis' is not a time zone"),
        ({"timezone": "europe"}, "is not a time zone"),
        ({"timezone": "../../etc/passwd"}, "is not a time zone"),
        ({"timezone": "America"}, "is not a time zone"),
        ({"timezone": ""}, "is not a time zone"),
    ],
)
def test_a_calendar_that_would_leave_days_in_no_week_is_refused_with_the_date_to_use(
    arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        Calendar(**{"start": date(2026, 1, 5), **arguments})


@pytest.mark.parametrize(
    "text", ["2026-1-5", "20260105", "2026-W02-1", "05.01.2026", "2026-02-30", "", "today", " 2026-01-05", "2026-01-05'"]
)
def test_what_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(OrdersError, match="is not an interval"):
        parse_interval(text)


@pytest.mark.parametrize(
    ("day", "said"),
    [
        ("2026-01-04", "outside the calendar"),
        ("2026-02-02", "outside the calendar"),
        ("2026-01-10", "has not ended yet. The newest interval is 2026-01-09"),
    ],
)
def test_a_day_that_does_not_exist_is_refused(day: str, said: str) -> None:
    calendar, now = Calendar(date(2026, 1, 5), date(2026, 2, 1)), datetime(2026, 1, 10, 12, tzinfo=UTC)
    assert calendar.require(["2026-01-05", "2026-01-09"], now) == ["2026-01-05", "2026-01-09"]
    with pytest.raises(OrdersError, match=said):
        calendar.require([day], now)


def test_intervals_are_shown_as_the_blocks_they_form() -> None:
    assert describe([]) == ""
    assert describe(["2026-02-28", "2026-03-01"]) == "2026-02-28...2026-03-01"
    assert blocks(["2026-01-19", "2026-01-05", "2026-01-12"], timedelta(days=7)) == [["2026-01-05", "2026-01-12", "2026-01-19"]]
    assert blocks(["2026-01-05", "2026-01-05"]) == [["2026-01-05"]]
