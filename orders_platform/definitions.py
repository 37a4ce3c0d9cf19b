"""The composition root: every asset, check, job, schedule, sensor and resource, by name. Not here: any of their logic."""

import dagster as dg

from orders_platform.assets.customer_features import customer_features
from orders_platform.assets.fct_orders import fct_orders
from orders_platform.assets.finance_export import finance_export
from orders_platform.assets.raw_orders import raw_orders
from orders_platform.assets.revenue_daily import revenue_daily
from orders_platform.assets.revenue_to_date import revenue_to_date
from orders_platform.assets.stg_orders import stg_orders
from orders_platform.automation.jobs import daily_features, daily_orders, weekly_finance_export
from orders_platform.automation.schedules import daily_features_schedule, daily_orders_schedule, weekly_finance_export_schedule
from orders_platform.checks.factory import checks_of
from orders_platform.source.orders_source import OrdersSource
from orders_platform.warehouse.io_managers import WarehouseIOManager

ASSETS = [raw_orders, stg_orders, fct_orders, revenue_daily, revenue_to_date, customer_features, finance_export]

defs = dg.Definitions(
    assets=ASSETS,
    asset_checks=[
        checks_of(raw_orders, ASSETS, arrives=True, has_volume=True),
        checks_of(stg_orders, ASSETS),
        checks_of(fct_orders, ASSETS, has_volume=True),
        checks_of(revenue_daily, ASSETS),
        checks_of(revenue_to_date, ASSETS),
        checks_of(customer_features, ASSETS),
        checks_of(finance_export, ASSETS),
    ],
    jobs=[daily_orders, daily_features, weekly_finance_export],
    schedules=[daily_orders_schedule, daily_features_schedule, weekly_finance_export_schedule],
    resources={"io_manager": WarehouseIOManager(), "orders_source": OrdersSource()},
    executor=dg.in_process_executor,
)
