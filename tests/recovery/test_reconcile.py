"""orders reconcile: one line a table and interval, its result recorded, its exit code 1 unless all match."""

import json
import uuid

import pytest

from orders_platform.definitions import defs
from orders_platform.recovery.measures import Measured
from orders_platform.warehouse.publications import Publication
from tests import lakes
from tests.checks.conftest import published, template  # noqa: F401
from tests.checks.kit import WEEK, reconcile, verdicts
from tests.conftest import Workspace, failure_of

DAY = WEEK[1]


def test_the_command_prints_objects_and_exits_one_unless_everything_matches(published: Workspace) -> None:  # noqa: F811
    done = published.run("orders", "reconcile", "--from", WEEK[0], "--to", WEEK[6], "--json")
    lines = json.loads(done.stdout)
    assert done.returncode == 0 and {line["verdict"] for line in lines} == {"match"} and len(lines) == 50
    assert list(lines[0])[:6] == ["asset", "interval", "verdict", "left", "right", "difference"]

    published.tamper(f"update orders.fct_orders set discount_amount = 0 where order_id = '{DAY}-2'")
    done = published.run("orders", "reconcile", DAY, "--json")
    (line,) = [line for line in json.loads(done.stdout) if line["verdict"] != "match"]
    assert done.returncode == 1
    assert (line["asset"], line["verdict"]) == ("fct_orders", "divergent")
    assert line["difference"] == "discount_amount EUR -0.50"
    assert line["keys"] == [{"item": f"{DAY}-2", "left": "discount_amount 0.50", "right": "discount_amount 0.00"}]

    people = published.run("orders", "reconcile", DAY)
    assert people.returncode == 1 and "6 match, 1 divergent" in people.stdout and "Traceback" not in people.stderr


def test_what_was_found_is_recorded_as_the_next_attempt_on_the_publication(published: Workspace) -> None:  # noqa: F811
    published.tamper(f"update orders.fct_orders set country = 'XX' where order_id = '{DAY}-2'")
    reconcile(published, *WEEK)
    reconcile(published, *WEEK)
    rows = published.query(
        "select attempt, passed, blocking from platform.verdicts where asset = 'fct_orders' and \"interval\" = ? "
        "and check_name = 'reconciles' order by attempt",
        DAY,
    )
    assert rows == [(1, True, True), (2, False, True), (3, False, True)]
    assert verdicts(published, "fct_orders", DAY)["reconciles/content"] is False
    assert published.query('select asset, "interval" from platform.failing') == [("fct_orders", DAY)]


@lakes.both_engines
def test_a_day_that_another_blocking_check_refused_does_not_match(workspace: Workspace) -> None:
    workspace.put_days("2026-01-05")
    assert workspace.materialize("2026-01-05").success
    workspace.sql_source("delete from orders")
    assert not workspace.materialize("2026-01-05", assets=("raw_orders",)).success
    run = workspace.run("orders", "reconcile", "2026-01-05", "--json")
    assert run.returncode == 1
    line = next(row for row in json.loads(run.stdout) if row["asset"] == "raw_orders")
    assert line["verdict"] == "divergent"
    assert "failed its check arrived" in line["details"]


def test_a_day_without_publication_is_missing_and_rows_there_are_counted(published: Workspace) -> None:  # noqa: F811
    published.tamper(
        "insert into orders.fct_orders by name "
        "select * replace (date '2026-01-12' as order_date) from orders.fct_orders limit 2"
    )
    lines = reconcile(published, "2026-01-12")
    assert {line.verdict for line in lines.values()} == {"missing"}
    assert lines["fct_orders", "2026-01-12"].right == "2 rows without one"
    assert lines["revenue_daily", "2026-01-12"].right == "nothing"


def test_a_quarantined_day_is_held_and_not_judged(published: Workspace) -> None:  # noqa: F811
    published.tamper(
        "insert into platform.quarantines values ('stg_orders', ?, 1, true, 'ann', 'wrong prices', ?, now()::timestamp)",
        DAY, str(uuid.uuid4()),
    )  # fmt: skip
    lines = reconcile(published, *WEEK[:3])
    assert {pair for pair, line in lines.items() if line.verdict == "held"} == {
        ("stg_orders", DAY), ("stg_orders_rejected", DAY),
    }  # fmt: skip
    assert lines["stg_orders", DAY].details == "quarantined by ann: wrong prices"


def test_weeks_are_compared_where_the_range_covers_them_or_their_monday_is_named(published: Workspace) -> None:  # noqa: F811
    def weekly(*days: str, single: bool = False) -> list[str]:
        return [interval for asset, interval in reconcile(published, *days, single=single) if asset == "finance_export"]

    assert weekly(*WEEK) == [WEEK[0]]
    assert weekly(*WEEK[:6]) == []
    assert weekly(WEEK[0], single=True) == [WEEK[0]]
    assert weekly(WEEK[1], single=True) == []


def test_the_live_source_is_compared_row_by_row_and_its_movement_refuses_nobody(published: Workspace) -> None:  # noqa: F811
    published.sql_source(f"update orders set status = 'shipped' where order_id = '{DAY}-2'")
    published.sql_source(f"delete from orders where order_id = '{DAY}-4'")
    published.put(("new", "c9", f"{DAY} 05:00:00", f"{DAY} 05:00:00", "GB", "GBP", "paid", "1.00", "0.00"))
    lines = reconcile(published, *WEEK, source=True)
    assert {pair for pair, line in lines.items() if line.verdict != "match"} == {("raw_orders", DAY)}
    assert [vars(d) for d in lines["raw_orders", DAY].differences] == [
        {"item": f"{DAY}-2", "left": "status shipped", "right": "status paid"},
        {"item": f"{DAY}-4", "left": None, "right": "a row"},
        {"item": "new", "left": "a row", "right": None},
    ]
    assert published.query("from platform.failing") == []


def test_the_job_does_the_same_for_the_ui(published: Workspace) -> None:  # noqa: F811
    def run(first: str, last: str) -> object:
        config = {"ops": {"compare_tables": {"config": {"from": first, "to": last}}}}
        job = defs.resolve_job_def("reconcile")
        return job.execute_in_process(instance=published.instance, run_config=config, raise_on_error=False)

    assert run(WEEK[0], WEEK[6]).success  # type: ignore[attr-defined]
    published.tamper(f"update orders.fct_orders set country = 'XX' where order_id = '{DAY}-2'")
    result = run(DAY, DAY)
    assert "1 of 7 do not match: fct_orders 2026-01-06 divergent" in failure_of(result, "compare_tables")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("2026-01-50",), 1, "is not an interval"),
        (("2027-01-05",), 1, "outside the calendar"),
        ((DAY, "--from", DAY), 2, "not both"),
        (("--from", WEEK[3], "--to", DAY), 2, "lies after"),
    ],
)
def test_what_cannot_be_reconciled_is_refused(workspace: Workspace, words: tuple[str, ...], code: int, message: str) -> None:
    done = workspace.run("orders", "reconcile", *words)
    assert (done.returncode, message in done.stderr) == (code, True)


def test_digests_of_another_engine_are_not_compared_but_counts_and_sums_are() -> None:
    published = Publication("t", DAY, "r", "c", "aaaa.2.ff", 2, digest_columns=("a",))  # noqa: F811
    assert Measured(2, "bbbb.2.fe").changes_since(published) == ""
    assert Measured(2, "aaaa.2.fe").changes_since(published) == "same count and sums, other content"
    assert Measured(3, "bbbb.3.fe").changes_since(published) == "rows +1"
