select
    order_date, country, currency,
    count(*) as orders,
    count(*) filter (where is_revenue) as revenue_orders,
    count(*) filter (where status = 'cancelled') as cancelled_orders,
    coalesce(sum(net_amount) filter (where is_revenue), 0) as revenue
from {{ ref('fct_orders') }}
group by all
