"""kill -9 of a real `dagster asset materialize`: the day is wholly old or wholly new, and running again succeeds at once."""

import pytest

from orders_platform.cli.audit import evidence_of
from orders_platform.recovery.audit import audit
from tests.conftest import Workspace

DAY, OTHER = "2026-01-05", "2026-01-06"
SELECTED = ("raw_orders", "stg_orders", "fct_orders")


@pytest.mark.parametrize(
    ("step", "new"),
    [
        ("after link", ()),
        ("after delete from orders.stg_orders_rejected", ("raw_orders",)),
        ("before insert into orders.fct_orders", ("raw_orders", "stg_orders")),
        ("after commit", ("raw_orders",)),
    ],
)
def test_a_killed_run_leaves_each_table_wholly_old_or_new_and_the_next_one_succeeds(
    workspace: Workspace, step: str, new: tuple[str, ...]
) -> None:
    workspace.put_days(DAY, OTHER)
    assert workspace.materialize(DAY, OTHER, assets=SELECTED).success
    old = workspace.current()
    workspace.sql_source("update orders set gross_amount = '77.00' where order_id like ?", f"{DAY}%")
    command = ["asset", "materialize", "--select", ",".join(SELECTED), "--partition", DAY]
    program = f"from tests.warehouse.killing import run_until; run_until({step!r}, {command!r})"
    done = workspace.run("python", "-c", program, DAGSTER_MODULE_NAME="orders_platform.definitions")
    assert done.returncode == -9, done.stderr[-2000:]
    found = workspace.current()
    moved = {(asset, day) for asset, day in old if found[asset, day].digest != old[asset, day].digest}
    assert moved == {(asset, DAY) for asset in new}
    for asset in ("stg_orders", "fct_orders"):
        gross = workspace.query(
            f"select distinct gross_amount, count(*) from published.{asset} where order_date = ? group by 1", DAY
        )
        assert gross == [(77 if asset in new else 10, 5)]
    again = workspace.run(
        "dagster", *command, ORDERS_LOCK_WAIT_SECONDS="1", ORDERS_SOURCE_CONNECTIONS="1", ORDERS_SOURCE_WAIT_SECONDS="1"
    )
    assert again.returncode == 0, again.stderr[-2000:]
    assert workspace.query(
        "select distinct gross_amount, count(*) from published.fct_orders where order_date = ? group by 1", DAY
    ) == [(77, 5)]
    after = workspace.current()
    assert {day for asset, day in old if after[asset, day].digest != old[asset, day].digest} == {DAY}


def test_what_was_published_by_a_run_that_died_before_dagster_was_told_needs_a_person(workspace: Workspace) -> None:
    workspace.put_days(DAY)
    assert workspace.materialize(DAY, assets=("raw_orders", "stg_orders")).success
    command = ["asset", "materialize", "--select", "stg_orders", "--partition", DAY]
    program = f"from tests.warehouse.killing import run_until; run_until('after commit', {command!r})"
    assert workspace.run("python", "-c", program, DAGSTER_MODULE_NAME="orders_platform.definitions").returncode == -9
    assert workspace.current()["stg_orders", DAY].revision == 2

    def found() -> list[tuple[str, str, str, bool]]:
        mine = [f for f in audit(evidence_of(workspace.world())) if f.finding == "data without claim"]
        return [(f.asset, f.interval, f.remedy, f.needs_person) for f in mine]

    assert found() == []  # it may still be running
    (run,) = [run for run in workspace.instance.get_runs() if not run.is_finished]
    workspace.instance.report_run_failed(run)
    remedy = f'orders repair stg_orders {DAY} --reason "its run died after publishing"'
    assert found() == [("stg_orders", DAY, remedy, True)]
    assert workspace.repair("stg_orders", DAY).is_good
    assert found() == []
