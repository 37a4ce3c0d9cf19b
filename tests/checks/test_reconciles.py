"""Reconciliation: a table is right when it holds exactly what was published, made from exactly what it read."""

from pathlib import Path

import pytest

from orders_platform.assets.fct_orders import CONTRACT as FCT
from orders_platform.warehouse.inputs import Input
from orders_platform.warehouse.swap import Swap
from orders_platform.warehouse.tables import Output
from tests.checks.kit import WEEK, check, divergent, failed, judged, reconcile, text
from tests.conftest import Workspace

DAY = "2026-01-06"


def test_untouched_tables_all_match(published: Workspace) -> None:
    lines = reconcile(published, *WEEK)
    assert divergent(lines) == set()
    assert len(lines) == 7 * 7 + 1
    assert lines["finance_export", WEEK[0]].verdict == "match"


DELETED, ADDED, CHANGED = WEEK[1], WEEK[3], WEEK[5]
# table -> a value to set, the key of the row that is edited on a day
EDITS = {
    "stg_orders": ("country = 'XX'", "order_id = '{day}-2'", "{day}-2"),
    "stg_orders_rejected": ("updated_at = 'later'", "order_id = 'bad-{day}'", "bad-{day}"),
    "fct_orders": ("is_revenue = not is_revenue", "order_id = '{day}-2'", "{day}-2"),
    "revenue_daily": ("cancelled_orders = 9", "country = 'DE'", "DE · EUR"),
    "revenue_to_date": ("revenue_to_date = 0.01", "country = 'DE'", "DE · EUR"),
    "customer_features": ("days_since_last_order = 7", "customer_id = 'c1'", "c1 · GBP"),
}


@pytest.mark.parametrize("table", EDITS)
def test_a_row_deleted_added_or_changed_by_hand_is_found_by_reconcile_and_located_to_its_key(
    published: Workspace, table: str
) -> None:
    change, where, key = EDITS[table]
    partition = "feature_date" if table == "customer_features" else "order_date"

    def rows(day: str) -> str:
        return f"orders.{table} where {partition} = date '{day}' and {where.format(day=day)}"

    published.tamper(f"delete from {rows(DELETED)}")
    published.tamper(f"insert into orders.{table} from {rows(ADDED)}")
    published.tamper(f"update {rows(CHANGED).replace(' where', f' set {change} where')}")
    lines = reconcile(published, *WEEK)
    assert divergent(lines) == {(table, day) for day in (DELETED, ADDED, CHANGED)}
    for day, left, right in ((DELETED, "a row", None), (ADDED, None, "a row")):
        assert [(d.left, d.right) for d in lines[table, day].differences if d.item == key.format(day=day)] == [(left, right)]
    changed = next(d for d in lines[table, CHANGED].differences if d.item == key.format(day=CHANGED))
    assert changed.left != changed.right and change.split(" =")[0] in str(changed.right)


def test_a_line_of_an_exported_file_changed_by_hand_is_found_and_located(published: Workspace) -> None:
    (file,) = (published.home / "exports").rglob("*.csv")
    file.write_text(file.read_text().replace(f"{DAY},DE,EUR,6", f"{DAY},DE,EUR,7"))
    line = reconcile(published, *WEEK)["finance_export", WEEK[0]]
    assert (line.verdict, [d.item for d in line.differences]) == ("divergent", [f"{DAY} · DE · EUR"])


def test_a_landed_file_whose_bytes_changed_fails_its_interval_alone(published: Workspace) -> None:
    file = landed(published, DAY)
    file.write_bytes(landed(published, WEEK[2]).read_bytes())
    lines = reconcile(published, *WEEK)
    assert divergent(lines) == {("raw_orders", DAY)}
    file.unlink()
    assert "is gone" in reconcile(published, DAY)["raw_orders", DAY].right


