"""The second run: whatever is run again, in whatever shape, the tables are the same."""

from tests.conftest import DAILY, Workspace

DAYS = ("2026-01-05", "2026-01-06", "2026-01-07")


def test_days_run_one_by_one_equal_the_same_days_run_as_one_range(workspace: Workspace) -> None:
    workspace.put_days(*DAYS)
    assert workspace.materialize(DAYS[0], DAYS[-1]).success
    first = workspace.digests()
    assert {asset for asset, _ in first} == {*DAILY, "stg_orders_rejected"}
    for day in reversed(DAYS):
        assert workspace.materialize(day).success
    assert workspace.digests() == first


def test_a_changed_day_makes_only_its_own_downstream_stale(workspace: Workspace) -> None:
    workspace.put_days(*DAYS)
    assert workspace.materialize(DAYS[0], DAYS[-1]).success
    workspace.sql_source("update orders set gross_amount = '11.00' where order_id = '2026-01-06-1'")
    assert workspace.materialize(DAYS[1], assets=("raw_orders",)).success
    stale = workspace.query('select asset, "interval" from published.coverage where is_published and not is_current')
    assert sorted(stale) == [(a, "2026-01-06") for a in ("fct_orders", "revenue_daily", "stg_orders", "stg_orders_rejected")]
