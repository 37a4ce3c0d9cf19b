"""mark-success: a day fails, somebody marks it as materialized, and the week goes out."""

import dagster as dg

from orders_platform.drills.drill import Drill, Side
from orders_platform.drills.faults import at_statement, broken_disk
from orders_platform.drills.partner import WebhookPartner
from orders_platform.drills.usual import UsualBuild, orders, revenue, weekly_file
from orders_platform.drills.week import DAYS, WEEK, deliver, partner
from orders_platform.drills.workspace import Workspace

BAD = DAYS[3]


def mark(instance: dg.DagsterInstance, *assets: str) -> None:
    """What the UI's "Report materialization" does."""
    for asset in assets:
        instance.report_runless_asset_event(dg.AssetMaterialization(asset, partition=BAD))


def usual(build: UsualBuild) -> Side:
    """The week's file is sent when Dagster says that all seven days are materialized."""
    build.put_days(*DAYS, orders=6)
    with partner(build) as there:
        with at_statement("insert into orders", broken_disk, 1, 2, 3):
            build.materialize([orders, revenue], BAD)
        build.materialize([orders, revenue], DAYS[0], DAYS[2])
        build.materialize([orders, revenue], DAYS[4], DAYS[6])
        mark(build.instance, "orders", "revenue")
        if build.instance.get_materialized_partitions(revenue.key) >= set(DAYS):
            build.materialize([weekly_file], WEEK)
        early, missing = there.done.total(), set(DAYS) - build.instance.get_materialized_partitions(revenue.key)
        return side(there, early, len(missing))


def ours(workspace: Workspace) -> Side:
    """A mark is a claim; what may be read are publications, and the day has none."""
    workspace.put_days(*DAYS, orders=6)
    with partner(workspace) as there:
        workspace.materialize(DAYS[0], DAYS[2])
        workspace.materialize(DAYS[4], DAYS[6])
        workspace.materialize(BAD, assets=("raw_orders", "stg_orders"))
        mark(workspace.instance, "fct_orders", "revenue_daily")
        deliver(workspace)
        early = there.done.total()
        claimed = [pair for pair, state in workspace.states().items() if (pair[0], state) == ("revenue_daily", "claimed")]
        workspace.repair("fct_orders", BAD, reason="it was marked, and never made")
        deliver(workspace)
        return side(there, early, len(claimed))


def side(there: WebhookPartner, early: int, found: int) -> Side:
    """What the partner holds, and who knows."""
    return Side.of(
        ("files sent while a day has no data", 0, early),
        ("days of revenue known to be missing", 1, found),
        ("revenue in EUR in the partner's books", "133.00", there.books("EUR")),
    )


DRILL = Drill(
    "A mark only says that code ran; what is built on it takes the hole for a day without sales.",
    rule=4,
    file="recovery/states.py",
    usual=usual,
    ours=ours,
)
