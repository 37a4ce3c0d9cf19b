"""The usual build, on the other side of every drill. Belongs here: the same orders, built the way it is usually done.

Not here: anything to copy. Each asset is real and runs in Dagster over DuckDB; what is wrong with it is in its docstring.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import httpx
from dagster_duckdb import DuckDBResource

from orders_platform.drills.workspace import QUIET, Source, execute
from orders_platform.partitions import DAILY, WEEKLY
from orders_platform.settings import settings

BATCH = 3
TABLES = """
create table orders (
  order_date date, order_id varchar, currency varchar, status varchar, gross decimal(18,2), discount decimal(18,2));
create table revenue (order_date date, currency varchar, revenue decimal(18,2));
"""
SUMS = """
select order_date, currency, coalesce(sum(gross - discount) filter (where status in ('paid', 'shipped', 'delivered')), 0)
from orders where order_date = ? group by all
"""
RETRY = dg.RetryPolicy(max_retries=2)
Context = dg.AssetExecutionContext


class Partner(dg.ConfigurableResource[Any]):
    """Where the week's file goes."""

    url: str


def extract(day: str, columns: str = "order_id, currency, status, gross_amount, discount_amount") -> list[tuple[Any, ...]]:
    """The day's rows, from the source as it is now."""
    window = [f"{moment:%Y-%m-%d %H:%M:%S}" for moment in settings().calendar.window(day)]
    with sqlite3.connect(settings().home / "source.db") as con:
        rows = con.execute(f"select {columns} from orders where ordered_at >= ? and ordered_at < ?", window).fetchall()
    con.close()
    return [(day, *row) for row in rows]


@dg.asset(partitions_def=DAILY, retry_policy=RETRY)
def orders(context: Context, duckdb: DuckDBResource) -> None:
    """The day's orders, appended batch by batch as they come: run again, they are there again."""
    with duckdb.get_connection() as con:
        for day in context.partition_keys:
            rows = extract(day)
            for start in range(0, len(rows), BATCH):
                con.executemany("insert into orders values (?, ?, ?, ?, ?, ?)", rows[start : start + BATCH])


@dg.asset(name="orders", partitions_def=DAILY, retry_policy=RETRY)
def replaced_orders(context: Context, duckdb: DuckDBResource) -> None:
    """The day's orders, replaced: better, but deleted in one transaction and inserted in the next."""
    with duckdb.get_connection() as con:
        for day in context.partition_keys:
            con.execute("delete from orders where order_date = ?", [day])
            if rows := extract(day):
                con.executemany("insert into orders values (?, ?, ?, ?, ?, ?)", rows)


@dg.asset(partitions_def=DAILY, deps=[orders], retry_policy=RETRY)
def revenue(context: Context, duckdb: DuckDBResource) -> None:
    """The day's revenue of whatever the table of orders holds at that moment."""
    with duckdb.get_connection() as con:
        for day in context.partition_keys:
            con.execute("delete from revenue where order_date = ?", [day])
            con.execute(f"insert into revenue {SUMS}", [day])


@dg.asset(partitions_def=WEEKLY, deps=[revenue], retry_policy=RETRY)
def weekly_file(context: Context, duckdb: DuckDBResource, partner: Partner) -> None:
    """The week's file, sent from inside the task: whatever is there, once an attempt, under no key."""
    days = settings().calendar.days_of(context.partition_key)
    with duckdb.get_connection() as con:
        rows = con.execute("from revenue where order_date between ? and ? order by all", [days[0], days[-1]]).fetchall()
    text = "\n".join(["order_date,currency,revenue", *(",".join(map(str, row)) for row in rows)])
    httpx.post(partner.url, json={"week": context.partition_key, "csv": text}).raise_for_status()


@dataclass
class UsualBuild(Source):
    """The usual build's source, warehouse and Dagster instance."""

    home: Path
    instance: dg.DagsterInstance
    partner: str = ""
    orders_table = "orders"
    revenue_table = "revenue"

    @property
    def file(self) -> Path:
        """Its warehouse."""
        return self.home / "usual.duckdb"

    def materialize(self, assets: list[Any], first: str, last: str | None = None) -> dg.ExecuteInProcessResult:
        """Run these assets for one interval, or for a range as one run; never raises."""
        resources = {"duckdb": DuckDBResource(database=str(self.file)), "partner": Partner(url=self.partner)}
        definitions = dg.Definitions(assets=assets, resources=resources, executor=dg.in_process_executor)
        return execute(definitions, self.instance, [asset.key for asset in assets], first, last, QUIET)

    def query(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Rows of a statement."""
        # The resource leaves its connection open when an asset fails; DuckDB refuses one of another configuration beside it.
        with DuckDBResource(database=str(self.file)).get_connection() as con:
            rows: list[tuple[Any, ...]] = con.execute(sql, list(parameters)).fetchall()
            return rows


@contextmanager
def usual_build(home: Path) -> Iterator[UsualBuild]:
    """The usual build made under `home`, with an empty source; ORDERS_HOME names it already."""
    settings.cache_clear()
    home.mkdir(parents=True)
    with dg.DagsterInstance.ephemeral() as instance:
        made = UsualBuild(home, instance)
        made.put()
        made.query(TABLES)
        yield made
    settings.cache_clear()
