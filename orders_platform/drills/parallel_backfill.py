"""parallel-backfill: three days are backfilled at the same time."""

from functools import partial
from multiprocessing.synchronize import Barrier

import dagster as dg

from orders_platform.drills import rivals
from orders_platform.drills.drill import Drill, Side
from orders_platform.drills.faults import FORK, together
from orders_platform.drills.usual import Context, UsualBuild, extract
from orders_platform.drills.workspace import Workspace
from orders_platform.partitions import DAILY

DAYS = ("2026-01-19", "2026-01-20", "2026-01-21")


def staging(build: UsualBuild, meet: Barrier) -> dg.AssetsDefinition:
    """The day's orders by way of a staging table, which every run empties and fills; the runs meet after each step."""

    @dg.asset(partitions_def=DAILY)
    def orders(context: Context) -> None:
        with rivals.connected(build) as con:
            con.execute("delete from staging")
            meet.wait(rivals.WAIT_SECONDS)
            con.executemany("insert into staging values (?, ?, ?, ?, ?, ?)", extract(context.partition_key))
            meet.wait(rivals.WAIT_SECONDS)
            con.execute("insert into orders select * from staging")

    return orders


def usual(build: UsualBuild) -> Side:
    """Every day takes all it finds in staging for its own."""
    build.put_days(*DAYS, orders=6)
    rivals.create(build)
    rivals.run_at_once(build, staging(build, FORK.Barrier(len(DAYS))), *DAYS)
    with rivals.connected(build) as con:
        found = con.execute("select order_date, order_id from orders").fetchall()
    return side(*rivals.totals(build), sorted(found) == sorted(row[:2] for day in DAYS for row in extract(day)))


def ours(workspace: Workspace) -> Side:
    """Every run replaces its own days; writers of one warehouse take turns."""
    workspace.put_days(*DAYS, orders=6)
    together(*(partial(workspace.materialize, day) for day in DAYS))
    parallel = workspace.digests()
    for day in DAYS:
        workspace.materialize(day)
    return side(workspace.count_orders(DAYS[0], DAYS[2]), workspace.revenue(DAYS[0], DAYS[2]), workspace.digests() == parallel)


def side(orders: int, revenue: object, same: bool) -> Side:
    """What is there after the backfill."""
    return Side.of(
        ("orders of the three days", 18, orders),
        ("their revenue in EUR", "57.00", revenue),
        ("the same as one day after the other", True, same),
    )


DRILL = Drill(
    "Runs that share a staging table, or a range, take one another's rows for their own.",
    rule=2,
    file="warehouse/session.py",
    usual=usual,
    ours=ours,
)
