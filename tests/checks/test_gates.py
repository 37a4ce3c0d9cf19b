"""Blocking holds beyond the run: what failed is read by nobody until it was mended, and a range says which days are fine."""

import re

import dagster as dg
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

from tests.checks.kit import WEEK, check, failed, judged, reconcile, steps_that_ran
from tests.conftest import Workspace, failure_of

DAY = WEEK[1]
TWENTY = tuple(f"2026-01-{day:02d}" for day in range(5, 25))


def test_twenty_days_at_once_with_one_bad_day_fail_for_exactly_that_day_and_the_others_can_go_on(workspace: Workspace) -> None:
    bad = "2026-01-14"
    workspace.put_days(*(day for day in TWENTY if day != bad), orders=2)
    result = workspace.materialize(TWENTY[0], TWENTY[-1])
    assert failed(result) == {("raw_orders", "arrived", bad)}
    for name in ("arrived", "reconciles", "usual"):
        evaluations = judged(result, "raw_orders", name)
        assert sorted(evaluations) == list(TWENTY)
        assert all(e.target_materialization_data.run_id == result.run_id for e in evaluations.values())
        key = dg.AssetCheckKey(dg.AssetKey("raw_orders"), name)
        records = workspace.instance.event_log_storage.get_asset_check_execution_history(key, limit=50)
        assert AssetCheckExecutionRecordStatus.PLANNED not in {record.status for record in records}
    assert "stg_orders" not in steps_that_ran(result)

    message = failure_of(result, "raw_orders_checks")
    ranges = list(dict.fromkeys(re.findall(r"--select (\S+) --partition-range (\S+)\.\.\.([\d-]+)", message)))
    assert [(first, last) for _, first, last in ranges] == [(TWENTY[0], "2026-01-13"), ("2026-01-15", TWENTY[-1])]
    for names, first, last in ranges:
        assert workspace.materialize(first, last, assets=tuple(names.split(","))).success
    assert {day for asset, day in workspace.current() if asset == "revenue_daily"} == set(TWENTY) - {bad}


def test_a_table_that_failed_is_refused_in_a_later_run_and_hidden_with_its_companion_until_it_is_made_again(
    published: Workspace,
) -> None:
    published.tamper(f"update orders.stg_orders set country = 'XX' where order_id = '{DAY}-2'")
    assert failed(check(published, DAY, assets=("stg_orders",))) == {("stg_orders", "reconciles", DAY)}
    later = published.materialize(DAY, assets=("fct_orders",))
    message = failure_of(later, "fct_orders")
    assert f"stg_orders {DAY} failed its check reconciles" in message and f"{DAY}-2" in message
    for table in ("stg_orders", "stg_orders_rejected"):
        shown = {str(day) for (day,) in published.query(f"select distinct order_date from published.{table}")}
        assert shown == set(WEEK) - {DAY}

    assert published.materialize(DAY, assets=("stg_orders", "fct_orders")).success
    assert published.query(f"select count(*) from published.stg_orders_rejected where order_date = '{DAY}'") == [(1,)]


def test_a_weekly_file_is_not_made_from_a_day_that_failed(published: Workspace) -> None:
    published.tamper(f"update orders.revenue_daily set revenue = 1 where order_date = '{WEEK[6]}' and country = 'DE'")
    reconcile(published, WEEK[6])
    result = published.materialize(WEEK[0], assets=("finance_export",))
    assert f"revenue_daily {WEEK[6]} failed its check reconciles" in failure_of(result, "finance_export")


def test_a_later_verdict_on_the_same_publication_opens_the_gate(published: Workspace) -> None:
    published.tamper("create table saved as from orders.fct_orders; update orders.fct_orders set country = 'XX'")
    reconcile(published, DAY)
    assert "failed its check" in failure_of(published.materialize(DAY, assets=("revenue_daily",)), "revenue_daily")
    published.tamper("delete from orders.fct_orders; insert into orders.fct_orders from saved")
    assert reconcile(published, DAY)["fct_orders", DAY].verdict == "match"
    assert published.materialize(DAY, assets=("revenue_daily",)).success


def test_data_assets_read_what_no_check_has_judged_yet(published: Workspace) -> None:
    published.tamper("delete from platform.verdicts")
    assert published.materialize(DAY, assets=("fct_orders",)).success
