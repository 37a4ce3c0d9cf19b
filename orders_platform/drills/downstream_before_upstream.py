"""downstream-before-upstream: the day's headline is made before the day's orders are there."""

import dagster as dg
from dagster_duckdb import DuckDBResource

from orders_platform.drills.drill import Drill, Side
from orders_platform.drills.usual import Context, UsualBuild, orders
from orders_platform.drills.workspace import DAILY as CHAIN
from orders_platform.drills.workspace import Source, Workspace
from orders_platform.partitions import DAILY

BEFORE, DAY = "2026-01-19", "2026-01-20"
HEADLINE = """
insert into revenue
select ?, currency, sum(gross - discount) from orders
where order_date = (select max(order_date) from orders) and status = 'paid' group by currency
"""


@dg.asset(partitions_def=DAILY, deps=[orders])
def headline(context: Context, duckdb: DuckDBResource) -> None:
    """The newest revenue, under today's date."""
    with duckdb.get_connection() as con:
        con.execute(HEADLINE, [context.partition_key])


def put(source: Source) -> None:
    """A usual day, and one that sold twice as much."""
    source.put_days(BEFORE, orders=6)
    source.put_days(DAY, orders=6, gross="19.50")


def usual(build: UsualBuild) -> Side:
    """The headline reads the latest day there is; once it is green nobody makes it again."""
    put(build)
    build.materialize([orders], BEFORE)
    build.materialize([headline], DAY)
    early = build.revenue(DAY)
    build.materialize([orders], DAY)
    return side(build, early)


def ours(workspace: Workspace) -> Side:
    """The day's revenue reads the day's orders, or is refused; the error names the day and the command that makes it."""
    put(workspace)
    workspace.materialize(BEFORE)
    workspace.materialize(DAY, assets=("revenue_daily",))
    early = workspace.revenue(DAY)
    workspace.materialize(DAY, assets=CHAIN)
    return side(workspace, early)


def side(found: Source, early: object) -> Side:
    """What a reader is shown under the day's date."""
    return Side.of(
        (f"revenue in EUR shown for {DAY} before its orders came", "none", early),
        (f"revenue in EUR shown for {DAY} after they came", "38.00", found.revenue(DAY)),
    )


DRILL = Drill(
    '"The latest" is yesterday until today has arrived, and a green task is not run again when it does.',
    rule=4,
    file="warehouse/inputs.py",
    usual=usual,
    ours=ours,
)
