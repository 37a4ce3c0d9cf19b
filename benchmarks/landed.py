"""Landed days of any size. Belongs here: making orders as text and landing them with the platform's own landing function.

Not here: the source (capture speed is measured apart); the files and publications are those that raw_orders would leave.
"""

import sys
from collections.abc import Iterator
from datetime import date, timedelta

import click
import duckdb
import pyarrow as pa
from rich.progress import track

from orders_platform.assets.raw_orders import CONTRACT, REPEATING
from orders_platform.settings import settings
from orders_platform.source.render import COLUMNS, schema
from orders_platform.warehouse import landing, publications
from orders_platform.warehouse.publications import Publication
from orders_platform.warehouse.session import Warehouse

# All text, as a source hands it over: 1 % exact duplicates, 0.5 % later versions, 0.1 % unreadable amounts, 8 % guests.
ORDERS = """
with drawn as (
    select i, hash(i, $day::date, $seed) as h, hash(i, $day::date, $seed + 1) as g from range($orders) as t(i)
),
placed as (
    select
        h, g,
        'L' || strftime($day::date, '%Y%m%d') || '-' || lpad(i::varchar, 7, '0') as order_id,
        1 + floor($customers * pow((h >> 8) % 65536 / 65536.0, 3)) as customer,
        $day::timestamp + to_seconds((i * 86400) // $orders) as placed_at,
        1 + ((h >> 24) % 7)::int as place,
        1 + ((h >> 30) % 20)::int as fate,
        499 + (g % 25000) as gross,
        if((g >> 20) % 100 < 15, (g >> 30) % 499, 0) as discount
    from drawn
),
copied as (
    select *, copy = 1 and (g >> 40) % 1000 >= 10 as is_later
    from placed, (values (0), (1)) as copies(copy)
    where copy = 0 or (g >> 40) % 1000 < 15
)
select
    order_id,
    if(h % 100 < 8, null, 'C' || lpad(customer::bigint::varchar, 7, '0')) as customer_id,
    strftime(placed_at, '%Y-%m-%d %H:%M:%S') as ordered_at,
    strftime(placed_at + to_seconds(60 + (h >> 40) % 169200 + if(is_later, 90000, 0)), '%Y-%m-%d %H:%M:%S') as updated_at,
    ['GB', 'DE', 'FR', 'ES', 'IE', 'US', 'SE'][place] as country,
    ['GBP', 'EUR', 'EUR', 'EUR', 'EUR', 'USD', 'SEK'][place] as currency,
    if(
        is_later,
        'refunded',
        ['placed', 'cancelled', 'refunded', 'paid', 'paid', 'paid', 'shipped', 'shipped', 'shipped', 'shipped', 'shipped',
         'delivered', 'delivered', 'delivered', 'delivered', 'delivered', 'delivered', 'delivered', 'delivered', 'delivered'][fate]
    ) as status,
    if((g >> 50) % 1000 = 0, 'n/a', printf('%d.%02d', gross // 100, gross % 100)) as gross_amount,
    printf('%d.%02d', discount // 100, discount % 100) as discount_amount
from copied
order by placed_at, order_id, copy
"""


def batches(con: duckdb.DuckDBPyConnection, day: date, orders: int, seed: int) -> Iterator[pa.RecordBatch]:
    values = {"day": day, "orders": orders, "seed": seed, "customers": max(100, orders // 2)}
    for batch in con.execute(ORDERS, values).to_arrow_reader(50_000):
        yield batch.select(list(COLUMNS)).cast(schema())


@click.command()
@click.option("--first", type=click.DateTime(["%Y-%m-%d"]), required=True)
@click.option("--days", type=int, required=True)
@click.option("--orders", type=int, required=True)
@click.option("--seed", type=int, default=1)
def main(first: date, days: int, orders: int, seed: int) -> None:
    """Land days of orders in the workspace and publish them as raw_orders; another seed is another content."""
    values = settings()
    done = []
    with duckdb.connect() as con:
        for number in track(range(days), f"Landing {days} days × {orders:,} orders", disable=not sys.stderr.isatty()):
            day = (first + timedelta(days=number)).date()
            rows = batches(con, day, orders, seed)
            name = day.isoformat()
            file = landing.land(values.landing_root, "raw_orders", name, CONTRACT.partition, rows, schema(), REPEATING)
            done.append(
                Publication(
                    "raw_orders", name, "benchmark", "benchmark", file.digest, file.row_count,
                    location=file.location, sha256=file.sha256, digest_columns=COLUMNS,
                )
            )  # fmt: skip
    with Warehouse.from_settings(values).write("the benchmark's landing") as con:
        for made in done:
            publications.publish(con, made, lambda: None)


if __name__ == "__main__":
    main()
