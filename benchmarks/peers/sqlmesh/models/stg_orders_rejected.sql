MODEL (
  name orders.stg_orders_rejected,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column order_date
  )
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
    order_date,
    received.order_id, received.customer_id, received.ordered_at, received.updated_at, received.country, received.currency,
    received.status, received.gross_amount, received.discount_amount,
    list_filter([
        case when order_id is null then 'order_id is missing' end,
        case when ordered_at is null then 'ordered_at is missing or unreadable' end,
        case when ordered_at < order_date or ordered_at >= order_date + 1 then 'ordered_at lies outside the interval' end,
        case when updated_at is null then 'updated_at is missing or unreadable' end,
        case when country is null then 'country is missing' end,
        case when currency is null or not regexp_full_match(currency, '[A-Z]{3}') then 'currency is not a code of three letters' end,
        case when status is null or status not in ('placed', 'paid', 'shipped', 'delivered', 'cancelled', 'refunded') then 'status is missing or unknown' end,
        case when gross_amount is null then 'gross_amount is missing or unreadable' end,
        case when gross_amount < 0 then 'gross_amount is below zero' end,
        case when contains(received.gross_amount, '.') and length(rtrim(received.gross_amount, '0')) - instr(received.gross_amount, '.') > 2 then 'gross_amount has more than two decimals' end,
        case when discount_amount is null then 'discount_amount is missing or unreadable' end,
        case when discount_amount < 0 then 'discount_amount is below zero' end,
        case when contains(received.discount_amount, '.') and length(rtrim(received.discount_amount, '0')) - instr(received.discount_amount, '.') > 2 then 'discount_amount has more than two decimals' end
    ], reason -> reason is not null)::varchar[] as reasons
from typed
where
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
