"""two-writers: a schedule and a person run the same day at the same time."""

from functools import partial
from multiprocessing.synchronize import Barrier

import dagster as dg

from orders_platform.drills import rivals
from orders_platform.drills.drill import Drill, Side
from orders_platform.drills.faults import FORK, together
from orders_platform.drills.usual import Context, UsualBuild, extract
from orders_platform.drills.workspace import Workspace
from orders_platform.partitions import DAILY

DAY = "2026-01-20"


def replacing(build: UsualBuild, meet: Barrier) -> dg.AssetsDefinition:
    """The day's orders, deleted in one transaction and inserted in the next; the two runs meet between them."""

    @dg.asset(partitions_def=DAILY)
    def orders(context: Context) -> None:
        with rivals.connected(build) as con:
            con.execute("delete from orders where order_date = ?", [context.partition_key])
            meet.wait(rivals.WAIT_SECONDS)
            con.executemany("insert into orders values (?, ?, ?, ?, ?, ?)", extract(context.partition_key))

    return orders


def usual(build: UsualBuild) -> Side:
    """Both find nothing left to delete, and both insert."""
    build.put_days(DAY, orders=6)
    rivals.create(build)
    rivals.run_at_once(build, replacing(build, FORK.Barrier(2)), DAY, DAY)
    return side(*rivals.totals(build))


def ours(workspace: Workspace) -> Side:
    """One swap comes after the other; both are on record, and the second is the current one."""
    workspace.put_days(DAY, orders=6)
    together(*(partial(workspace.materialize, DAY) for _ in range(2)))
    return side(workspace.count_orders(DAY), workspace.revenue(DAY))


def side(orders: int, revenue: object) -> Side:
    """What the two runs leave."""
    return Side.of(
        ("orders of the day", 6, orders),
        ("revenue in EUR", "19.00", revenue),
    )


DRILL = Drill(
    "Delete and insert are two transactions, so both runs can delete before either inserts.",
    rule=2,
    file="warehouse/swap.py",
    usual=usual,
    ours=ours,
)
