"""Arrival: an empty day is either allowed to be empty, or it stops everything that reads it."""

import pytest

from orders_platform.calendar import ClosedDays
from orders_platform.settings import settings
from tests.checks.kit import WEEK, check, failed, judged, steps_that_ran, text
from tests.conftest import Workspace, failure_of

TUESDAY = "2026-01-06"


def test_an_empty_day_that_may_not_be_empty_stops_what_reads_it_in_this_run_and_in_the_next(workspace: Workspace) -> None:
    workspace.put_days("2026-01-05")
    result = workspace.materialize(TUESDAY)
    assert failed(result) == {("raw_orders", "arrived", TUESDAY)}
    assert not steps_that_ran(result) & {"stg_orders", "fct_orders", "revenue_daily"}
    message = failure_of(result, "raw_orders_checks")
    assert "arrived" in message and TUESDAY in message and "ORDERS_CLOSED_DAYS" in message

    later = workspace.materialize(TUESDAY, assets=("stg_orders",))
    assert "raw_orders 2026-01-06 failed its check arrived" in failure_of(later, "stg_orders")
    assert {asset for asset, _ in workspace.current()} == {"raw_orders"}


def test_an_empty_day_that_may_be_empty_passes_and_shows_nothing_equal_to_nothing(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORDERS_CLOSED_DAYS", "tue")
    settings.cache_clear()
    result = workspace.materialize(TUESDAY)
    assert result.success and not failed(result)
    assert "0 = 0 rows, closed every tue" in text(judged(result, "raw_orders", "arrived")[TUESDAY], "arrival")
    assert workspace.query("select count(*) from published.revenue_daily") == [(0,)]


def test_a_day_with_rows_that_is_sent_again_empty_is_held_until_its_own_date_is_closed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORDERS_CLOSED_DAYS", "tue")
    settings.cache_clear()
    workspace.put_days(TUESDAY)
    assert workspace.materialize(TUESDAY).success
    workspace.sql_source("delete from orders")
    result = workspace.materialize(TUESDAY)
    assert failed(result) == {("raw_orders", "arrived", TUESDAY)}
    assert "sent 5 rows before and now sends none" in text(judged(result, "raw_orders", "arrived")[TUESDAY], "arrival")
    assert workspace.query("select count(*) from orders.stg_orders") == [(5,)]

    monkeypatch.setenv("ORDERS_CLOSED_DAYS", f"tue,{TUESDAY}")
    settings.cache_clear()
    assert not failed(check(workspace, TUESDAY, assets=("raw_orders",))) & {("raw_orders", "arrived", TUESDAY)}
    assert workspace.materialize(TUESDAY, assets=("stg_orders",)).success
    assert workspace.query("select count(*) from orders.stg_orders") == [(0,)]


def test_every_day_with_rows_arrives(workspace: Workspace) -> None:
    workspace.put_days(*WEEK)
    result = workspace.materialize(WEEK[0], WEEK[-1], assets=("raw_orders",))
    assert {day: e.passed for day, e in judged(result, "raw_orders", "arrived").items()} == dict.fromkeys(WEEK, True)


def test_a_closed_day_that_is_no_day_is_refused() -> None:
    with pytest.raises(ValueError, match="holiday"):
        ClosedDays.parse("sun,holiday")
