"""Sources of any size. Belongs here: the SQL that makes orders from integers alone. Not here: writing them (fill.py)."""

from collections.abc import Iterator
from datetime import date
from typing import cast

import duckdb

from orders_platform.source.sample import COUNTRIES, Row

PIECE_ROWS = 5_000
_BLOCK = 500_000  # orders made at once, so that a large day stays small in memory
_STATUSES = ["placed", *["paid"] * 3, *["shipped"] * 5, *["delivered"] * 9, "cancelled", "refunded"]

# Arithmetic modulo a prime instead of hash(), whose values may change with the engine: the same orders for ever.
_DRAWS = """
create macro mixed(n, salt) as (n % 2147483647 * 48271 + salt * 69621 + 12345) % 2147483647;
create macro draw(n, salt) as (mixed(n, salt) * mixed(n, salt) % 2147483647 * 16807 + mixed(n, salt + 1)) % 2147483647;
"""

_DAY = """
with numbered as (
    select i, $day_number::bigint * 86028121 + $seed::bigint * 32452843 + i as n from range($first, $stop) as t(i)
),
drawn as (
    select
        i,
        n,
        'G' || strftime($day, '%Y%m%d') || '-' || lpad(i::varchar, 7, '0') as order_id,
        $day::timestamp + to_seconds((i * 86400) // $orders) as ordered_at,
        draw(n, 1) % 1000 as fate,
        draw(n, 2) % $customers as customer,
        list_extract($countries, 1 + (draw(n, 3) % len($countries))::int) as country,
        list_extract($currencies, 1 + (draw(n, 3) % len($countries))::int) as currency,
        draw(n, 4) % len($statuses) as status,
        499 + draw(n, 5) % 25000 + draw(n, 6) % 25000 as gross,
        if(draw(n, 7) % 100 < 15, draw(n, 8) % 499, 0) as discount,
        60 + draw(n, 9) % 169200 as delay
    from numbered
),
copied as (
    select *, copy = 1 and fate >= 10 as later from drawn, (values (0), (1)) as copies(copy) where copy = 0 or fate < 15
)
select
    order_id,
    if(draw(n, 10) % 100 < 8, null, 'C' || lpad(customer::varchar, 7, '0')) as customer_id,
    strftime(ordered_at, '%Y-%m-%d %H:%M:%S') as ordered_at,
    strftime(ordered_at + to_seconds(delay + if(later, 90000, 0)), '%Y-%m-%d %H:%M:%S') as updated_at,
    country,
    currency,
    list_extract($statuses, 1 + if(later, len($statuses) - 1, status)::int) as status,
    (gross // 100)::varchar || '.' || lpad((gross % 100)::varchar, 2, '0') as gross_amount,
    (discount // 100)::varchar || '.' || lpad((discount % 100)::varchar, 2, '0') as discount_amount
from copied
order by i, copy
"""


def generated_day(day: date, orders: int, seed: int) -> Iterator[list[Row]]:
    """A day of orders in pieces, in order of time: the same rows for the same arguments, on any machine.

    **Grain**: one row as a source would hand it over, in the order of COLUMNS; all text. About 1 % more rows are exact
    duplicates and 0.5 % later versions of an order; 8 % are guests. Amounts have two decimals, discount never exceeds gross.

    Args:
        day: UTC day of ordered_at.
        orders: Different orders on that day.
        seed: Another seed, other orders; not below zero.
    """
    values = {
        "day": day,
        "day_number": day.toordinal(),
        "seed": seed,
        "orders": orders,
        "customers": max(100, orders // 2),
        "countries": [country for country, _ in COUNTRIES],
        "currencies": [currency for _, currency in COUNTRIES],
        "statuses": _STATUSES,
    }
    with duckdb.connect() as connection:
        connection.execute(_DRAWS)
        for first in range(0, orders, _BLOCK):
            result = connection.execute(_DAY, {**values, "first": first, "stop": min(first + _BLOCK, orders)})
            while rows := result.fetchmany(PIECE_ROWS):
                yield cast("list[Row]", rows)
