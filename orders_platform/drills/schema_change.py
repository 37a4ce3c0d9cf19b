"""schema-change: the shop's new exporter swaps two columns, and writes text into an amount."""

import dagster as dg
from dagster_duckdb import DuckDBResource

from orders_platform.drills.drill import Drill, Side
from orders_platform.drills.usual import Context, UsualBuild, extract, revenue
from orders_platform.drills.workspace import Source, Workspace
from orders_platform.partitions import DAILY

DAY = "2026-01-20"
KEEP = "order_id, customer_id, ordered_at, updated_at, country, currency, status"
CASTS = "?, ?, ?, ?, try_cast(? as decimal(18,2)), try_cast(? as decimal(18,2))"


@dg.asset(partitions_def=DAILY)
def orders(context: Context, duckdb: DuckDBResource) -> None:
    """All columns of the source in the source's order, into all columns of the table in the table's."""
    rows = [(*row[:2], *row[6:]) for row in extract(context.partition_key, "*")]
    with duckdb.get_connection() as con:
        con.executemany(f"insert into orders values ({CASTS})", rows)


def change(source: Source) -> None:
    """The same rows with two columns swapped, and one order more, whose amount is no number."""
    source.put_days(DAY, orders=6)
    source.sql_source(f"create table new as select {KEEP}, discount_amount, gross_amount from orders")
    source.sql_source("drop table orders")
    source.sql_source("alter table new rename to orders")
    others = KEEP.removeprefix("order_id, ")
    source.sql_source(f"insert into orders select 'text', {others}, '0.50', 'n/a' from orders where order_id = ?", f"{DAY}-2")


def usual(build: UsualBuild) -> Side:
    """Both columns are numbers, so nothing complains; what is no number becomes nothing."""
    change(build)
    build.materialize([orders, revenue], DAY)
    others = "select count(*) from information_schema.tables where table_name not in ('orders', 'revenue')"
    return side(build, build.value("select count(*) from orders where gross is null or discount is null"), build.value(others))


def ours(workspace: Workspace) -> Side:
    """Columns are asked for and inserted by name; a row that cannot be typed is put aside with its reasons."""
    change(workspace)
    workspace.materialize(DAY)
    aside = workspace.value("select count(*) from published.stg_orders_rejected where len(reasons) > 0")
    untyped = workspace.value("select count(*) from published.fct_orders where net_amount is null")
    return side(workspace, untyped, aside)


def side(found: Source, untyped: int, aside: int) -> Side:
    """What became of the seven rows."""
    return Side.of(
        ("revenue in EUR", "19.00", found.revenue(DAY)),
        ("orders without an amount", 0, untyped),
        ("rows put aside with a reason", 1, aside),
    )


DRILL = Drill(
    "Columns are matched by their place, and two columns of numbers fit each other's place.",
    rule=3,
    file="assets/stg_orders.py",
    usual=usual,
    ours=ours,
)
