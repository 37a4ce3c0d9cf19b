"""Accounting identities. Belongs here: a few lines of SQL for each table, saying what must equal what in its input, exactly.

Not here: when they are asked and what follows (recovery/reconciliation.py). Each reads the table and its inputs by name and
gives (interval_date, item, left_value, right_value); amounts of different currencies stay apart.
"""

from orders_platform.recovery.reconciliation import Identity

# Joining every staged row to its landed row costs a third of the swap (measured, 3 M rows). So rows of orders landed once are
# compared as sums of hashes, landed minus rejected against staged, and only orders landed several times are joined.
STAGED = Identity(
    sql="""
        with repeated as (
            select order_date, order_id, currency, gross_amount from stg_orders where superseded_rows > 0
        ), received as (
            select order_date, order_id, currency, gross_amount, 1 as sign from raw_orders
            union all
            select order_date, order_id, currency, gross_amount, -1 from stg_orders_rejected
        ), typed as (
            select order_date, trim(order_id) as order_id, upper(trim(currency)) as currency,
                try_cast(gross_amount as decimal(18,2)) as gross, sign
            from received
        ), compared as (
            select order_date, p.order_id, coalesce(p.currency, t.currency) as currency, sum(sign * gross) as gross,
                sum(sign * hash(t.order_id, t.currency, gross)::hugeint) as hashes,
                bool_or(t.currency = p.currency and gross = p.gross_amount and sign = 1) as is_landed
            from typed t full join repeated p using (order_date, order_id) group by all
        ), expected as (
            select * from compared where order_id is null
        ), staged as (
            select order_date, currency, sum(gross_amount) as gross,
                sum(hash(order_id, currency, gross_amount)::hugeint) as hashes
            from stg_orders where superseded_rows = 0 group by all
        ), found as (
            select order_date, currency, sum(orders) as orders, sum(landed) as landed
            from (
                select order_date, currency, count(*) as orders, 0 as landed from repeated group by all
                union all
                select order_date, currency, 0, count(*) filter (where is_landed) from compared where order_id is not null group by all
            )
            group by all
        ), counted as (
            select order_date, sum(landed) as landed, sum(accounted) as accounted
            from (
                select order_date, count(*) as landed, 0 as accounted from raw_orders group by all
                union all select order_date, 0, count(*) + sum(superseded_rows) from stg_orders group by all
                union all select order_date, 0, count(*) from stg_orders_rejected group by all
            )
            group by all
        )
        select order_date as interval_date, 'landed rows = staged + rejected + superseded' as item,
            landed::varchar as left_value, accounted::varchar as right_value
        from counted
        union all
        select order_date, unnest([
            {'item': 'gross_amount of orders landed once ' || currency,
                'left_value': coalesce(e.gross, 0)::varchar, 'right_value': coalesce(s.gross, 0)::varchar},
            {'item': 'order_id with gross_amount ' || currency || ' (hash)',
                'left_value': coalesce(e.hashes, 0)::varchar, 'right_value': coalesce(s.hashes, 0)::varchar}
        ], recursive := true)
        from expected e full join staged s using (order_date, currency)
        where currency is not null and (e.hashes <> 0 or s.hashes is not null)
        union all
        select order_date, 'orders landed several times ' || currency, orders::varchar, landed::varchar from found
    """,
    keys="""
        select s.order_date as interval_date, s.order_id as item, null as left_value,
            s.gross_amount || ' ' || s.currency as right_value
        from stg_orders s anti join raw_orders r
            on r.order_date = s.order_date and trim(r.order_id) = s.order_id
            and try_cast(r.gross_amount as decimal(18,2)) = s.gross_amount and upper(trim(r.currency)) = s.currency
        limit 20
    """,
)

PRICED = Identity(
    sql="""
        with staged as (
            select order_date, currency, count(*) as orders,
                sum(hash(order_id, gross_amount, discount_amount)::hugeint) as hashes,
                sum(gross_amount) as gross, sum(discount_amount) as discount
            from stg_orders group by all
        ), facts as (
            select order_date, currency, count(*) as orders,
                sum(hash(order_id, gross_amount, discount_amount)::hugeint) as hashes,
                sum(gross_amount) as gross, sum(discount_amount) as discount, sum(net_amount) as net
            from fct_orders group by all
        )
        select order_date as interval_date, unnest([
            {'item': 'orders ' || currency,
                'left_value': coalesce(s.orders, 0)::varchar, 'right_value': coalesce(f.orders, 0)::varchar},
            {'item': 'order_id with amounts ' || currency || ' (hash)',
                'left_value': coalesce(s.hashes, 0)::varchar, 'right_value': coalesce(f.hashes, 0)::varchar},
            {'item': 'gross_amount ' || currency,
                'left_value': coalesce(s.gross, 0)::varchar, 'right_value': coalesce(f.gross, 0)::varchar},
            {'item': 'net_amount ' || currency,
                'left_value': (coalesce(s.gross, 0) - coalesce(s.discount, 0))::varchar,
                'right_value': coalesce(f.net, 0)::varchar},
            {'item': 'gross − discount ' || currency,
                'left_value': (coalesce(f.gross, 0) - coalesce(f.discount, 0))::varchar,
                'right_value': coalesce(f.net, 0)::varchar}
        ], recursive := true)
        from staged s full join facts f using (order_date, currency)
    """,
    keys="""
        select order_date as interval_date, order_id as item,
            s.gross_amount || ' − ' || s.discount_amount || ' ' || s.currency as left_value,
            f.gross_amount || ' − ' || f.discount_amount || ' = ' || f.net_amount || ' ' || f.currency as right_value
        from stg_orders s full join fct_orders f using (order_date, order_id)
        where (s.currency, s.gross_amount, s.discount_amount, s.gross_amount - s.discount_amount)
            is distinct from (f.currency, f.gross_amount, f.discount_amount, f.net_amount)
        limit 20
    """,
)

