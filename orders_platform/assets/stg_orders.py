"""stg_orders and stg_orders_rejected: every landed row, typed or refused. Belongs here: both contracts and their SQL."""

from orders_platform.assets.decorator import warehouse_asset
from orders_platform.partitions import DAILY
from orders_platform.source.orders_source import COLUMNS
from orders_platform.warehouse.contract import Column, TableContract
from orders_platform.warehouse.values import Query, Slice, Tables

STATUSES = ("placed", "paid", "shipped", "delivered", "cancelled", "refunded")

CONTRACT = TableContract(
    grain="one order",
    columns={
        "order_date": Column("DATE", "business day of ordered_at"),
        "order_id": Column("VARCHAR", "the source's own id"),
        "customer_id": Column("VARCHAR", "who ordered; a guest has none", max_null_share=0.9),
        "ordered_at": Column("TIMESTAMP", "when it was ordered, UTC"),
        "updated_at": Column("TIMESTAMP", "when the source last changed it, UTC"),
        "country": Column("VARCHAR", "as the source writes it"),
        "currency": Column("VARCHAR", "ISO 4217 code of the amounts"),
        "status": Column("VARCHAR", "where the order stands", accepted=STATUSES),
        "gross_amount": Column("DECIMAL(18,2)", "before discount", unit="currency"),
        "discount_amount": Column("DECIMAL(18,2)", "taken off", unit="currency"),
        "superseded_rows": Column(
            "BIGINT",
            "landed duplicates and earlier versions that this row replaces",
            unit="rows",
            source=("raw_orders.order_id",),
        ),
    },
    key=("order_id",),
    measures=("gross_amount", "discount_amount", "superseded_rows"),
    allow_empty=True,
)

REJECTED = TableContract(
    grain="one landed row that cannot be staged",
    columns={
        "order_date": Column("DATE", "interval it was landed in"),
        "reasons": Column("VARCHAR[]", "everything that is wrong with it"),
        **{name: Column("VARCHAR", "as received", max_null_share=1) for name in COLUMNS},
    },
    key=(),
    allow_empty=True,
)


def _utc(column: str) -> str:
    """A text as UTC. A cast to timestamp drops an offset such as +02:00 (measured); the one that heeds it costs six times more."""
    plain = f"{column} like '____-__-__ __:__:__' or {column} like '____-__-__ __:__:__.______'"
    heeding = f"try_cast({column} as timestamptz) at time zone 'UTC'"
    return f"case when {plain} then try_cast({column} as timestamp) else {heeding} end"


def _trimmed(column: str) -> str:
    """A text without spaces around it. ASCII without any needs no closer look (measured: a tenth of the query's time each)."""
    return (
        f"case when strlen({column}) = length({column}) and not contains({column}, ' ') then {column} else trim({column}) end"
    )


# One row a landed row: `received` as it came, the rest typed, NULL where it cannot be.
TYPED = f"""
    select
        order_date,
        nullif({_trimmed("r.order_id")}, '') as order_id,
        nullif({_trimmed("r.customer_id")}, '') as customer_id,
        {_utc("r.ordered_at")} as ordered_at,
        {_utc("r.updated_at")} as updated_at,
        nullif(trim(r.country), '') as country,
        upper(trim(r.currency)) as currency,
        lower(trim(r.status)) as status,
        try_cast(r.gross_amount as decimal(18,2)) as gross_amount,
        try_cast(r.discount_amount as decimal(18,2)) as discount_amount,
        w.start_at,
        w.end_at,
        r as received
    from raw_orders r join run_intervals w on w.interval_date = r.order_date
"""


def _not_cents(column: str) -> str:
    """Whether a text amount has a digit that two decimals would lose; refused, because a cast would round it."""
    text = f"received.{column}"
    exponent = f"contains({text}, 'e-') or contains({text}, 'E-')"
    digits = f"contains({text}, '.') and length(rtrim({text}, '0 ')) - instr({text}, '.') > 2"
    # Two characters after the point, as nearly every amount has, need no closer look (measured: a third of the query's time).
    return f"case when length({text}) - instr({text}, '.') = 2 then false else {digits} or {exponent} end"


# reason -> when it holds; exactly the rows with no reason are staged.
REASONS = {
    "order_id is missing": "order_id is null",
    "ordered_at is missing or unreadable": "ordered_at is null",
    "ordered_at lies outside the interval": "not (ordered_at >= start_at and ordered_at < end_at)",
    "updated_at is missing or unreadable": "updated_at is null or not isfinite(updated_at)",
    "country is missing": "country is null",
    "currency is not a code of three letters": r"currency is null or not regexp_full_match(currency, '[A-Z]{3}')",
    "status is missing or unknown": f"status is null or not list_contains({[*STATUSES]}, status)",
    **{
        reason: condition
        for amount in ("gross_amount", "discount_amount")
        for reason, condition in {
            f"{amount} is missing or unreadable": f"{amount} is null",
            f"{amount} is below zero": f"{amount} < 0",
            f"{amount} has more than two decimals": _not_cents(amount),
        }.items()
    },
}
REFUSED = f"coalesce({' or '.join(f'({condition})' for condition in REASONS.values())}, false)"
LISTED = ", ".join(f"case when {condition} then '{reason}' end" for reason, condition in REASONS.items())


@warehouse_asset(
    CONTRACT,
    companions={"stg_orders_rejected": REJECTED},
    partitions_def=DAILY,
    group_name="orders",
    owners=["team:data"],
)
def stg_orders(raw_orders: Slice) -> Tables:
    """Type each landed row; keep the latest version of each order; put what cannot be typed aside with its reasons.

    **Grain**: order; in stg_orders_rejected a landed row. **Source**: the landed file, never the source itself.
    Of several rows of one order the latest updated_at stays; ties are broken by content, so the order of rows never matters.
    """
    staged = Query(f"""
        with typed as ({TYPED})
        select
            order_date, order_id, customer_id, ordered_at, updated_at, country, currency, status, gross_amount, discount_amount,
            count(*) over (partition by order_date, order_id) - 1 as superseded_rows
        from typed
        where not ({REFUSED})
        qualify row_number() over (
            partition by order_date, order_id
            order by updated_at desc, ordered_at desc, status, gross_amount desc, discount_amount, customer_id, country, currency
        ) = 1
    """)
    rejected = Query(f"""
        with typed as ({TYPED})
        select order_date, list_filter([{LISTED}], lambda reason: reason is not null) as reasons, {", ".join(f"received.{c}" for c in COLUMNS)}
        from typed
        where {REFUSED}
    """)
    return Tables(staged, {"stg_orders_rejected": rejected})
