"""A real shop, through one SELECT: every accounting identity holds to the penny.

Data: UCI Online Retail, read from a folder beside the project (ORDERS_TEST_DATA), never copied into it.
"""

import os
import sqlite3
from collections import defaultdict
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import duckdb
import pytest

from orders_platform.calendar import Calendar
from tests.conftest import DAILY, PROJECT, Workspace

DATA = Path(os.environ.get("ORDERS_TEST_DATA", PROJECT.parent / "shared" / "data")) / "online_retail.parquet"

# Invoice lines summed to orders. InvoiceDate is UK local time; prices have up to three decimals, so lines are summed in mills.
QUERY = """
with bst as (select '2011-03-27 01:00:00' as since, '2011-10-30 02:00:00' as until),
near as (
  select distinct InvoiceNo from lines
  where InvoiceDate >= datetime(:start, '-1 day') and InvoiceDate < datetime(:end, '+1 day')
),
invoices as (
  select
    InvoiceNo, min(InvoiceDate) as placed, max(InvoiceDate) as changed, max(CustomerID) as customer, max(Country) as country,
    sum(cast(round(Quantity * UnitPrice * 1000) as integer)) as mills
  from lines join near using (InvoiceNo) group by InvoiceNo
),
orders as (
  select
    *, InvoiceNo like 'C%' as is_cancelled, (abs(mills) + 5) / 10 as pence,
    datetime(placed, iif(placed >= since and placed < until, '-1 hour', '+0 hour')) as ordered_at,
    datetime(changed, iif(changed >= since and changed < until, '-1 hour', '+0 hour')) as updated_at
  from invoices, bst
)
select
  InvoiceNo as order_id, replace(customer, '.0', '') as customer_id, ordered_at, updated_at, country, 'GBP' as currency,
  iif(is_cancelled, 'cancelled', 'paid') as status,
  iif(mills < 0 and not is_cancelled, '-', '') || printf('%d.%02d', pence / 100, pence % 100) as gross_amount,
  '0.00' as discount_amount
from orders where ordered_at >= :start and ordered_at < :end
"""


def load_source(path: Path) -> list[tuple[str, ...]]:
    """The invoice lines into a real SQLite source; returns them as read."""
    lines = duckdb.execute(
        "select InvoiceNo, Quantity, strftime(InvoiceDate::timestamp, '%Y-%m-%d %H:%M:%S'), UnitPrice, CustomerID, Country "
        "from read_parquet(?)",
        [str(DATA)],
    ).fetchall()
    con = sqlite3.connect(path)
    con.execute(
        "create table lines (InvoiceNo text, Quantity text, InvoiceDate text, UnitPrice text, CustomerID text, Country text)"
    )
    con.executemany("insert into lines values (?, ?, ?, ?, ?, ?)", lines)
    con.execute("create index by_date on lines (InvoiceDate)")
    con.execute("create index by_invoice on lines (InvoiceNo)")
    con.commit()
    con.close()
    return lines


def expected_of(lines: list[tuple[str, ...]]) -> dict[tuple[str, str], Decimal]:
    """(day, country) -> revenue, summed in decimals from the lines, without SQL."""
    total: dict[str, Decimal] = defaultdict(Decimal)
    day: dict[str, str] = {}
    country: dict[str, str] = {}
    for invoice, quantity, at, price, _, where in lines:
        total[invoice] += Decimal(quantity) * Decimal(price)
        day[invoice] = min(day.get(invoice, at), at)
        country[invoice] = max(country.get(invoice, where), where)
    revenue: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for invoice, amount in total.items():
        if not invoice.startswith("C") and amount >= 0:
            revenue[day[invoice][:10], country[invoice]] += amount.quantize(Decimal("0.01"), ROUND_HALF_UP)
    return revenue


@pytest.mark.skipif(not DATA.exists(), reason=f"{DATA.name} is not beside the project; set ORDERS_TEST_DATA to its folder")
@pytest.mark.parametrize(
    ("first", "last", "trading_days"),
    [
        pytest.param("2011-08-08", "2011-09-18", 35, id="six weeks with its bad debts"),
        pytest.param("2010-11-29", "2011-12-11", 305, id="its whole year", marks=pytest.mark.proof),
    ],
)
def test_a_real_shop_reconciles_to_the_penny(
    workspace: Workspace, tmp_path: Path, first: str, last: str, trading_days: int
) -> None:
    lines = [line for line in load_source(tmp_path / "retail.db") if first <= line[2][:10] <= last]
    trading = {line[2][:10] for line in lines}
    assert len(trading) == trading_days
    calendar = Calendar(date.fromisoformat(first), date.fromisoformat(last), "Europe/London")
    closed = [day for day in calendar.days(datetime(2012, 1, 1, tzinfo=UTC)) if day not in trading]
    environ = {
        "ORDERS_CLOSED_DAYS": ",".join(closed),
        "ORDERS_HOME": str(tmp_path / "retail"),
        "DAGSTER_HOME": str(tmp_path / "retail" / "dagster"),
        "ORDERS_START_DATE": first,
        "ORDERS_END_DATE": last,
        "ORDERS_BUSINESS_TIMEZONE": "Europe/London",
        "ORDERS_SOURCE_URL": f"sqlite:///{tmp_path / 'retail.db'}",
        "ORDERS_SOURCE_QUERY": QUERY,
    }
    assert workspace.run("orders", "setup", **environ).returncode == 0
    run = workspace.run(
        "dagster", "asset", "materialize", "--select", ",".join(DAILY), "--partition-range", f"{first}...{last}",
        timeout=500, **environ,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    con = duckdb.connect(str(tmp_path / "retail" / "warehouse.duckdb"), read_only=True)
    try:
        check_identities(con, lines)
    finally:
        con.close()


def check_identities(con: duckdb.DuckDBPyConnection, lines: list[tuple[str, ...]]) -> None:
    invoices = {line[0] for line in lines}
    landed, staged, rejected = (
        con.execute("select sum(row_count) from platform.current_publications where asset = ?", [asset]).fetchall()[0][0]
        for asset in ("raw_orders", "stg_orders", "stg_orders_rejected")
    )
    assert landed == len(invoices)
    assert landed == staged + rejected + con.execute("select sum(superseded_rows) from orders.stg_orders").fetchall()[0][0]
    assert {
        reason for row in con.execute("select reasons from orders.stg_orders_rejected").fetchall() for reason in row[0]
    } == {"gross_amount is below zero"}
    per_day = "select order_date, sum(gross_amount) from orders.{} group by 1 order by 1"
    assert con.execute(per_day.format("stg_orders")).fetchall() == con.execute(per_day.format("fct_orders")).fetchall()
    assert con.execute(
        "select count(*) from orders.fct_orders where net_amount <> gross_amount - discount_amount"
    ).fetchall() == [(0,)]
    found = {
        (str(day), country): revenue
        for day, country, revenue in con.execute(
            "select order_date, country, revenue from orders.revenue_daily where revenue_orders > 0"
        ).fetchall()
    }
    assert found == expected_of(lines)
