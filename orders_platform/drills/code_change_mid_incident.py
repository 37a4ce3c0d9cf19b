"""code-change-mid-incident: a day fails, new code is deployed, and the day is repaired by the new code."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import dagster as dg
from dagster_duckdb import DuckDBResource

import orders_platform
from orders_platform.cli.audit import evidence_of
from orders_platform.drills.drill import Drill, Side
from orders_platform.drills.faults import at_statement, broken_disk, killed_at
from orders_platform.drills.usual import SUMS, Context, UsualBuild, orders, revenue
from orders_platform.drills.workspace import QUIET, Workspace, opened
from orders_platform.partitions import DAILY
from orders_platform.recovery.audit import audit
from orders_platform.settings import settings

DAYS = ("2026-01-19", "2026-01-20", "2026-01-21")
OLD, NEW = "('paid', 'shipped', 'delivered')", "('paid', 'shipped', 'delivered', 'cancelled')"
"""The change: the cancelled order of each day counts, so that a day's revenue is 28.50 and not 19.00."""


@dg.asset(name="revenue", partitions_def=DAILY)
def new_revenue(context: Context, duckdb: DuckDBResource) -> None:
    """The usual revenue, as the new code computes it."""
    with duckdb.get_connection() as con:
        con.execute(f"insert into revenue {SUMS.replace(OLD, NEW)}", [context.partition_key])


def usual(build: UsualBuild) -> Side:
    """The day that failed is run again; nobody can tell which days the old code made."""
    build.put_days(*DAYS, orders=6)
    for day in DAYS[:2]:
        build.materialize([orders, revenue], day)
    with at_statement("insert into revenue", broken_disk, 1, 2, 3):
        build.materialize([orders, revenue], DAYS[2])
    build.materialize([new_revenue], DAYS[2])
    events = build.instance.fetch_materializations(revenue.key, limit=10).records
    made = [event.asset_materialization for event in events]
    codes = {(item.tags or {})["dagster/code_version"] for item in made if item}
    return side(len(codes), build.revenue(DAYS[0], DAYS[2]))


def ours(workspace: Workspace) -> Side:
    """Every publication names its code, the audit names the days of the older one, and the repair is one command."""
    workspace.put_days(*DAYS, orders=6)
    workspace.materialize(DAYS[0], DAYS[1])
    killed_at("insert into orders.fct_orders", lambda: workspace.materialize(DAYS[2]))
    deployed = workspace.home / "deployed"
    copy = deployed / "orders_platform"
    shutil.copytree(Path(orders_platform.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    changed = copy / "assets" / "fct_orders.py"
    changed.write_text(changed.read_text().replace(OLD, NEW))
    command = [sys.executable, "-c", f"import {__name__} as drill; drill.after_deployment()"]
    environ = {**os.environ, "PYTHONPATH": str(deployed)}
    done = subprocess.run(command, cwd=deployed, env=environ, stdout=subprocess.PIPE, text=True, check=True)
    return side(**json.loads(done.stdout.splitlines()[-1]))


def after_deployment() -> None:
    """In a process of the new code: run the day that failed, then repair what the audit names."""
    with opened(settings().home, QUIET) as workspace:
        workspace.materialize(DAYS[2])
        codes = workspace.value(
            "select count(distinct code_version) from platform.current_publications where asset = 'fct_orders'"
        )
        found = audit(evidence_of(workspace.world()))
        (mixed,) = (finding for finding in found if (finding.finding, finding.asset) == ("mixed code", "fct_orders"))
        workspace.repair("fct_orders", mixed.remedy.split()[3], reason="made by older code")
        print(json.dumps({"codes": codes, "revenue": str(workspace.revenue(DAYS[0], DAYS[2]))}))


def side(codes: int, revenue: Any) -> Side:
    """Which codes are on record before the repair, and the revenue after it."""
    return Side.of(
        ("codes on record for the three days, of two", 2, codes),
        ("revenue in EUR of the three days, by the new code", "85.50", revenue),
    )


DRILL = Drill(
    "Without a code version Dagster takes the run for one, so days of two different formulas look alike.",
    rule=6,
    file="recovery/audit.py",
    usual=usual,
    ours=ours,
)
