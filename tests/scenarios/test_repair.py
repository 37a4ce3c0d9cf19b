"""A task failed mid-graph: what it touched, a repair of exactly that, and the proof that it is right again. Real Dagster."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.reconstruct import ReconstructableRepository

from orders_platform.automation.finance_delivery_sensor import decision_now
from orders_platform.automation.repair import Request, carry_out, plan_of
from orders_platform.checks.tables import tables_of
from orders_platform.definitions import ASSETS, defs
from orders_platform.errors import OrdersError
from orders_platform.recovery import dagster_facts, interventions
from orders_platform.recovery.closure import closure
from orders_platform.recovery.dagster_facts import INTERVENTION_TAG, World
from orders_platform.recovery.repair import Outcome
from orders_platform.warehouse.publications import Pair
from orders_platform.warehouse.swap import Swap
from tests.conftest import DAILY, PROJECT, Workspace, failure_of
from tests.copies import fixtures

DAYS = tuple(f"2026-01-{day:02d}" for day in range(5, 12))
DAY = DAYS[2]
WEEK = DAYS[0]
CHAIN = (*DAILY, "revenue_to_date", "customer_features")
CORRECTION = "update orders set gross_amount = '11.00' where order_id = ?", f"{DAY}-1"


def build(workspace: Workspace) -> None:
    workspace.put_days(*DAYS)
    assert workspace.materialize(DAYS[0], DAYS[-1], assets=CHAIN).success
    assert workspace.materialize(WEEK, assets=("finance_export",)).success


template, built = fixtures(build)


def world(workspace: Workspace) -> World:
    return World.of(defs.get_repository_def(), workspace.instance)


def states(workspace: Workspace) -> dict[Pair, str]:
    return {pair: state.name for pair, state in world(workspace).look()[1].items()}


def repair(workspace: Workspace, asset: str, *intervals: str, **options: Any) -> Outcome:
    request = Request(asset, intervals, options.pop("reason", "a test"), "ada", **options)
    there = world(workspace)
    return carry_out(there, request, plan_of(there, request), tables_of(ASSETS))[1]


@contextmanager
def broken(monkeypatch: pytest.MonkeyPatch, asset: str, interval: str) -> Iterator[None]:
    """The swap of this (asset, interval) fails before it commits, as a constraint would."""
    real = Swap._write

    def failing(self: Swap, *args: Any) -> Any:
        made = real(self, *args)
        if self.outputs[0].table == asset and interval in self.intervals:
            raise OrdersError(f"{asset} {interval} is broken.", "Mend it.")
        return made

    with monkeypatch.context() as patch:
        patch.setattr(Swap, "_write", failing)
        yield


def revisions(workspace: Workspace) -> dict[Pair, int]:
    return {pair: p.revision for pair, p in workspace.current().items()}


def test_a_day_that_failed_on_its_first_run_is_repaired_with_all_that_never_ran_because_of_it(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.put_days(*DAYS[:4])
    with broken(monkeypatch, "fct_orders", DAY):
        for day in DAYS[:4]:
            workspace.materialize(day, assets=CHAIN)
    graph, now = world(workspace).graph, states(workspace)
    never = {
        p
        for p in closure(graph, [("fct_orders", DAY)])
        if now.get(p) == "missing" and p[0] != "finance_export" and p[1] <= DAYS[3]
    }
    assert never == {
        ("fct_orders", DAY), ("customer_features", DAY), ("customer_features", DAYS[3]), ("revenue_daily", DAY),
        ("revenue_to_date", DAY), ("revenue_to_date", DAYS[3]),
    }  # fmt: skip
    outcome = repair(workspace, "fct_orders", DAY)
    assert (set(outcome.repaired), outcome.failed) == (never, {})
    assert outcome.waiting["finance_export", WEEK] == f"revenue_daily {DAYS[4]} is missing"


def test_a_rerun_with_identical_content_leaves_nothing_stale_and_the_repair_stops_at_once(built: Workspace) -> None:
    assert built.materialize(DAY).success
    assert "stale" not in states(built).values()
    before = revisions(built)
    outcome = repair(built, "stg_orders", DAY)
    assert outcome.repaired == [("stg_orders", DAY)]
    assert {p for p, r in revisions(built).items() if r != before[p]} == {("stg_orders", DAY), ("stg_orders_rejected", DAY)}


def test_seven_days_with_one_quarantined_are_six_repaired_and_one_held(built: Workspace) -> None:
    held = DAYS[4]
    with built.warehouse.write("a test") as con:
        interventions.quarantine(con, [("revenue_daily", held)], "ada", "wrong currency")
    outcome = repair(built, "revenue_daily", f"{DAYS[0]}...{DAYS[-1]}")
    mine = [p for p in outcome.repaired if p[0] == "revenue_daily"], [p for p in outcome.held if p[0] == "revenue_daily"]
    assert (len(mine[0]), mine[1]) == (6, [("revenue_daily", held)])
    assert built.query("select count(*) from published.revenue_daily where order_date = ?::date", held) == [(0,)]
    assert not built.materialize(WEEK, assets=("finance_export",)).success
    assert states(built)["finance_export", WEEK] == "held"


def test_the_runs_of_a_repair_carry_its_tag_and_the_intervention_its_plan_and_outcome(built: Workspace) -> None:
    repair(built, "fct_orders", DAY, reason="because")
    with built.warehouse.read() as con:
        (made,) = interventions.recorded(con, "repair")
    assert (made.who, made.reason, made.outcome.split(",")[0]) == ("ada", "because", "1 repaired")
    assert made.details["rows"] > 0 and made.details["estimated_seconds"] > 0
    runs = built.instance.get_runs(dg.RunsFilter(tags={INTERVENTION_TAG: made.intervention_id}))
    assert {key.path[-1] for run in runs for key in run.asset_selection or ()} >= {"fct_orders"}
    assert all(run.is_success for run in runs)
    assert {i.kind for i in dagster_facts.by_hand(built.instance)} == {"launch"}


def test_marking_success_is_seen_named_and_cleared_only_by_making_it(built: Workspace) -> None:
    for asset in ("revenue_daily", "fct_orders"):
        built.instance.report_runless_asset_event(dg.AssetMaterialization(asset, partition=DAY))
    now = states(built)
    assert (now["revenue_daily", DAY], now["fct_orders", DAY]) == ("claimed", "claimed")
    assert now["finance_export", WEEK] == "stale"
    marks = [i for i in dagster_facts.by_hand(built.instance) if i.kind == "mark"]
    assert {(i.asset, i.intervals, i.reason) for i in marks} == {
        (a, (DAY,), "no reason given") for a in ("revenue_daily", "fct_orders")
    }
    audit = built.run("orders", "audit", "--json")
    assert audit.returncode == 1
    found = {
        (f["finding"], f["asset"], f["interval"]) for f in json.loads(audit.stdout) if f["finding"] == "claim without data"
    }
    assert found == {("claim without data", "revenue_daily", DAY), ("claim without data", "fct_orders", DAY)}
    assert repair(built, "fct_orders", DAY).is_good
    assert set(states(built).values()) - {"missing"} == {"current"}


def test_what_is_marked_is_not_exported_and_not_sent(built: Workspace) -> None:
    assert built.materialize(WEEK, assets=("finance_export",)).success
    built.instance.report_runless_asset_event(dg.AssetMaterialization("revenue_daily", partition=DAY))
    refused = failure_of(built.materialize(WEEK, assets=("finance_export",)), "finance_export")
    assert f"may not read revenue_daily {DAY}: marked as materialized, and not made since" in refused
    built.instance.report_runless_asset_event(dg.AssetMaterialization("raw_orders", partition=DAYS[3]))
    waits = decision_now(built.instance, datetime(2026, 3, 1, tzinfo=UTC)).waiting[WEEK]
    assert f"revenue_daily {DAY} was marked as materialized" in waits
    assert f"raw_orders {DAYS[3]} was marked as materialized" in waits
    unsent = failure_of(built.materialize(WEEK, assets=("finance_delivery",)), "finance_delivery")
    assert f"revenue_daily {DAY} was marked as materialized, and not made since" in unsent
    assert not (built.home / "outbox").exists()


def test_recapture_lands_the_source_again_and_repairs_from_there(built: Workspace) -> None:
    built.sql_source("update orders set gross_amount = '99.00' where order_id = ?", f"{DAY}-1")
    assert repair(built, "fct_orders", DAY).repaired == [("fct_orders", DAY)]
    outcome = repair(built, "fct_orders", DAY, recapture=True)
    assert {a for a, _ in outcome.repaired} == {
        "raw_orders",
        "stg_orders",
        "fct_orders",
        "customer_features",
        "revenue_daily",
        "finance_export",
        "revenue_to_date",
    }
    assert built.query("select gross_amount::varchar from published.fct_orders where order_id = ?", f"{DAY}-1") == [("99.00",)]


def test_killed_in_the_middle_and_run_again_it_continues_in_several_processes(built: Workspace) -> None:
    built.sql_source("update orders set gross_amount = '12.00'")
    command = [
        str(Path(sys.executable).with_name("orders")),
        "repair",
        "raw_orders",
        f"{DAYS[0]}...{DAYS[-1]}",
        "--reason",
        "moved",
        "--yes",
        "--concurrency",
        "2",
    ]
    process = subprocess.Popen(
        command,
        cwd=PROJECT,
        env=built.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        made = built.query("select count(*) from platform.publications where asset = 'stg_orders' and revision = 2")
        if made[0][0]:
            break
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    half = revisions(built)
    assert any(s == "stale" for s in states(built).values())
    again = built.run(*["orders", *command[1:]])
    assert again.returncode == 0, again.stdout + again.stderr
    assert "continuing intervention" in again.stdout
    assert set(states(built).values()) - {"missing"} == {"current"}
    raw = {p: r for p, r in revisions(built).items() if p[0] == "raw_orders"}
    assert raw == dict.fromkeys(raw, 2) and all(half[p] == 2 for p in raw)


def test_the_repair_job_does_the_same_from_the_ui(built: Workspace) -> None:
    job = ReconstructableRepository.for_module(*dagster_facts.DEFINITIONS).get_reconstructable_job("repair")

    def launch(**config: Any) -> bool:
        given = {"asset": "raw_orders", "intervals": [DAY], "reason": "from the UI", **config}
        found = dg.execute_job(job, built.instance, {"ops": {"repair_closure": {"config": given}}}, tags={"user": "grace"})
        return found.success

    built.sql_source(*CORRECTION)
    before = revisions(built)
    assert not launch(reason=" ")
    assert launch(dry_run=True)
    assert revisions(built) == before
    assert launch()
    assert states(built)["revenue_to_date", DAYS[-1]] == "current"
    assert built.query("select gross_amount::varchar from published.fct_orders where order_id = ?", f"{DAY}-1") == [("11.00",)]
    with built.warehouse.read() as con:
        assert [(i.who, i.reason) for i in interventions.recorded(con)] == [("grace", "from the UI")]