SUMMED = Identity(
    sql="""
        with facts as (
            select order_date, country, currency, count(*) as orders, count(*) filter (where is_revenue) as revenue_orders,
                count(*) filter (where status = 'cancelled') as cancelled_orders, sum(if(is_revenue, net_amount, 0)) as revenue
            from fct_orders group by all
        )
        select order_date as interval_date, unnest([
            {'item': 'revenue ' || country || ' ' || currency, 'left_value': coalesce(f.revenue, 0)::varchar,
                'right_value': coalesce(d.revenue, 0)::varchar},
            {'item': 'orders/revenue/cancelled ' || country || ' ' || currency,
                'left_value': concat_ws('/', f.orders, f.revenue_orders, f.cancelled_orders),
                'right_value': concat_ws('/', d.orders, d.revenue_orders, d.cancelled_orders)}
        ], recursive := true)
        from facts f full join revenue_daily d using (order_date, country, currency)
    """,
)

CARRIED = Identity(
    sql="""
        select interval_date, concat_ws(' ', 'revenue_to_date', country, currency) as item,
            sum(expected)::varchar as left_value, sum(found)::varchar as right_value
        from (
            select order_date as interval_date, country, currency, revenue as expected, 0.00 as found from revenue_daily
            union all
            select order_date + 1, country, currency, revenue_to_date, 0.00 from revenue_to_date
            where year(order_date + 1) = year(order_date)
            union all
            select order_date, country, currency, 0.00, revenue_to_date from revenue_to_date
        )
        semi join run_intervals using (interval_date)
        group by all
    """,
)

FEATURED = Identity(
    sql="""
        with bought as (
            select order_date, currency, count(*) as orders, count(*) filter (where is_revenue) as revenue_orders,
                sum(if(is_revenue, net_amount, 0)) as revenue
            from fct_orders where customer_id is not null group by all
        ), expected as (
            select interval_date, currency, sum(orders) as orders, sum(revenue_orders) as revenue_orders,
                sum(revenue) as revenue
            from run_intervals join bought on order_date between interval_date - 27 and interval_date group by all
        ), found as (
            select feature_date as interval_date, currency, sum(orders) as orders, sum(revenue_orders) as revenue_orders,
                sum(revenue) as revenue
            from customer_features group by all
        )
        select interval_date, unnest([
            {'item': 'revenue ' || currency, 'left_value': coalesce(e.revenue, 0)::varchar,
                'right_value': coalesce(f.revenue, 0)::varchar},
            {'item': 'orders/revenue ' || currency, 'left_value': concat_ws('/', e.orders, e.revenue_orders),
                'right_value': concat_ws('/', f.orders, f.revenue_orders)}
        ], recursive := true)
        from expected e full join found f using (interval_date, currency)
    """,
)

EXPORTED = Identity(
    sql="""
        with daily as (
            select date_trunc('week', order_date)::date as week, currency, count(*) as lines, sum(orders) as orders,
                sum(revenue_orders) as revenue_orders, sum(cancelled_orders) as cancelled_orders, sum(revenue) as revenue
            from revenue_daily group by all
        ), exported as (
            select week, currency, count(*) as lines, sum(orders) as orders,
                sum(revenue_orders) as revenue_orders, sum(cancelled_orders) as cancelled_orders, sum(revenue) as revenue
            from finance_export group by all
        )
        select week as interval_date, unnest([
            {'item': 'revenue ' || currency, 'left_value': coalesce(d.revenue, 0)::varchar,
                'right_value': coalesce(e.revenue, 0)::varchar},
            {'item': 'lines/orders/revenue/cancelled ' || currency,
                'left_value': concat_ws('/', d.lines, d.orders, d.revenue_orders, d.cancelled_orders),
                'right_value': concat_ws('/', e.lines, e.orders, e.revenue_orders, e.cancelled_orders)}
        ], recursive := true)
        from daily d full join exported e using (week, currency)
    """,
)

IDENTITIES = {
    "stg_orders": STAGED,
    "fct_orders": PRICED,
    "revenue_daily": SUMMED,
    "revenue_to_date": CARRIED,
    "customer_features": FEATURED,
    "finance_export": EXPORTED,
}
"""A table that is not named here is reconciled by its content and rows alone."""
