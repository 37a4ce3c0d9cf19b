"""The watch: what is not there is reported, and how far the data reaches is not how lately something ran."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from orders_platform.calendar import Calendar, ClosedDays
from orders_platform.checks.coverage import coverage, expected, holes, published_pairs
from orders_platform.checks.freshness import Reach, due, freshness
from orders_platform.checks.watch import COVERED, FRESH, findings
from orders_platform.definitions import defs
from orders_platform.settings import Settings, settings
from orders_platform.warehouse import publications
from orders_platform.warehouse.publications import Publication
from orders_platform.warehouse.session import Warehouse
from tests.checks.kit import DAILY, TABLES, WEEK
from tests.conftest import Workspace

NOON = datetime(2026, 1, 12, 12, tzinfo=UTC)


def watched(workspace: Workspace, now: datetime) -> dict[tuple[str, str], list[Any]]:
    with workspace.warehouse.read() as con:
        return findings(con, TABLES, now)


def complaints(workspace: Workspace, now: datetime) -> set[tuple[str, str]]:
    return {pair for pair, lines in watched(workspace, now).items() if not all(line.passed for line in lines)}


def test_a_whole_week_is_covered_and_fresh(published: Workspace) -> None:
    assert complaints(published, NOON) == set()


def test_a_hole_is_reported_for_its_table_alone_and_absence_is_never_equal_to_nothing(published: Workspace) -> None:
    published.tamper("delete from platform.publications where asset = 'fct_orders' and \"interval\" = ?", WEEK[2])
    published.tamper("delete from orders.fct_orders where order_date = ?", WEEK[2])
    assert complaints(published, NOON) == {("fct_orders", COVERED)}
    (finding, _) = watched(published, NOON)["fct_orders", COVERED]
    assert f"missing {WEEK[2]};" in finding.details and finding.difference == "-1"


def test_a_table_that_was_never_published_is_missing_whole(workspace: Workspace) -> None:
    assert complaints(workspace, NOON) == {(name, check) for name in TABLES if not TABLES[name].companion_of
                                           for check in (COVERED, FRESH)}  # fmt: skip


def test_one_hour_of_outage_of_the_source_in_a_backfill_leaves_exactly_the_failed_days_missing(workspace: Workspace) -> None:
    days, assets = WEEK[:5], ("raw_orders", "stg_orders")
    workspace.put_days(*days)
    failed = set()
    for number, day in enumerate(days):
        if number in (2, 4):
            names = ("source.db", "gone.db") if number == 2 else ("gone.db", "source.db")
            (workspace.home / names[0]).rename(workspace.home / names[1])
        if not workspace.materialize(day, assets=assets).success:
            failed.add(day)
    assert failed == set(days[2:4])
    with workspace.warehouse.read() as con:
        wanted = expected({name: TABLES[name] for name in assets}, workspace.settings.calendar, NOON - timedelta(days=2))
        assert holes(wanted, published_pairs(con)) == dict.fromkeys(assets, sorted(failed))


def test_a_late_today_stays_late_when_an_old_day_is_made_again(published: Workspace) -> None:
    late = NOON + timedelta(days=1)
    stranded = {(name, check) for name in TABLES if not TABLES[name].companion_of and name != "finance_export"
                for check in (COVERED, FRESH)}  # fmt: skip
    assert complaints(published, late) == stranded
    assert published.materialize(WEEK[0]).success
    assert complaints(published, late) == stranded
    assert complaints(published, datetime(2026, 1, 13, 7, tzinfo=UTC)) == {pair for pair in stranded if pair[1] == COVERED}


def test_a_table_stranded_by_a_failure_above_it_raises_its_own_alarm(published: Workspace) -> None:
    for name in ("revenue_daily", "revenue_to_date"):
        published.tamper('delete from platform.publications where asset = ? and "interval" = ?', name, WEEK[6])
        published.tamper(f"delete from orders.{name} where order_date = ?", WEEK[6])
    assert {pair for pair in complaints(published, NOON) if pair[1] == FRESH} == {
        ("revenue_daily", FRESH), ("revenue_to_date", FRESH),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("reach", "closed", "passed"),
    [
        (Reach("2026-01-11", "2026-01-11"), "", True),
        (Reach("2026-01-11", "2026-01-10"), "", False),
        (Reach("2026-01-11", "2026-01-10"), "sun", True),
        (Reach("2026-01-10", "2026-01-10"), "sun", False),
        (Reach(), "", False),
    ],
)
def test_fresh_means_complete_with_rows_unless_the_day_is_closed(reach: Reach, closed: str, passed: bool) -> None:
    found = freshness(TABLES["stg_orders"], "2026-01-11", reach, ClosedDays.parse(closed))
    assert found.passed is passed


def test_a_week_is_due_some_hours_after_its_sunday_in_business_time() -> None:
    calendar = Calendar(datetime(2026, 1, 5).date(), timezone="America/New_York")
    weeks = ["2026-01-05", "2026-01-12"]
    sunday_night = datetime(2026, 1, 19, 12, 59, tzinfo=UTC)
    assert due(weeks, calendar, 7, sunday_night, timedelta(hours=8)) == "2026-01-05"
    assert due(weeks, calendar, 7, sunday_night + timedelta(minutes=1), timedelta(hours=8)) == "2026-01-12"


def test_a_row_outside_every_interval_is_counted_for_its_table(published: Workspace) -> None:
    published.tamper(
        "insert into orders.fct_orders by name select * replace (null as order_date) from orders.fct_orders limit 1"
    )
    published.tamper("update orders.fct_orders set produced_by = null where order_date is null")
    assert complaints(published, NOON) == {("fct_orders", COVERED)}


def test_the_watch_runs_without_materializing_and_counts_source_rows_that_no_interval_selects(published: Workspace) -> None:
    published.sql_source("insert into orders (order_id) values ('lost')")
    before = published.current()
    result = defs.resolve_job_def("watch").execute_in_process(instance=published.instance)
    assert result.success and published.current() == before
    found = {(e.asset_key.path[-1], e.check_name): e for e in result.get_asset_check_evaluations()}
    assert set(found) == {(name, check) for name in TABLES if not TABLES[name].companion_of for check in (COVERED, FRESH)}
    assert "1 rows" in str(found["raw_orders", COVERED].metadata["selectable"].value)
    assert found["fct_orders", FRESH].severity == dg.AssetCheckSeverity.ERROR
    assert "2026-01-11 11:00:00 UTC" in str(found["stg_orders", FRESH].metadata["freshness"].value)


def test_recheck_asks_the_source_about_days_that_were_made_earlier(published: Workspace) -> None:
    published.sql_source(f"delete from orders where order_id = '{WEEK[3]}-2'")
    schedule = defs.get_repository_def().get_schedule_def("recheck_schedule")
    at = datetime(2026, 1, 13, 3, tzinfo=UTC)
    (request,) = schedule.evaluate_tick(dg.build_schedule_context(published.instance, at)).run_requests or ()
    result = defs.resolve_job_def("recheck").execute_in_process(instance=published.instance, tags=request.tags)
    bad = {(e.asset_key.path[-1], e.partition) for e in result.get_asset_check_evaluations() if not e.passed}
    assert bad == {("raw_orders", WEEK[3])}


def test_coverage_of_a_year_of_seven_tables_answers_within_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDERS_HOME", str(tmp_path))
    monkeypatch.setenv("ORDERS_START_DATE", "2025-01-06")
    monkeypatch.setenv("ORDERS_END_DATE", "2026-01-04")
    settings.cache_clear()
    values: Settings = settings()
    days = values.calendar.days(NOON)
    assert len(days) == 364
    made = Publication("raw_orders", days[0], "run", "code", "d", 5)
    with Warehouse.from_settings(values).write("a test") as con:
        rows = [replace(made, asset=name, interval=day, publication_id=str(publications.uuid.uuid4()))
                for name in TABLES for day in days]  # fmt: skip
        publications.append(con, rows)
    started = time.perf_counter()
    with Warehouse.from_settings(values).read() as con:
        found = findings(con, TABLES, NOON)
    seconds = time.perf_counter() - started
    settings.cache_clear()
    assert all(line.passed for name in DAILY for line in found[name, COVERED])
    assert seconds < 1


def test_coverage_names_a_range_and_the_command_that_fills_it() -> None:
    found = coverage(TABLES["stg_orders_rejected"], WEEK, {("stg_orders_rejected", WEEK[0])})
    assert (found.left, found.right) == ("7 intervals", "1 published")
    assert f"missing {WEEK[1]}...{WEEK[6]}" in found.details and "--select stg_orders --partition" in found.details
