with typed as ({{ typed() }})
select
    * exclude (received),
    count(*) over (partition by order_date, order_id) - 1 as superseded_rows
from typed
where not ({{ refused() }})
qualify row_number() over (
    partition by order_date, order_id
    order by updated_at desc, ordered_at desc, status, gross_amount desc, discount_amount, customer_id, country, currency
) = 1
