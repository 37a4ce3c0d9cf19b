"""revenue_daily: revenue of a day by country and currency. Belongs here: its contract and its SQL."""

from orders_platform.assets.decorator import warehouse_asset
from orders_platform.partitions import DAILY
from orders_platform.warehouse.contract import Column, TableContract
from orders_platform.warehouse.values import Query, Slice

CONTRACT = TableContract(
    grain="one country and currency of a day",
    columns={
        "order_date": Column("DATE", "business day"),
        "country": Column("VARCHAR", "as the source writes it"),
        "currency": Column("VARCHAR", "ISO 4217 code of the amounts"),
        "orders": Column("BIGINT", "orders of any status", unit="orders", source=("fct_orders.order_id",)),
        "revenue_orders": Column("BIGINT", "orders that count as revenue", unit="orders", source=("fct_orders.is_revenue",)),
        "cancelled_orders": Column("BIGINT", "orders with status cancelled", unit="orders", source=("fct_orders.status",)),
        "revenue": Column(
            "DECIMAL(38,2)",
            "net amount of the orders that count as revenue",
            unit="currency",
            source=("fct_orders.net_amount", "fct_orders.is_revenue"),
        ),
    },
    key=("country", "currency"),
    measures=("orders", "revenue_orders", "cancelled_orders", "revenue"),
    allow_empty=True,
)


@warehouse_asset(CONTRACT, partitions_def=DAILY, group_name="orders", owners=["team:finance"])
def revenue_daily(fct_orders: Slice) -> Query:
    """Sum each day by country and currency. **Units**: revenue in the row's currency; currencies are never added."""
    return Query("""
        select
            order_date, country, currency,
            count(*) as orders,
            count(*) filter (where is_revenue) as revenue_orders,
            count(*) filter (where status = 'cancelled') as cancelled_orders,
            coalesce(sum(net_amount) filter (where is_revenue), 0) as revenue
        from fct_orders
        group by order_date, country, currency
    """)
