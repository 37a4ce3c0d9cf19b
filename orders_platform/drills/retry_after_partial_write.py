"""retry-after-partial-write: killed half way through its writing, and run again."""

from orders_platform.drills.drill import Drill, Side
from orders_platform.drills.faults import killed_at
from orders_platform.drills.usual import UsualBuild, orders, revenue
from orders_platform.drills.workspace import Source, Workspace

BEFORE, DAY = "2026-01-19", "2026-01-20"


def usual(build: UsualBuild) -> Side:
    """Orders are appended in batches; the process dies after the first."""
    build.put_days(BEFORE, DAY, orders=6)
    build.materialize([orders, revenue], BEFORE)
    killed_at("insert into orders", lambda: build.materialize([orders, revenue], DAY), number=2)
    seen = build.count_orders(DAY)
    build.materialize([orders, revenue], DAY)
    return side(build, seen)


def ours(workspace: Workspace) -> Side:
    """The process dies between the delete and the insert of the day's swap."""
    workspace.put_days(BEFORE, DAY, orders=6)
    workspace.materialize(BEFORE)
    killed_at("insert into orders.fct_orders", lambda: workspace.materialize(DAY))
    seen = workspace.count_orders(DAY)
    workspace.materialize(DAY)
    return side(workspace, seen)


def side(found: Source, seen: int) -> Side:
    """What a reader sees."""
    return Side.of(
        ("orders read after the kill", 0, seen),
        ("orders after the second run", 6, found.count_orders(DAY)),
        ("revenue in EUR", "19.00", found.revenue(DAY)),
    )


DRILL = Drill(
    "What the first attempt had committed stays, and the second attempt adds to it.",
    rule=2,
    file="warehouse/swap.py",
    usual=usual,
    ours=ours,
)
