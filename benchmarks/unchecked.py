"""The platform's assets without a single check. Belongs here: what a run is compared with to tell what its checks cost."""

import dagster as dg

from orders_platform.definitions import ASSETS
from orders_platform.source.orders_source import OrdersSource
from orders_platform.warehouse.io_managers import WarehouseIOManager

defs = dg.Definitions(
    assets=ASSETS,
    resources={"io_manager": WarehouseIOManager(), "orders_source": OrdersSource()},
    executor=dg.in_process_executor,
)
