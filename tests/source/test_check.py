from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from orders_platform.calendar import Calendar
from orders_platform.source.errors import SourceError
from orders_platform.source.reader import Reader, SourceCheck

Source = Callable[..., Reader]
WEEK = Calendar(date(2026, 1, 5), date(2026, 1, 11))
MOMENTS = ["2025-12-31 10:00:00", "2026-01-04 23:59:59", "2026-01-05 00:00:00", "2026-01-09 25:61:00", "2026-01-11 23:59:59"]
LATER = ["2026-01-12 00:00:00", "2027-01-01 00:00:00"]
NEVER = ["yesterday", "", None, "unknown"]


@pytest.fixture
def rows(order: Callable[..., Any]) -> list[Any]:
    return [order(ordered_at=moment) for moment in MOMENTS + LATER + NEVER]


def test_rows_are_counted_by_whether_an_interval_selects_them(source: Source, rows: list[Any]) -> None:
    assert source(rows).check(WEEK) == SourceCheck(total=11, before=2, within=3, after=2, unselectable=4)


def test_an_open_calendar_has_no_after(source: Source, rows: list[Any]) -> None:
    assert source(rows).check(Calendar(date(2026, 1, 5))) == SourceCheck(total=11, before=2, within=5, after=0, unselectable=4)


def test_days_are_those_of_the_business_time_zone(source: Source, rows: list[Any]) -> None:
    tokyo = Calendar(date(2026, 1, 5), date(2026, 1, 11), "Asia/Tokyo")
    assert source(rows).check(tokyo) == SourceCheck(total=11, before=1, within=3, after=3, unselectable=4)


def test_the_selected_rows_are_those_the_days_capture(source: Source, rows: list[Any]) -> None:
    reader = source(rows)
    days = [(day, *WEEK.window(day)) for day in WEEK.days_of("2026-01-05")]
    assert reader.check(WEEK).within == sum(part.num_rows for day in days for part in reader.capture(*day))


def test_without_a_total_query_the_lost_rows_are_not_known(source: Source, rows: list[Any]) -> None:
    found = source(rows, total_query="").check(WEEK)
    assert (found.total, found.within, found.unselectable) == (None, 3, None)


def test_a_wrong_total_query_names_its_setting(source: Source, rows: list[Any]) -> None:
    with pytest.raises(SourceError, match="ORDERS_SOURCE_TOTAL_QUERY"):
        source(rows, total_query="select count(*) from orders where ordered_at < :end").check(WEEK)
