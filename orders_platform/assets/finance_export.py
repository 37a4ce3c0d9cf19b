"""finance_export: the file that finance receives for a week. Belongs here: its contract and its SQL. Not here: sending it."""

from orders_platform.assets.decorator import warehouse_asset
from orders_platform.partitions import WEEKLY
from orders_platform.warehouse.contract import Column, TableContract
from orders_platform.warehouse.values import Export, Slice

CONTRACT = TableContract(
    grain="one country and currency of a day",
    columns={
        "week": Column("DATE", "Monday of the ISO week", source=("revenue_daily.order_date",)),
        "order_date": Column("DATE", "business day"),
        "country": Column("VARCHAR", "as the source writes it"),
        "currency": Column("VARCHAR", "ISO 4217 code of the amounts"),
        "orders": Column("BIGINT", "orders of any status", unit="orders"),
        "revenue_orders": Column("BIGINT", "orders that count as revenue", unit="orders"),
        "cancelled_orders": Column("BIGINT", "orders with status cancelled", unit="orders"),
        "revenue": Column("DECIMAL(38,2)", "net amount of the orders that count as revenue", unit="currency"),
    },
    key=("order_date", "country", "currency"),
    measures=("orders", "revenue_orders", "cancelled_orders", "revenue"),
    partition="week",
    allow_empty=True,
    step_days=7,
)


@warehouse_asset(
    CONTRACT,
    kinds=frozenset({"duckdb", "csv"}),
    partitions_def=WEEKLY,
    group_name="finance",
    owners=["team:finance"],
)
def finance_export(revenue_daily: Slice) -> Export:
    """Write the week's seven days as one immutable file; refused while a day is missing, held or not reconciled.

    **Grain**: a line a day, country and currency. **Units**: revenue in the line's currency; currencies are never added.
    """
    return Export("""
        select
            date_trunc('week', order_date)::date as week, order_date, country, currency,
            orders, revenue_orders, cancelled_orders, revenue
        from revenue_daily
    """)
