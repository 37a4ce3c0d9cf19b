"""customer_features: what was known of a customer at the end of a day. Belongs here: its contract and its SQL."""

import dagster as dg

from orders_platform.assets.decorator import warehouse_asset
from orders_platform.partitions import DAILY, TRAILING_28_DAYS
from orders_platform.warehouse.contract import Column, TableContract
from orders_platform.warehouse.values import Query, Slice

CONTRACT = TableContract(
    grain="one customer and currency with an order in the 28 days that end with the day",
    columns={
        "feature_date": Column("DATE", "business day at whose end this was known", source=("fct_orders.order_date",)),
        "customer_id": Column("VARCHAR", "the customer; guests have no features", source=("fct_orders.customer_id",)),
        "currency": Column("VARCHAR", "ISO 4217 code of the amounts", source=("fct_orders.currency",)),
        "orders": Column("BIGINT", "orders of any status", unit="orders", source=("fct_orders.order_id",)),
        "revenue_orders": Column("BIGINT", "orders that count as revenue", unit="orders", source=("fct_orders.is_revenue",)),
        "cancelled_orders": Column("BIGINT", "orders with status cancelled", unit="orders", source=("fct_orders.status",)),
        "revenue": Column(
            "DECIMAL(18,2)",
            "net amount of the orders that count as revenue",
            unit="currency",
            source=("fct_orders.net_amount", "fct_orders.is_revenue"),
        ),
        "average_order_value": Column(
            "DECIMAL(18,2)",
            "revenue by revenue order, rounded half away from zero; null without a revenue order",
            unit="currency",
            max_null_share=1,
            source=("fct_orders.net_amount", "fct_orders.is_revenue"),
        ),
        "cancelled_share": Column(
            "DECIMAL(5,4)", "cancelled orders by orders, rounded half up", unit="share", source=("fct_orders.status",)
        ),
        "days_since_last_order": Column("INTEGER", "0 on a day with an order", unit="days", source=("fct_orders.order_date",)),
        "countries": Column("INTEGER", "different countries ordered from", unit="countries", source=("fct_orders.country",)),
    },
    key=("customer_id", "currency"),
    measures=("orders", "revenue_orders", "cancelled_orders", "revenue"),
    partition="feature_date",
    allow_empty=True,
)

# An order enters the window on its day and leaves it 28 days later, so a feature only changes on those days: sum the changes,
# then repeat each value over the days it lasts. Exact, and it costs the orders once instead of once for each of 28 days.
# What entered before the first day asked for counts as entered on it, and what leaves after the last is left out.
FEATURES = """
    with asked as (
        select min(interval_date) as first_day, max(interval_date) as last_day from run_intervals
    ),
    bought as (
        select
            customer_id, currency, country, order_date,
            count(*) as orders,
            count(*) filter (where is_revenue) as revenue_orders,
            count(*) filter (where status = 'cancelled') as cancelled_orders,
            coalesce(sum(net_amount) filter (where is_revenue), 0) as revenue,
            lag(order_date) over same_country as previous_date,
            lead(order_date) over same_country as next_date
        from fct_orders
        where customer_id is not null
        group by customer_id, currency, country, order_date
        window same_country as (partition by customer_id, currency, country order by order_date)
    ),
    changes as (
        select
            customer_id, currency, greatest(order_date, first_day) as changed_date, order_date,
            orders, revenue_orders, cancelled_orders, revenue,
            if(order_date < previous_date + 28, 0, 1) as countries
        from bought, asked
        union all
        select
            customer_id, currency, order_date + 28, null,
            -orders, -revenue_orders, -cancelled_orders, -revenue,
            if(next_date < order_date + 28, 0, -1)
        from bought, asked
        where order_date + 28 <= last_day
    ),
    changed as (
        select
            customer_id, currency, changed_date,
            max(order_date) as order_date,
            sum(orders)::bigint as orders,
            sum(revenue_orders)::bigint as revenue_orders,
            sum(cancelled_orders)::bigint as cancelled_orders,
            sum(revenue) as revenue,
            sum(countries)::integer as countries
        from changes
        group by customer_id, currency, changed_date
    ),
    summed as (
        select
            customer_id, currency, changed_date,
            lead(changed_date) over so_far as next_changed_date,
            max(order_date) over so_far as last_order_date,
            (sum(orders) over so_far)::bigint as orders,
            (sum(revenue_orders) over so_far)::bigint as revenue_orders,
            (sum(cancelled_orders) over so_far)::bigint as cancelled_orders,
            sum(revenue) over so_far as revenue,
            (sum(countries) over so_far)::integer as countries
        from changed
        window so_far as (partition by customer_id, currency order by changed_date)
    ),
    rounded as (
        select
            *,
            sign(revenue) * ((200 * abs(revenue) + revenue_orders)::hugeint // nullif(2 * revenue_orders, 0)) * 0.01
                as average_order_value,
            (20000 * cancelled_orders + orders) // (2 * orders) * 0.0001 as cancelled_share,
            least(next_changed_date - 1, last_day) as last_date
        from summed, asked
        where orders > 0
    ),
    repeated as (
        select *, changed_date + unnest(range(last_date - changed_date + 1))::integer as feature_date from rounded
    )
    select
        feature_date, customer_id, currency, orders, revenue_orders, cancelled_orders, revenue, average_order_value,
        cancelled_share, feature_date - last_order_date as days_since_last_order, countries
    from repeated semi join run_intervals on interval_date = feature_date
"""


@warehouse_asset(
    CONTRACT,
    partitions_def=DAILY,
    group_name="features",
    owners=["team:data"],
    ins={"fct_orders": dg.AssetIn(partition_mapping=TRAILING_28_DAYS)},
)
def customer_features(fct_orders: Slice) -> Query:
    """Describe each active customer by the 28 days that end with the day; nothing after the day is read.

    **Grain**: customer and currency of a day: amounts of different currencies are never added, so who pays in two has two rows.
    **Window**: the day and the 27 before it. **Units**: amounts in the row's currency; averages and shares rounded exactly.
    """
    return Query(FEATURES)
