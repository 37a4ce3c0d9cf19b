"""What the tests of the checks share: reading evaluations off a run, and running checks without their assets."""

from typing import Any

import dagster as dg

from orders_platform.checks.tables import tables_of
from orders_platform.definitions import ASSETS, defs
from orders_platform.recovery.reconcile import Line, Reconciler
from orders_platform.source.reader import reader_of
from tests.conftest import DAILY, Workspace

ALL_DAILY = (*DAILY, "revenue_to_date", "customer_features")
WEEK = tuple(f"2026-01-{day:02d}" for day in range(5, 12))
TABLES = tables_of(ASSETS)


def failed(result: dg.ExecuteInProcessResult) -> set[tuple[str, str, str]]:
    """(asset, check, interval) of every evaluation against an interval; those of whole tables are left out."""
    found = result.get_asset_check_evaluations()
    return {(e.asset_key.path[-1], e.check_name, e.partition) for e in found if e.partition and not e.passed}


def judged(result: dg.ExecuteInProcessResult, asset: str, check: str) -> dict[str, dg.AssetCheckEvaluation]:
    found = result.get_asset_check_evaluations()
    return {e.partition: e for e in found if e.partition and e.asset_key.path[-1] == asset and e.check_name == check}


def text(evaluation: dg.AssetCheckEvaluation, name: str) -> str:
    return str(evaluation.metadata[name].value)


def check(
    workspace: Workspace, first: str, last: str | None = None, assets: tuple[str, ...] = DAILY
) -> dg.ExecuteInProcessResult:
    """Run the checks of these assets alone."""
    keys = {
        dg.AssetCheckKey(dg.AssetKey(asset), name)
        for asset in assets
        for name in ("reconciles", "usual", *(("arrived",) if asset == "raw_orders" else ()))
    }
    job = defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection=set(), asset_check_selection=keys)
    tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
    if last is None:
        tags = {"dagster/partition": first}
    return job.execute_in_process(tags=tags, instance=workspace.instance, raise_on_error=False)


def reconcile(workspace: Workspace, *days: str, source: bool = False, single: bool = False) -> dict[tuple[str, str], Line]:
    """Every line of `orders reconcile` over the days, in this process."""
    values = workspace.settings
    work = Reconciler(workspace.warehouse, TABLES, values, reader_of(values) if source else None)
    steps = work.steps(work.expected(days, values.calendar, is_single=single))
    return {(line.asset, line.interval): line for line in work.run(steps, lambda: None)}


def divergent(lines: dict[tuple[str, str], Line]) -> set[tuple[str, str]]:
    assert {line.verdict for line in lines.values()} <= {"match", "divergent"}
    return {pair for pair, line in lines.items() if line.verdict == "divergent"}


def steps_that_ran(result: dg.ExecuteInProcessResult) -> set[str]:
    return {str(event.step_key) for event in result.all_events if event.is_step_start}


def verdicts(workspace: Workspace, asset: str, interval: str) -> dict[str, Any]:
    rows = workspace.query(
        'select check_name, passed from platform.verdicts where asset = ? and "interval" = ? order by attempt', asset, interval
    )
    return dict(rows)
