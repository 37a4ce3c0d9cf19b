"""depends-on-past: a past day of a running balance is corrected and run again."""

import dagster as dg
from dagster_duckdb import DuckDBResource

from orders_platform.drills.drill import Drill, Side
from orders_platform.drills.usual import Context, UsualBuild, replaced_orders, revenue
from orders_platform.drills.workspace import DAILY as CHAIN
from orders_platform.drills.workspace import Source, Workspace
from orders_platform.partitions import DAILY

DAYS = ("2026-01-05", "2026-01-06", "2026-01-07")
ADD = """
insert into balance select order_date, revenue + coalesce((select balance from balance order by order_date desc limit 1), 0)
from revenue where order_date = ? and currency = 'EUR'
"""


@dg.asset(partitions_def=DAILY, deps=[revenue])
def balance(context: Context, duckdb: DuckDBResource) -> None:
    """The latest balance, and the day's revenue on top of it."""
    with duckdb.get_connection() as con:
        con.execute("create table if not exists balance (order_date date, balance decimal(18,2))")
        con.execute("delete from balance where order_date = ?", [context.partition_key])
        con.execute(ADD, [context.partition_key])


def correct(source: Source) -> None:
    """The shop doubles an order of the first day."""
    source.sql_source("update orders set gross_amount = '19.50' where order_id = ?", f"{DAYS[0]}-2")


def usual(build: UsualBuild) -> Side:
    """The corrected day is run again, and so it is added to the newest balance."""
    build.put_days(*DAYS, orders=6)
    for day in DAYS:
        build.materialize([replaced_orders, revenue, balance], day)
    correct(build)
    build.materialize([replaced_orders, revenue, balance], DAYS[0])
    return side([row[0] for row in build.query("select balance from balance order by order_date")])


def ours(workspace: Workspace) -> Side:
    """A day's balance reads the balance of the day before it; a corrected day makes the later ones stale."""
    workspace.put_days(*DAYS, orders=6)
    workspace.materialize(DAYS[0], DAYS[2], assets=(*CHAIN, "revenue_to_date"))
    correct(workspace)
    workspace.repair("raw_orders", DAYS[0], reason="the shop corrected an order")
    balances = "select revenue_to_date from published.revenue_to_date where currency = 'EUR' order by order_date"
    return side([row[0] for row in workspace.query(balances)])


def side(balances: list[object]) -> Side:
    """The balance at the end of each day."""
    right = ("28.50", "47.50", "66.50")
    return Side.of(
        *((f"balance in EUR of {day}", *pair) for day, pair in zip(DAYS, zip(right, balances, strict=True), strict=True))
    )


DRILL = Drill(
    '"The latest balance" depends on when the task runs, not on the day it runs for.',
    rule=1,
    file="assets/revenue_to_date.py",
    usual=usual,
    ours=ours,
)
