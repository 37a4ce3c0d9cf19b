select
    order_date, order_id, customer_id, country, currency, status, gross_amount, discount_amount,
    (gross_amount - discount_amount)::decimal(18,2) as net_amount,
    status in ('paid', 'shipped', 'delivered') as is_revenue
from {{ ref('stg_orders') }}
