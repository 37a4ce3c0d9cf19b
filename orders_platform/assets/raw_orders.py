"""raw_orders: the day's rows as received. Belongs here: what is captured. Not here: reading the source, writing the file."""

import dagster as dg
import pyarrow as pa

from orders_platform.assets.decorator import warehouse_asset
from orders_platform.partitions import DAILY
from orders_platform.settings import settings
from orders_platform.source.orders_source import COLUMNS, OrdersSource
from orders_platform.warehouse.contract import Column, TableContract
from orders_platform.warehouse.values import Capture

CONTRACT = TableContract(
    grain="one source row, as received",
    columns={
        "order_date": Column("DATE", "business day of the capture window"),
        **{name: Column("VARCHAR", "as received", max_null_share=1) for name in COLUMNS},
    },
    key=(),
    allow_empty=True,
)

REPEATING = ("country", "currency", "status")
"""Columns of few values: landed as dictionaries, of which staging types each value once."""

SOURCE_POOL = "source"
"""Dagster's pool of captures; it binds only where dagster.yaml gives it a limit, as deploy/dagster.yaml does over all hosts."""

RETRY = dg.RetryPolicy(max_retries=3, delay=2.0, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS)


@warehouse_asset(
    CONTRACT,
    version=settings().source_query,
    kinds=frozenset({"parquet"}),
    partitions_def=DAILY,
    group_name="orders",
    owners=["team:data"],
    retry_policy=RETRY,
    pool=SOURCE_POOL,
)
def raw_orders(orders_source: OrdersSource) -> Capture:
    """Capture each day's window of the source once, into an immutable file.

    **Source**: ORDERS_SOURCE_QUERY. **Window**: ordered_at within the business day. **Grain**: a row as received, all text.
    """
    window = settings().calendar.window
    schema = pa.schema([(name, pa.string()) for name in COLUMNS])
    return Capture(lambda interval: orders_source.capture(interval, *window(interval)), schema, REPEATING)
