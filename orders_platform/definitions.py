"""The composition root: every asset, check, job, schedule, sensor and resource, by name. Not here: any of their logic."""

import dagster as dg

from orders_platform.assets.fct_orders import fct_orders
from orders_platform.assets.raw_orders import raw_orders
from orders_platform.assets.revenue_daily import revenue_daily
from orders_platform.assets.stg_orders import stg_orders
from orders_platform.automation.jobs import daily_orders
from orders_platform.automation.schedules import daily_orders_schedule
from orders_platform.source.orders_source import OrdersSource
from orders_platform.warehouse.io_managers import WarehouseIOManager

defs = dg.Definitions(
    assets=[raw_orders, stg_orders, fct_orders, revenue_daily],
    jobs=[daily_orders],
    schedules=[daily_orders_schedule],
    resources={"io_manager": WarehouseIOManager(), "orders_source": OrdersSource()},
    executor=dg.in_process_executor,
)
