"""fct_orders: one row an order, priced. Belongs here: its contract and its SQL."""

from orders_platform.assets.decorator import warehouse_asset
from orders_platform.assets.stg_orders import STATUSES
from orders_platform.partitions import DAILY
from orders_platform.warehouse.contract import Column, TableContract
from orders_platform.warehouse.values import Query, Slice

CONTRACT = TableContract(
    grain="one order",
    columns={
        "order_date": Column("DATE", "business day of the order"),
        "order_id": Column("VARCHAR", "the source's own id"),
        "customer_id": Column("VARCHAR", "who ordered; a guest has none", max_null_share=0.9),
        "country": Column("VARCHAR", "as the source writes it"),
        "currency": Column("VARCHAR", "ISO 4217 code of the amounts"),
        "status": Column("VARCHAR", "where the order stands", accepted=STATUSES),
        "gross_amount": Column("DECIMAL(18,2)", "before discount", unit="currency"),
        "discount_amount": Column("DECIMAL(18,2)", "taken off", unit="currency"),
        "net_amount": Column(
            "DECIMAL(18,2)",
            "gross − discount",
            unit="currency",
            source=("stg_orders.gross_amount", "stg_orders.discount_amount"),
        ),
        "is_revenue": Column("BOOLEAN", "status is paid, shipped or delivered", source=("stg_orders.status",)),
    },
    key=("order_id",),
    measures=("gross_amount", "discount_amount", "net_amount"),
    allow_empty=True,
)


@warehouse_asset(CONTRACT, partitions_def=DAILY, group_name="orders", owners=["team:data"])
def fct_orders(stg_orders: Slice) -> Query:
    """Price each staged order of the day. **Grain**: order. **Units**: amounts in the row's currency."""
    return Query("""
        select
            order_date, order_id, customer_id, country, currency, status, gross_amount, discount_amount,
            gross_amount - discount_amount as net_amount,
            status in ('paid', 'shipped', 'delivered') as is_revenue
        from stg_orders
    """)
