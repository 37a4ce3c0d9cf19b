"""Bad input: one sentence with the asset, the interval and the remedy; what was there stays readable, nothing is lost."""

import subprocess
import time
from pathlib import Path

import pytest

from orders_platform.settings import settings
from tests import lakes
from tests.conftest import Workspace, failure_of
from tests.copies import fixtures

DAY, NEXT = "2026-01-05", "2026-01-06"


def fill(workspace: Workspace) -> None:
    """One day, built from raw to revenue."""
    workspace.put_days(DAY)
    assert workspace.materialize(DAY).success


template, built = fixtures(fill)


def verify_readable(workspace: Workspace) -> None:
    assert workspace.query("select count(*), sum(gross_amount) from published.fct_orders") == [(5, 50)]


def test_an_upstream_interval_that_is_missing_is_named_with_the_command_that_makes_it(built: Workspace) -> None:
    text = failure_of(built.materialize(NEXT, assets=("fct_orders",)), "fct_orders")
    assert f"fct_orders {NEXT} needs stg_orders {NEXT}, which has not been published" in text
    assert f"dagster asset materialize --select stg_orders --partition {NEXT}" in text
    verify_readable(built)


def test_a_source_table_that_does_not_exist_fails_for_good(built: Workspace) -> None:
    built.sql_source("alter table orders rename to elsewhere")
    text = failure_of(built.materialize(DAY), "raw_orders")
    assert f"raw_orders {DAY}" in text
    assert "no such table: orders" in text
    assert "ORDERS_SOURCE_QUERY" in text
    verify_readable(built)


def test_a_source_query_that_lacks_a_column_names_it(built: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDERS_SOURCE_QUERY", "select order_id from orders where ordered_at >= :start and ordered_at < :end")
    settings.cache_clear()
    text = failure_of(built.materialize(DAY), "raw_orders")
    assert f"raw_orders {DAY}: the source query lacks customer_id, ordered_at" in text
    assert "Correct ORDERS_SOURCE_QUERY" in text
    verify_readable(built)


def landed(workspace: Workspace, day: str) -> Path:
    location = workspace.current()["raw_orders", day].location
    assert location
    return workspace.settings.landing_root / location


def test_a_corrupt_landed_file_is_named_and_can_be_captured_again(built: Workspace) -> None:
    path = landed(built, DAY)
    path.write_bytes(path.read_bytes()[:-3])
    text = failure_of(built.materialize(DAY, assets=("stg_orders",)), "stg_orders")
    assert f"Landed files of raw_orders are not what was recorded ({DAY}: the bytes of {path.name} changed)" in text
    assert f"--select raw_orders --partition {DAY}" in text
    verify_readable(built)
    assert f"Move {path} away" in failure_of(built.materialize(DAY), "raw_orders")
    path.rename(path.with_suffix(".broken"))
    assert built.materialize(DAY).success
    verify_readable(built)


def test_a_contract_that_is_broken_names_the_intervals_that_are_fine(built: Workspace) -> None:
    built.put_days("2026-01-07", "2026-01-08", "2026-01-09")
    assert built.materialize("2026-01-07", "2026-01-09").success
    built.tamper("update orders.stg_orders set country = null where order_date = '2026-01-08'")
    text = failure_of(built.materialize("2026-01-07", "2026-01-09", assets=("fct_orders",)), "fct_orders")
    assert "2026-01-08: fct_orders: 5 rows where country is null" in text
    assert "fine and can run on their own: 2026-01-07, 2026-01-09" in text
    assert built.query("select count(*) from published.fct_orders") == [(20,)]


def test_a_quarantined_input_stops_what_reads_it_and_nothing_else(built: Workspace) -> None:
    values = "(?, ?, 1, true, 'ann', 'sent twice', uuid(), timestamp '2026-01-10 08:30:00')"
    built.tamper(f"insert into platform.quarantines values {values}", "stg_orders", DAY)
    text = failure_of(built.materialize(DAY, assets=("fct_orders", "revenue_daily")), "fct_orders")
    assert f"fct_orders {DAY} may not read its input: stg_orders {DAY} is quarantined by ann" in text
    assert "since 2026-01-10 08:30 UTC (sent twice)" in text
    assert built.materialize(DAY, assets=("revenue_daily",)).success
    verify_readable(built)


@pytest.mark.parametrize(
    ("asked", "sentence", "remedy"),
    [
        (
            ("dagster", "asset", "materialize", "--select", "stg_orders", "--partition-range", "2026-01-05...2099-01-05"),
            "stg_orders 2099-01-05 has not ended yet.",
            "The newest is 2",
        ),
        (("dg", "launch", "--assets", "raw_orders", "--partition", "2099-01-05"), "raw_orders 2099-01-05", "The newest is 2"),
    ],
)
def test_what_no_run_can_make_is_refused_in_a_sentence(
    built: Workspace, asked: tuple[str, ...], sentence: str, remedy: str
) -> None:
    done = built.run(*asked, ORDERS_END_DATE="")
    assert done.returncode == 1
    assert f"error: {sentence}" in done.stderr
    assert remedy in done.stderr.partition("remedy: ")[2]
    assert "Traceback" not in done.stderr + done.stdout
    verify_readable(built)


def test_an_error_of_dagster_that_no_sentence_is_known_for_keeps_its_traceback(built: Workspace) -> None:
    done = built.run(
        "dagster", "asset", "materialize", "--select", "raw_orders", "--partition", DAY, "--partition-range", f"{DAY}...{NEXT}"
    )
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "Use only one" in done.stderr


def test_a_range_that_ends_before_it_begins_is_refused(built: Workspace) -> None:
    assert "The range asked of raw_orders is empty" in failure_of(
        built.materialize("2026-01-08", DAY, assets=("raw_orders",)), "raw_orders"
    )


def test_a_set_up_that_is_interrupted_anywhere_is_completed_by_the_next(tmp_path: Path, workspace: Workspace) -> None:

    workspace.put_days(DAY)
    began = time.monotonic()
    assert workspace.run("orders", "setup", **lakes.environ(tmp_path / "calm")).returncode == 0
    whole = time.monotonic() - began
    environ = lakes.environ(home := tmp_path / "struck")
    for part in (0.4, 0.6, 0.8, 0.9):
        try:
            workspace.run("orders", "setup", timeout=whole * part, **environ)  # killed with -9 at the time-out
        except subprocess.TimeoutExpired:
            continue
    assert workspace.run("orders", "setup", **environ).returncode == 0
    (home / "source.db").write_bytes((workspace.home / "source.db").read_bytes())
    done = workspace.run("dagster", "asset", "materialize", "--select", "raw_orders,stg_orders", "--partition", DAY, **environ)
    assert done.returncode == 0, done.stderr[-2000:]
