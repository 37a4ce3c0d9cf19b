with typed as ({{ typed() }})
select order_date, received.*, list_filter([{{ listed() }}], lambda reason: reason is not null) as reasons
from typed
where {{ refused() }}
