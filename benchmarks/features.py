"""Features of 100,000 customers over 365 days, beside the bare DuckDB query for them. Belongs here: this one comparison.

    python -m benchmarks.features --customers 100000 --days 365 --orders 5000

The facts are published through the platform's own swap; the bare query reads the same facts and writes the same rows.
"""

import os
import shutil
import sys
from datetime import date, timedelta
from pathlib import Path

import click
import duckdb
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Cost, run

FIRST = date(2024, 1, 1)
FACTS = """
    with drawn as (
        select date '{first}' + day::integer as order_date, i, hash(day, i) as h from range({days}) a(day), range({orders}) b(i)
    )
    select
        order_date,
        'L' || strftime(order_date, '%Y%m%d') || '-' || lpad(i::varchar, 7, '0') as order_id,
        'C' || lpad((h % {customers})::varchar, 7, '0') as customer_id,
        ['GB', 'DE', 'FR', 'US'][1 + ((h >> 20) % 4)::integer] as country,
        ['GBP', 'EUR', 'USD'][1 + ((hash(h % {customers})) % 3)::integer] as currency,
        ['placed', 'paid', 'shipped', 'delivered', 'cancelled'][1 + ((h >> 30) % 5)::integer] as status,
        ((500 + (h >> 40) % 25000)::decimal(18,0) * 0.01)::decimal(18,2) as gross_amount,
        0::decimal(18,2) as discount_amount,
        gross_amount as net_amount,
        status in ('paid', 'shipped', 'delivered') as is_revenue
    from drawn
"""
PREPARE = """
import sys
from orders_platform.assets.fct_orders import CONTRACT
from orders_platform.cli.setup import prepare
from orders_platform.settings import settings
from orders_platform.warehouse.session import Warehouse
from orders_platform.warehouse.swap import Swap
from orders_platform.warehouse.tables import Output
values = settings()
prepare(values)
first, days, sql = sys.argv[1], int(sys.argv[2]), sys.argv[3]
from datetime import date, timedelta
intervals = [(date.fromisoformat(first) + timedelta(n)).isoformat() for n in range(days)]
facts = Output("fct_orders", CONTRACT, sql)
with Warehouse.from_settings(values).write("the benchmark") as con:
    Swap([facts], intervals, [], "benchmark", "benchmark", values.calendar, values.landing_root).run(con)
"""
BARE = """
import sys, duckdb
source, target, sql, threads, memory = sys.argv[1:]
con = duckdb.connect(target)
con.execute("set enable_progress_bar = false")
con.execute(f"set threads = {threads}")
con.execute(f"set memory_limit = '{memory}'")
con.execute(f"attach '{source}' as source (read_only)")
con.execute("create view fct_orders as from source.orders.fct_orders")
first, days = con.execute("select min(order_date), count(distinct order_date) from fct_orders").fetchone()
con.execute(f"create view run_intervals as select date '{first}' + i::integer as interval_date from range({days}) t(i)")
con.execute("create table customer_features as " + sql)
print(con.execute("select count(*) from customer_features").fetchone()[0])
con.close()
"""


@click.command()
@click.option("--customers", default=100_000, show_default=True)
@click.option("--days", default=365, show_default=True)
@click.option("--orders", default=5_000, show_default=True, help="Orders a day.")
@click.option("--threads", default=2, show_default=True)
@click.option("--memory", default="4GB", show_default=True, help="DuckDB's memory_limit, for both.")
@click.option("--work", type=click.Path(path_type=Path), default=Path("benchmarks/work/features"), show_default=True)
def main(customers: int, days: int, orders: int, threads: int, memory: str, work: Path) -> None:
    """Build the features as one range run, then as a bare query, and print both with their ratio."""
    root = work.resolve()
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    end = FIRST + timedelta(days=days - 1)
    end += timedelta(days=6 - end.weekday())  # a calendar ends on a Sunday
    environ = {
        **os.environ, "ORDERS_HOME": str(root), "DAGSTER_HOME": str(root / "dagster"), "ORDERS_START_DATE": str(FIRST),
        "ORDERS_END_DATE": str(end), "ORDERS_DUCKDB_THREADS": str(threads), "ORDERS_DUCKDB_MEMORY_LIMIT": memory,
        "DAGSTER_MODULE_NAME": "orders_platform.definitions", "DAGSTER_DISABLE_TELEMETRY": "yes",
    }  # fmt: skip
    facts = FACTS.format(first=FIRST, days=days, orders=orders, customers=customers)
    here = Path.cwd()
    run([sys.executable, "-W", "ignore", "-c", PREPARE, str(FIRST), str(days), facts], environ, here, root / "prepare.log")
    last = FIRST + timedelta(days=days - 1)
    select = ["--select", "customer_features", "--partition-range", f"{FIRST}...{last}"]
    ours = run([sys.executable, "-m", "benchmarks.ours", "asset", "materialize", *select], environ, here, root / "ours.log")
    from orders_platform.assets.customer_features import FEATURES

    target = root / "bare.duckdb"
    command = [sys.executable, "-c", BARE, str(root / "warehouse.duckdb"), str(target), FEATURES, str(threads), memory]
    bare = run(command, environ, here, root / "bare.log")
    show(ours, bare, root)


def show(ours: Cost, bare: Cost, root: Path) -> None:
    with duckdb.connect(str(root / "warehouse.duckdb"), read_only=True) as con:
        (rows,) = con.execute("select count(*) from orders.customer_features").fetchone() or (0,)
    if f"{rows}" != (root / "bare.log").read_text().strip():
        raise click.ClickException("The two did not write the same number of rows.")
    table = Table(title=f"customer_features, {rows:,} rows")
    for name in ("", "wall s", "cpu s", "peak MiB", "wall × bare", "cpu × bare"):
        table.add_column(name, justify="right")
    swap = float(ours.facts["seconds"]["swap"])
    table.add_row("bare DuckDB", f"{bare.wall:.1f}", f"{bare.cpu:.1f}", f"{bare.peak_mib:,.0f}", "1.00", "1.00")
    table.add_row(
        "dagster asset materialize", f"{ours.wall:.1f}", f"{ours.cpu:.1f}", f"{ours.peak_mib:,.0f}",
        f"{ours.wall / bare.wall:.2f}", f"{ours.cpu / bare.cpu:.2f}",
    )  # fmt: skip
    table.add_row("of which the swap", f"{swap:.1f}", "", "", f"{swap / bare.wall:.2f}", "")
    table.add_row("of which Dagster's events", f"{ours.facts['seconds']['events']:.1f}", "", "", "", "")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