def test_the_check_says_the_same_as_the_command_for_the_right_interval_and_asset(published: Workspace) -> None:
    published.tamper(f"update orders.fct_orders set is_revenue = not is_revenue where order_id = '{DAY}-2'")
    result = check(published, WEEK[0], WEEK[2])
    assert {pair for pair in failed(result) if pair[1] != "usual"} == {("fct_orders", "reconciles", DAY)}
    evaluation = judged(result, "fct_orders", "reconciles")[DAY]
    assert f"keys: {DAY}-2" in text(evaluation, "content")
    (record,) = evaluation.metadata["differences"].records
    assert record.data == {"what": f"{DAY}-2", "left": "is_revenue true", "right": "is_revenue false"}
    assert "orders reconcile 2026-01-06" in text(evaluation, "investigate")
    assert evaluation.target_materialization_data is not None


def test_a_row_that_another_publication_produced_is_foreign(published: Workspace) -> None:
    published.tamper(f"update orders.fct_orders set produced_by = uuid() where order_id = '{DAY}-2'")
    line = reconcile(published, *WEEK)["fct_orders", DAY]
    assert (line.verdict, line.left, line.right) == ("divergent", "0", "1")
    assert [d.item for d in line.differences] == [f"{DAY}-2"]


@pytest.mark.parametrize(
    "sql",
    [
        "select * from (from stg_orders limit 11) union all (select * replace ('again' as order_id) from stg_orders limit 1)",
        "select * replace (30 - gross_amount as gross_amount) from stg_orders",
    ],
)
def test_a_partial_run_that_wrote_exactly_the_right_count_of_wrong_rows_is_caught(published: Workspace, sql: str) -> None:
    wrong = f"""select order_date, order_id, customer_id, country, currency, status, gross_amount, discount_amount,
        gross_amount - discount_amount as net_amount, true as is_revenue from ({sql})"""
    values = published.settings
    read = [Input("stg_orders", "stg_orders", "order_date", {DAY: [DAY]})]
    swap = Swap([Output("fct_orders", FCT, wrong)], [DAY], read, "a-run", "other code", values.calendar, values.landing_root)
    with published.warehouse.write("a test") as con:
        (made,) = swap.run(con)
    assert made.row_count == 12
    line = reconcile(published, *WEEK)["fct_orders", DAY]
    assert line.verdict == "divergent" and line.differences
    assert failed(check(published, DAY, assets=("fct_orders",))) >= {("fct_orders", "reconciles", DAY)}


def test_rows_replaced_by_hand_in_equal_number_and_with_equal_sums_are_caught(published: Workspace) -> None:
    published.tamper(f"update orders.fct_orders set order_id = 'other' where order_id = '{DAY}-3'")
    line = reconcile(published, DAY)["fct_orders", DAY]
    assert line.verdict == "divergent" and "same count and sums, other content" in line.difference
    assert {d.item for d in line.differences} >= {f"{DAY}-3", "other"}


def test_a_table_made_from_a_spoiled_input_fails_at_once(published: Workspace) -> None:
    published.tamper(f"update orders.stg_orders set gross_amount = 99 where order_id = '{DAY}-2'")
    result = published.materialize(DAY, assets=("fct_orders",))
    assert failed(result) == {("fct_orders", "reconciles", DAY)}
    assert f"stg_orders {DAY} no longer holds what was published" in text(
        judged(result, "fct_orders", "reconciles")[DAY], "identity"
    )


def test_an_interval_whose_input_was_replaced_since_is_not_called_divergent(published: Workspace) -> None:
    published.sql_source(f"update orders set gross_amount = '20.00' where order_id = '{DAY}-2'")
    assert published.materialize(DAY, assets=("raw_orders", "stg_orders")).success
    lines = reconcile(published, *WEEK)
    assert divergent(lines) == set()


def landed(workspace: Workspace, day: str) -> Path:
    location = workspace.current()["raw_orders", day].location
    return workspace.settings.landing_root / str(location)
