{% macro typed() %}
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
    from {{ source('landing', 'raw_orders') }} r
{% endmacro %}

{% macro reasons() %}
    {%- set found = {
        'order_id is missing': "order_id is null",
        'ordered_at is missing or unreadable': "ordered_at is null",
        'ordered_at lies outside the interval': "ordered_at < order_date or ordered_at >= order_date + 1",
        'updated_at is missing or unreadable': "updated_at is null",
        'country is missing': "country is null",
        'currency is not a code of three letters': "currency is null or not regexp_full_match(currency, '[A-Z]{3}')",
        'status is missing or unknown': "status is null or status not in ('placed', 'paid', 'shipped', 'delivered', 'cancelled', 'refunded')"
    } -%}
    {%- for amount in ('gross_amount', 'discount_amount') -%}
        {%- do found.update({
            amount ~ ' is missing or unreadable': amount ~ " is null",
            amount ~ ' is below zero': amount ~ " < 0",
            amount ~ ' has more than two decimals': "contains(received." ~ amount ~ ", '.') and length(rtrim(received." ~ amount
                ~ ", '0')) - instr(received." ~ amount ~ ", '.') > 2"
        }) -%}
    {%- endfor -%}
    {{ return(found) }}
{% endmacro %}

{% macro refused() -%}
    {%- for condition in reasons().values() %}coalesce({{ condition }}, false){% if not loop.last %} or {% endif %}{% endfor -%}
{%- endmacro %}

{% macro listed() -%}
    {%- for reason, condition in reasons().items() %}case when {{ condition }} then '{{ reason }}' end{% if not loop.last %}, {% endif %}{% endfor -%}
{%- endmacro %}
