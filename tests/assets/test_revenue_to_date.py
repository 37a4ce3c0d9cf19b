"""revenue_to_date: yesterday's balance plus today, the same however it is run."""

import itertools
from decimal import Decimal

import pytest

from tests.conftest import Workspace, failure_of
from tests.scenarios.test_ui_backfill import BACKFILL, STATUS, ask, dagster_dev, until

UPSTREAM = ("raw_orders", "stg_orders", "fct_orders", "revenue_daily")
DAYS = ("2026-01-05", "2026-01-06", "2026-01-07", "2026-01-08")


def test_days_in_order_equal_one_range_and_record_the_balance_they_read(workspace: Workspace) -> None:
    workspace.put_days(*DAYS)
    assert workspace.materialize(DAYS[0], DAYS[-1], UPSTREAM).success
    for day in DAYS:
        result = workspace.materialize(day, assets=("revenue_to_date",))
        assert result.success, failure_of(result, "revenue_to_date")
    one_by_one = workspace.digests()
    before = workspace.current()
    assert workspace.materialize(DAYS[1], DAYS[-1], ("revenue_to_date",)).success
    assert workspace.digests() == one_by_one
    now = workspace.current()
    for previous, day in itertools.pairwise(DAYS):
        read = {i.asset: i for i in now["revenue_to_date", day].inputs}
        assert read["revenue_daily"].publication_id == now["revenue_daily", day].publication_id
        assert read["revenue_to_date"].interval == previous
        assert read["revenue_to_date"].publication_id == now["revenue_to_date", previous].publication_id
    assert [i.asset for i in before["revenue_to_date", DAYS[0]].inputs] == ["revenue_daily"]
    assert workspace.query("select count(*) from published.coverage where is_published and not is_current") == [(0,)]


def test_a_missing_previous_day_is_refused_by_name(workspace: Workspace) -> None:
    workspace.put_days(*DAYS)
    assert workspace.materialize(DAYS[0], DAYS[-1], UPSTREAM).success
    result = workspace.materialize(DAYS[2], DAYS[3], ("revenue_to_date",))
    assert not result.success
    assert "revenue_to_date 2026-01-07...2026-01-08 needs revenue_to_date 2026-01-06" in failure_of(result, "revenue_to_date")


def test_a_country_without_sales_keeps_its_balance(workspace: Workspace) -> None:
    for day, country in ((DAYS[0], "FR"), (DAYS[1], "GB")):
        workspace.put((day, "c1", f"{day} 10:00:00", f"{day} 10:00:00", country, "EUR", "paid", "12.50", "0.00"))
    assert workspace.materialize(DAYS[0], DAYS[1], (*UPSTREAM, "revenue_to_date")).success
    found = workspace.query("select order_date::varchar, country, revenue_to_date from published.revenue_to_date order by 1, 2")
    sold = Decimal("12.50")
    assert found == [(DAYS[0], "FR", sold), (DAYS[1], "FR", sold), (DAYS[1], "GB", sold)]


@pytest.mark.proof
@pytest.mark.parametrize("per_run", ["", "1"])
def test_a_backfill_from_the_ui_is_one_range_whatever_the_intervals_a_run(workspace: Workspace, per_run: str) -> None:
    workspace.put_days(*DAYS)
    assert workspace.materialize(DAYS[0], DAYS[-1], UPSTREAM).success
    params = {"partitionNames": list(DAYS), "assetSelection": [{"path": ["revenue_to_date"]}], "allPartitions": False}
    with dagster_dev(workspace, ORDERS_INTERVALS_PER_RUN=per_run) as url:
        until(lambda: ask(url, "{ version }"))
        answer = until(lambda: ask(url, BACKFILL, params={**params, "fromFailure": False})["launchPartitionBackfill"])
        wanted = {"id": answer["backfillId"]}
        ended = ("COMPLETED_SUCCESS", "COMPLETED_FAILED", "FAILED", "CANCELED")
        status = until(lambda: (s := ask(url, STATUS, **wanted)["partitionBackfillOrError"]["status"]) in ended and s, 300)
    assert status == "COMPLETED_SUCCESS"
    runs = workspace.query(
        "select \"interval\", run_id from platform.publications where asset = 'revenue_to_date' order by published_at"
    )
    assert [interval for interval, _ in runs] == list(DAYS)
    assert len({run_id for _, run_id in runs}) == 1
