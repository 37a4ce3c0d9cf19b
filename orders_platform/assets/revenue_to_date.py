"""revenue_to_date: revenue since 1 January, the one asset that reads its own past. Belongs here: its contract and its SQL."""

import dagster as dg

from orders_platform.assets.decorator import warehouse_asset
from orders_platform.partitions import DAILY, PREVIOUS_DAY
from orders_platform.warehouse.contract import Column, TableContract
from orders_platform.warehouse.values import Query, Slice

CONTRACT = TableContract(
    grain="one country and currency that had an order this year, up to and including the day",
    columns={
        "order_date": Column("DATE", "business day at whose end the balance holds"),
        "country": Column("VARCHAR", "as the source writes it", source=("revenue_daily.country",)),
        "currency": Column("VARCHAR", "ISO 4217 code of the amount", source=("revenue_daily.currency",)),
        "revenue_to_date": Column(
            "DECIMAL(38,2)",
            "revenue from 1 January (or the calendar's first day) to the end of this day",
            unit="currency",
            source=("revenue_daily.revenue", "revenue_to_date.revenue_to_date"),
        ),
    },
    key=("country", "currency"),
    measures=("revenue_to_date",),
    allow_empty=True,
)

# The balance of the day before a block of intervals is a movement of the block's first day; on 1 January nothing is carried.
BALANCES = """
    with days as (
        select
            interval_date,
            year(interval_date) as year,
            interval_date - row_number() over (order by interval_date)::integer as block
        from run_intervals
    ),
    movements as (
        select order_date, country, currency, revenue as amount from revenue_daily
        union all
        select order_date + 1, country, currency, revenue_to_date from revenue_to_date
        where year(order_date + 1) = year(order_date)
    ),
    moved as (
        select interval_date, year, block, country, currency, sum(amount) as amount
        from movements join days on interval_date = order_date
        group by all
    ),
    seen as (
        select year, block, country, currency, min(interval_date) as since from moved group by all
    )
    select
        d.interval_date as order_date,
        s.country,
        s.currency,
        sum(coalesce(m.amount, 0)) over (
            partition by s.year, s.block, s.country, s.currency order by d.interval_date
        ) as revenue_to_date
    from seen s
    join days d on d.year = s.year and d.block = s.block and d.interval_date >= s.since
    left join moved m
        on m.interval_date = d.interval_date and m.country = s.country and m.currency = s.currency
"""


@warehouse_asset(
    CONTRACT,
    partitions_def=DAILY,
    group_name="orders",
    owners=["team:finance"],
    # Its days cannot run side by side, and in runs of a few days each would wait for the daemon's next look (30 s).
    backfill_policy=dg.BackfillPolicy.single_run(),
    ins={"revenue_to_date": dg.AssetIn(partition_mapping=PREVIOUS_DAY)},
)
def revenue_to_date(revenue_daily: Slice, revenue_to_date: Slice) -> Query:
    """Carry yesterday's balance forward by the day's revenue; a country keeps its row on days without sales.

    **Grain**: country and currency of a day. **Window**: 1 January to the day, in business days. **Units**: the row's currency.
    One day reads the balance before it; a range is computed in one pass from the balance before its first day.
    """
    return Query(BALANCES)
