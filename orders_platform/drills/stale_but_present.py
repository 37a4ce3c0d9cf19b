"""stale-but-present: orders of a past day are replaced, and revenue is still there."""

from orders_platform.drills.drill import Drill, Side
from orders_platform.drills.usual import UsualBuild, replaced_orders, revenue
from orders_platform.drills.workspace import Source, Workspace

DAYS = ("2026-01-19", "2026-01-20", "2026-01-21")
DAY = DAYS[1]


def correct(source: Source) -> None:
    """The shop doubles an order of a past day."""
    source.sql_source("update orders set gross_amount = '19.50' where order_id = ?", f"{DAY}-2")


def usual(build: UsualBuild) -> Side:
    """Whoever looks asks Dagster which days of revenue are missing; none is, so none is run."""
    build.put_days(*DAYS, orders=6)
    build.materialize([replaced_orders, revenue], DAYS[0], DAYS[-1])
    correct(build)
    build.materialize([replaced_orders], DAY)
    wrong = [day for day in DAYS if day not in build.instance.get_materialized_partitions(revenue.key)]
    for day in wrong:
        build.materialize([revenue], day)
    return side(build, wrong)


def ours(workspace: Workspace) -> Side:
    """A day is current when its inputs still have the content it was made from; the repair goes by that."""
    workspace.put_days(*DAYS, orders=6)
    workspace.materialize(DAYS[0], DAYS[-1])
    correct(workspace)
    workspace.materialize(DAY, assets=("raw_orders", "stg_orders", "fct_orders"))
    wrong = [
        interval for (asset, interval), state in workspace.states().items() if (asset, state) == ("revenue_daily", "stale")
    ]
    workspace.repair("revenue_daily", *wrong, reason="its orders were replaced")
    return side(workspace, wrong)


def side(found: Source, wrong: list[str]) -> Side:
    """What is known to need another run, and what a reader sees after it."""
    return Side.of(
        ("days of revenue known to be out of date", DAY, ", ".join(wrong) or "none"),
        ("revenue in EUR of the corrected day", "28.50", found.revenue(DAY)),
        ("revenue in EUR of the day after it", "19.00", found.revenue(DAYS[2])),
    )


DRILL = Drill(
    "That something is there does not say what it was made from, so only what is missing is ever run again.",
    rule=4,
    file="recovery/states.py",
    usual=usual,
    ours=ours,
)
