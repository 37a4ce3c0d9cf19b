MODEL (
  name orders.fct_orders,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column order_date
  ),
  grain (order_date, order_id)
);

select
    order_date, order_id, customer_id, country, currency, status, gross_amount, discount_amount,
    (gross_amount - discount_amount)::decimal(18,2) as net_amount,
    status in ('paid', 'shipped', 'delivered') as is_revenue
from orders.stg_orders
where order_date between @start_date and @end_date
