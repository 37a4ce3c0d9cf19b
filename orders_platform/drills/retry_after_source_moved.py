"""retry-after-source-moved: between two attempts of a run, the source changes."""

from datetime import UTC, datetime

import dagster as dg
from dagster_duckdb import DuckDBResource

from orders_platform.automation.alarms import corrections
from orders_platform.drills.drill import Drill, Side
from orders_platform.drills.faults import at_statement, broken_disk
from orders_platform.drills.usual import RETRY, SUMS, Context, UsualBuild, extract, orders
from orders_platform.drills.workspace import Source, Workspace
from orders_platform.partitions import DAILY
from orders_platform.source.reader import reader_of

DAY = "2026-01-20"


@dg.asset(partitions_def=DAILY, deps=[orders], retry_policy=RETRY)
def revenue(context: Context, duckdb: DuckDBResource) -> None:
    """Revenue from the source itself, because that is always the newest."""
    day = context.partition_key
    with duckdb.get_connection() as con:
        con.execute("create temp table orders as from main.orders limit 0")
        con.executemany("insert into temp.orders values (?, ?, ?, ?, ?, ?)", extract(day))
        con.execute(f"insert into revenue {SUMS.replace('from orders', 'from temp.orders')}", [day])


def fail_and_move(source: Source) -> None:
    """The disk fails, and before the second attempt the shop corrects an order."""
    source.sql_source(
        "update orders set gross_amount = '99.00', updated_at = '2026-01-22 08:00:00' where order_id = ?", f"{DAY}-2"
    )
    broken_disk()


def usual(build: UsualBuild) -> Side:
    """Both tables read the source, each when it runs."""
    build.put_days(DAY, orders=6)
    with at_statement("insert into revenue", lambda: fail_and_move(build)):
        said = build.materialize([orders, revenue], DAY).get_asset_check_evaluations()
    return side(build, "gross - discount", len(said))


def ours(workspace: Workspace) -> Side:
    """The source is read once, into a file; both tables are made from the file."""
    workspace.put_days(DAY, orders=6)
    with at_statement("insert into orders.revenue_daily", lambda: fail_and_move(workspace)):
        workspace.materialize(DAY)
    moved = corrections(workspace.world(), reader_of(workspace.settings), datetime.now(UTC))
    return side(workspace, "net_amount", len(moved))


def side(found: Source, net: str, noticed: int) -> Side:
    """Whether the two tables agree, and whether anybody knows that the source moved."""
    total = f"select sum({net}) from {found.orders_table} where currency = 'EUR' and status = 'paid'"
    return Side.of(
        ("revenue in EUR by the table of orders", "19.00", found.value(total)),
        ("revenue in EUR by the table of revenue", "19.00", found.revenue(DAY)),
        ("days whose source is known to have moved", 1, noticed),
    )


DRILL = Drill(
    "Two tables of one day are made from two different sources: what was there before the failure, and what is there now.",
    rule=1,
    file="assets/raw_orders.py",
    usual=usual,
    ours=ours,
)
