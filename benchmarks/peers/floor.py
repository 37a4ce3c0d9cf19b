"""The floor: the pipeline as a bare DuckDB script, with nothing but the statements. Needs duckdb and nothing else.

    python floor.py WAREHOUSE LANDING FIRST LAST one-pass|day-by-day [features|features-only]

Same input, typing, rules, de-duplication and tables as the platform; no audit, no digest, no record of what was done.
"""

import datetime as dt
import json
import os
import sys
import time
from pathlib import Path

import duckdb

TABLES = """
create schema if not exists orders;
create table if not exists orders.stg_orders (
    order_date date, order_id varchar, customer_id varchar, ordered_at timestamp, updated_at timestamp, country varchar,
    currency varchar, status varchar, gross_amount decimal(18,2), discount_amount decimal(18,2), superseded_rows bigint);
create table if not exists orders.stg_orders_rejected (
    order_date date, reasons varchar[], order_id varchar, customer_id varchar, ordered_at varchar, updated_at varchar,
    country varchar, currency varchar, status varchar, gross_amount varchar, discount_amount varchar);
create table if not exists orders.fct_orders (
    order_date date, order_id varchar, customer_id varchar, country varchar, currency varchar, status varchar,
    gross_amount decimal(18,2), discount_amount decimal(18,2), net_amount decimal(18,2), is_revenue boolean);
create table if not exists orders.revenue_daily (
    order_date date, country varchar, currency varchar, orders bigint, revenue_orders bigint, cancelled_orders bigint,
    revenue decimal(38,2));
create table if not exists orders.customer_features (
    feature_date date, customer_id varchar, currency varchar, orders bigint, revenue_orders bigint, cancelled_orders bigint,
    revenue decimal(18,2), average_order_value decimal(18,2), cancelled_share decimal(5,4), days_since_last_order integer,
    countries integer);
"""

TYPED = """
    select
        order_date,
        nullif(trim(r.order_id), '') as order_id,
        nullif(trim(r.customer_id), '') as customer_id,
        try_cast(r.ordered_at as timestamp) as ordered_at,
        try_cast(r.updated_at as timestamp) as updated_at,
        nullif(trim(r.country), '') as country,
        upper(trim(r.currency)) as currency,
        lower(trim(r.status)) as status,
        try_cast(r.gross_amount as decimal(18,2)) as gross_amount,
        try_cast(r.discount_amount as decimal(18,2)) as discount_amount,
        r as received
    from landed r
"""

REASONS = {
    "order_id is missing": "order_id is null",
    "ordered_at is missing or unreadable": "ordered_at is null",
    "ordered_at lies outside the interval": "ordered_at < order_date or ordered_at >= order_date + 1",
    "updated_at is missing or unreadable": "updated_at is null",
    "country is missing": "country is null",
    "currency is not a code of three letters": "currency is null or not regexp_full_match(currency, '[A-Z]{3}')",
    "status is missing or unknown": "status is null or status not in "
    "('placed', 'paid', 'shipped', 'delivered', 'cancelled', 'refunded')",
    **{
        f"{amount} {what}": condition.format(amount)
        for amount in ("gross_amount", "discount_amount")
        for what, condition in {
            "is missing or unreadable": "{0} is null",
            "is below zero": "{0} < 0",
            "has more than two decimals": "case when length(received.{0}) - instr(received.{0}, '.') = 2 then false "
            "else contains(received.{0}, '.') and length(rtrim(received.{0}, '0 ')) - instr(received.{0}, '.') > 2 "
            "or contains(received.{0}, 'e-') or contains(received.{0}, 'E-') end",
        }.items()
    },
}
REFUSED = " or ".join(f"coalesce({condition}, false)" for condition in REASONS.values())
LISTED = ", ".join(f"case when {condition} then '{reason}' end" for reason, condition in REASONS.items())

FEATURES = (Path(__file__).parent / "features.sql").read_text()


def replace(con: duckdb.DuckDBPyConnection, landing: Path, days: list[str], features: str) -> None:
    """The days in every table, in one transaction."""
    within = f"between date '{days[0]}' and date '{days[-1]}'"
    con.execute("begin")
    if features != "features-only":
        replace_orders(con, landing, days, within)
    if features:
        con.execute(f"delete from orders.customer_features where feature_date {within}")
        con.execute(
            "insert into orders.customer_features by name "
            + FEATURES.format(first=days[0], last=days[-1], facts="orders.fct_orders")
        )
    con.execute("commit")


def replace_orders(con: duckdb.DuckDBPyConnection, landing: Path, days: list[str], within: str) -> None:
    files = [str(file) for day in days for file in sorted(landing.glob(f"raw_orders/order_date={day}/*.parquet"))]
    con.execute(
        "create or replace temp view landed as from read_parquet("
        f"{files!r}, hive_partitioning = true, hive_types = {{'order_date': date}})"
    )
    for table in ("stg_orders", "stg_orders_rejected", "fct_orders", "revenue_daily"):
        con.execute(f"delete from orders.{table} where order_date {within}")
    con.execute(f"""
        insert into orders.stg_orders by name
        with typed as ({TYPED})
        select * exclude (received), count(*) over (partition by order_date, order_id) - 1 as superseded_rows
        from typed where not ({REFUSED})
        qualify row_number() over (
            partition by order_date, order_id
            order by updated_at desc, ordered_at desc, status, gross_amount desc, discount_amount, customer_id, country,
                currency
        ) = 1""")
    con.execute(f"""
        insert into orders.stg_orders_rejected by name
        with typed as ({TYPED})
        select received.*, list_filter([{LISTED}], lambda reason: reason is not null) as reasons
        from typed where {REFUSED}""")
    con.execute(f"""
        insert into orders.fct_orders
        select order_date, order_id, customer_id, country, currency, status, gross_amount, discount_amount,
            gross_amount - discount_amount, status in ('paid', 'shipped', 'delivered')
        from orders.stg_orders where order_date {within}""")
    con.execute(f"""
        insert into orders.revenue_daily
        select order_date, country, currency, count(*), count(*) filter (where is_revenue),
            count(*) filter (where status = 'cancelled'), coalesce(sum(net_amount) filter (where is_revenue), 0)
        from orders.fct_orders where order_date {within} group by all""")


def main() -> None:
    warehouse, landing, first, last, mode, *more = sys.argv[1:]
    start, stop = dt.date.fromisoformat(first), dt.date.fromisoformat(last)
    days = [str(start + dt.timedelta(n)) for n in range((stop - start).days + 1)]
    started = time.monotonic()
    con = duckdb.connect(warehouse)
    con.execute(TABLES)
    for block in [days] if mode == "one-pass" else [[day] for day in days]:
        replace(con, Path(landing), block, "".join(more))
    con.close()
    facts = {"seconds": {"publishing": time.monotonic() - started}, "duckdb": duckdb.__version__}
    if path := os.environ.get("BENCHMARK_FACTS"):
        Path(path).write_text(json.dumps(facts))


if __name__ == "__main__":
    main()
