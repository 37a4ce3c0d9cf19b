MODEL (
  name orders.stg_orders,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column order_date
  ),
  grain (order_date, order_id)
);

with typed as (
    select
        order_date,
        nullif(trim(r.order_id), '') as order_id,
        nullif(trim(r.customer_id), '') as customer_id,
        try_cast(r.ordered_at as timestamp) as ordered_at,
        try_cast(r.updated_at as timestamp) as updated_at,
        nullif(trim(r.country), '') as country,
        upper(trim(r.currency)) as currency,
        lower(trim(r.status)) as status,
        try_cast(r.gross_amount as decimal(18,2)) as gross_amount,
        try_cast(r.discount_amount as decimal(18,2)) as discount_amount,
        struct_pack(order_id := r.order_id, customer_id := r.customer_id, ordered_at := r.ordered_at, updated_at := r.updated_at,
            country := r.country, currency := r.currency, status := r.status, gross_amount := r.gross_amount,
            discount_amount := r.discount_amount) as received
    from read_parquet(@landed, hive_partitioning = true, hive_types = {'order_date': date}) r
    where order_date between @start_date and @end_date
)
select
    order_date, order_id, customer_id, ordered_at, updated_at, country, currency, status, gross_amount, discount_amount,
    count(*) over (partition by order_date, order_id) - 1 as superseded_rows
from typed
where not (
    coalesce(order_id is null, false)
    or coalesce(ordered_at is null, false)
    or coalesce(ordered_at < order_date or ordered_at >= order_date + 1, false)
    or coalesce(updated_at is null, false)
    or coalesce(country is null, false)
    or coalesce(currency is null or not regexp_full_match(currency, '[A-Z]{3}'), false)
    or coalesce(status is null or status not in ('placed', 'paid', 'shipped', 'delivered', 'cancelled', 'refunded'), false)
    or coalesce(gross_amount is null, false)
    or coalesce(gross_amount < 0, false)
    or coalesce(contains(received.gross_amount, '.') and length(rtrim(received.gross_amount, '0')) - instr(received.gross_amount, '.') > 2, false)
    or coalesce(discount_amount is null, false)
    or coalesce(discount_amount < 0, false)
    or coalesce(contains(received.discount_amount, '.') and length(rtrim(received.discount_amount, '0')) - instr(received.discount_amount, '.') > 2, false)
)
qualify row_number() over (
    partition by order_date, order_id
    order by updated_at desc, ordered_at desc, status, gross_amount desc, discount_amount, customer_id, country, currency
) = 1
