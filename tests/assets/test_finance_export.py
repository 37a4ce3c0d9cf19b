"""finance_export: one file a week, whole, exact, the same bytes however often and however wide it is built."""

import hashlib
import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import dagster as dg
import pytest

from orders_platform.definitions import defs
from orders_platform.settings import settings
from orders_platform.warehouse.exports import csv_bytes
from orders_platform.warehouse.publications import Publication
from tests.conftest import Workspace, failure_of
from tests.delivery.helpers import CALENDAR, DAYS, WEEK, build, judge, publish_days

EXPORT = ("finance_export",)


@pytest.fixture
def ready(workspace: Workspace) -> Workspace:
    """Seven days published and reconciled."""
    publish_days(workspace)
    judge(workspace)
    return workspace


def export(workspace: Workspace, week: str = WEEK) -> Publication:
    assert workspace.materialize(week, assets=EXPORT).success
    return workspace.current()["finance_export", week]


def file_of(workspace: Workspace, made: Publication) -> Path:
    assert made.location
    return workspace.home / "exports" / made.location


def test_a_week_is_one_sorted_file_with_exact_amounts(ready: Workspace) -> None:
    made = export(ready)
    data = file_of(ready, made).read_bytes()
    lines = data.decode("utf-8").split("\n")
    assert lines[0] == "week,order_date,country,currency,orders,revenue_orders,cancelled_orders,revenue"
    assert lines[1] == "2026-01-05,2026-01-05,DE,EUR,3,2,1,19.00"
    assert lines[-1] == "" and b"\r" not in data
    assert lines[1:-1] == sorted(lines[1:-1]) and len(lines) == 2 + 7 * 2
    assert made.digest == made.sha256 == hashlib.sha256(data).hexdigest()
    assert (made.row_count, made.step_days) == (14, 7)


def test_the_manifest_says_what_to_check_the_file_against_and_what_it_was_first_built_from(ready: Workspace) -> None:
    made = export(ready)
    manifest = json.loads(file_of(ready, made).with_suffix(".json").read_text())
    daily = ready.query("select currency, sum(revenue)::varchar from published.revenue_daily group by 1")
    assert manifest["control_totals"]["revenue"] == dict(daily)
    assert manifest["control_totals"]["orders"] == "42"
    assert (manifest["week"], manifest["lines"], manifest["sha256"], manifest["schema_version"]) == (WEEK, 14, made.digest, 1)
    assert [i["interval"] for i in manifest["first_built_from"]] == list(DAYS)
    assert [i.interval for i in made.inputs] == list(DAYS)


def test_built_twenty_times_at_one_and_eight_threads_it_has_one_sha256_and_one_manifest(
    ready: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    digests = {export(ready).sha256}
    for threads in ("1", "8") * 10:
        monkeypatch.setenv("ORDERS_DUCKDB_THREADS", threads)
        settings.cache_clear()
        digests.add(build(ready).sha256)
    assert len(digests) == 1
    files = sorted(p.suffix for p in (ready.home / "exports").rglob("*") if p.is_file())
    assert files == [".csv", ".json"]
    assert ready.query("select count(*) from platform.publications where asset = 'finance_export'") == [(21,)]


def test_six_of_seven_days_are_refused_naming_the_missing_one(workspace: Workspace) -> None:
    publish_days(workspace, [day for day in DAYS if day != "2026-01-09"])
    judge(workspace)
    result = workspace.materialize(WEEK, assets=EXPORT)
    assert "needs revenue_daily 2026-01-09, which has not been published" in failure_of(result, "finance_export")
    assert not (workspace.home / "exports").exists()


def test_a_week_waits_for_a_day_that_nobody_has_reconciled(workspace: Workspace) -> None:
    publish_days(workspace)
    judge(workspace, except_for=("2026-01-07",))
    result = workspace.materialize(WEEK, assets=EXPORT)
    assert "waits: revenue_daily 2026-01-07 has not been reconciled yet" in failure_of(result, "finance_export")


def test_a_day_that_failed_its_check_keeps_the_week_from_being_built(ready: Workspace) -> None:
    judge(ready, "2026-01-08", passed=False)
    result = ready.materialize(WEEK, assets=EXPORT)
    assert "revenue_daily 2026-01-08 failed its check reconciles" in failure_of(result, "finance_export")


def test_weeks_built_as_one_range_equal_the_same_weeks_built_one_by_one(workspace: Workspace) -> None:
    weeks = ("2026-01-05", "2026-01-12")
    days = [day for week in weeks for day in CALENDAR.days_of(week)]
    publish_days(workspace, days)
    judge(workspace)
    assert workspace.materialize(weeks[0], weeks[-1], assets=EXPORT).success
    together = {w: workspace.current()["finance_export", w] for w in weeks}
    apart = {w: export(workspace, w) for w in weeks}
    assert {w: p.sha256 for w, p in together.items()} == {w: p.sha256 for w, p in apart.items()}
    assert [i.interval for i in together[weeks[1]].inputs] == days[7:]


def test_changed_content_is_a_new_file_beside_the_old_one(ready: Workspace) -> None:
    old = export(ready)
    publish_days(ready, DAYS[1:2], "21.00")
    judge(ready)
    new = export(ready)
    before, after = (file_of(ready, made).read_text().splitlines() for made in (old, new))
    assert [(a, b) for a, b in zip(before, after, strict=True) if a != b] == [
        ("2026-01-05,2026-01-06,GB,GBP,3,2,1,19.00", "2026-01-05,2026-01-06,GB,GBP,3,2,1,21.00")
    ]


def test_a_file_whose_bytes_changed_is_noticed_and_not_published_again(ready: Workspace) -> None:
    file_of(ready, export(ready)).write_bytes(b"tampered")
    result = ready.materialize(WEEK, assets=EXPORT)
    assert "no longer holds the bytes it is named for" in failure_of(result, "finance_export")


def test_text_that_a_spreadsheet_would_run_is_neutralised_and_amounts_keep_every_digit() -> None:
    rows = [
        (text, Decimal("-12345678901234567890123456789012345678.90")) for text in ("=1", "+1", "-1", "@x", "\tx", "\rx", "GB")
    ]
    written = csv_bytes(["country", "revenue"], rows).decode()
    assert [line[:3] for line in written.split("\n")[1:6]] == ["'=1", "'+1", "'-1", "'@x", "'\tx"]
    assert '"\'\rx",' in written and "\nGB,-12345678901234567890123456789012345678.90\n" in written


def test_money_as_a_float_never_reaches_a_file() -> None:
    with pytest.raises(TypeError, match="float has no exact text"):
        csv_bytes(["revenue"], [(1.5,)])


def test_the_week_is_built_on_monday_at_six_business_time() -> None:
    schedule = defs.resolve_schedule_def("weekly_finance_export_schedule")
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 6 * * 1", "UTC")
    context = dg.build_schedule_context(
        repository_def=defs.get_repository_def(), scheduled_execution_time=datetime(2026, 1, 12, 6)
    )
    requests = schedule.evaluate_tick(context).run_requests
    assert requests and requests[0].partition_key == WEEK
