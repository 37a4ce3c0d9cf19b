with bought as (
    select
        customer_id, currency, country, order_date,
        count(*) as orders,
        count(*) filter (where is_revenue) as revenue_orders,
        count(*) filter (where status = 'cancelled') as cancelled_orders,
        coalesce(sum(net_amount) filter (where is_revenue), 0) as revenue,
        lag(order_date) over same_country as previous_date,
        lead(order_date) over same_country as next_date
    from {facts}
    where customer_id is not null and order_date between date '{first}' - 27 and date '{last}'
    group by customer_id, currency, country, order_date
    window same_country as (partition by customer_id, currency, country order by order_date)
),
changes as (
    select
        customer_id, currency, greatest(order_date, date '{first}') as changed_date, order_date, orders, revenue_orders, cancelled_orders, revenue,
        if(order_date < previous_date + 28, 0, 1) as countries
    from bought
    union all
    select
        customer_id, currency, order_date + 28, null, -orders, -revenue_orders, -cancelled_orders, -revenue,
        if(next_date < order_date + 28, 0, -1)
    from bought
    where order_date + 28 <= date '{last}'
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
        least(next_changed_date - 1, date '{last}') as last_date
    from summed
    where orders > 0
),
repeated as (
    select *, changed_date + unnest(range(last_date - changed_date + 1))::integer as feature_date from rounded
)
select
    feature_date, customer_id, currency, orders, revenue_orders, cancelled_orders,
    revenue::decimal(18,2) as revenue, average_order_value::decimal(18,2) as average_order_value,
    cancelled_share::decimal(5,4) as cancelled_share, (feature_date - last_order_date)::integer as days_since_last_order, countries
from repeated
