"""silent-retries: two attempts fail, the third succeeds, and the run is green."""

import dagster as dg

from orders_platform.drills.drill import Drill, Side
from orders_platform.drills.faults import at_statement, broken_disk
from orders_platform.drills.usual import UsualBuild, orders, revenue
from orders_platform.drills.workspace import Source, Workspace

DAY = "2026-01-20"


def usual(build: UsualBuild) -> Side:
    """Each attempt appends its first batch of orders before the disk fails it."""
    build.put_days(DAY, orders=6)
    with at_statement("insert into orders", broken_disk, 2, 4):
        return side(build, build.materialize([orders, revenue], DAY))


def ours(workspace: Workspace) -> Side:
    """An attempt that fails leaves nothing, and the check `usual` warns of an interval that needed more than two."""
    workspace.put_days(DAY, orders=6)
    with at_statement("insert into orders.fct_orders", broken_disk, 1, 2):
        return side(workspace, workspace.materialize(DAY))


def side(found: Source, result: dg.ExecuteInProcessResult) -> Side:
    """What the green run leaves, and what its checks say of the attempts."""
    warned = [e.asset_key.path[-1] for e in result.get_asset_check_evaluations() if not e.passed and "attempts" in e.metadata]
    return Side.of(
        ("the run is green", True, result.success),
        ("orders of the day", 6, found.count_orders(DAY)),
        ("revenue in EUR", "19.00", found.revenue(DAY)),
        ("warned of for its attempts", "fct_orders", ", ".join(warned) or "nothing"),
    )


DRILL = Drill(
    "A retry hides the failure from everybody, and with it what the failed attempts have left behind.",
    rule=2,
    file="checks/usual.py",
    usual=usual,
    ours=ours,
)
