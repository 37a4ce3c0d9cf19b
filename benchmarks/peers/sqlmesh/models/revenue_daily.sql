MODEL (
  name orders.revenue_daily,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column order_date
  ),
  grain (order_date, country, currency)
);

select
    order_date, country, currency,
    count(*) as orders,
    count(*) filter (where is_revenue) as revenue_orders,
    count(*) filter (where status = 'cancelled') as cancelled_orders,
    coalesce(sum(net_amount) filter (where is_revenue), 0)::decimal(38,2) as revenue
from orders.fct_orders
where order_date between @start_date and @end_date
group by order_date, country, currency
