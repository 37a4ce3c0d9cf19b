"""The composition root: every asset, check, job, schedule, sensor and resource, by name. Not here: any of their logic."""

import dagster as dg

from orders_platform.assets.customer_features import customer_features
from orders_platform.assets.executive_dashboard import dashboard
from orders_platform.assets.fct_orders import fct_orders
from orders_platform.assets.finance_delivery import finance_delivery
from orders_platform.assets.finance_export import finance_export
from orders_platform.assets.raw_orders import raw_orders
from orders_platform.assets.revenue_daily import revenue_daily
from orders_platform.assets.revenue_to_date import revenue_to_date
from orders_platform.assets.stg_orders import stg_orders
from orders_platform.automation.alarms import corrections_sensor, failure_alarm, recovery_watch
from orders_platform.automation.finance_delivery_sensor import finance_delivery_sensor
from orders_platform.automation.jobs import (
    build_dashboard,
    daily_features,
    daily_orders,
    deliver_finance_export,
    weekly_finance_export,
)
from orders_platform.automation.maintenance import maintenance_job
from orders_platform.automation.reconcile import reconcile_job
from orders_platform.automation.repair import repair_job
from orders_platform.automation.schedules import (
    build_dashboard_schedule,
    daily_features_schedule,
    daily_orders_schedule,
    maintenance_schedule,
    weekly_finance_export_schedule,
)
from orders_platform.automation.watch import recheck_job, recheck_schedule, watch_job, watch_schedule
from orders_platform.checks.factory import checks_of
from orders_platform.checks.watch import watch_of
from orders_platform.source.orders_source import OrdersSource
from orders_platform.warehouse.io_managers import WarehouseIOManager

ASSETS = [raw_orders, stg_orders, fct_orders, revenue_daily, revenue_to_date, customer_features, finance_export]

watch, recheck = watch_job(ASSETS), recheck_job(ASSETS)

defs: dg.Definitions = dg.Definitions(
    assets=[*ASSETS, dashboard(lambda: defs.get_repository_def()), finance_delivery],
    asset_checks=[
        checks_of(raw_orders, ASSETS, arrives=True, has_volume=True),
        checks_of(stg_orders, ASSETS),
        checks_of(fct_orders, ASSETS, has_volume=True),
        checks_of(revenue_daily, ASSETS),
        checks_of(revenue_to_date, ASSETS),
        checks_of(customer_features, ASSETS),
        checks_of(finance_export, ASSETS),
        watch_of(ASSETS, source="raw_orders"),
    ],
    jobs=[
        daily_orders,
        daily_features,
        build_dashboard,
        weekly_finance_export,
        deliver_finance_export,
        reconcile_job(ASSETS),
        repair_job,
        maintenance_job,
        watch,
        recheck,
    ],
    schedules=[
        daily_orders_schedule,
        daily_features_schedule,
        build_dashboard_schedule,
        weekly_finance_export_schedule,
        watch_schedule(watch),
        recheck_schedule(recheck),
        maintenance_schedule,
    ],
    sensors=[finance_delivery_sensor, failure_alarm, recovery_watch, corrections_sensor],
    resources={"io_manager": WarehouseIOManager(), "orders_source": OrdersSource()},
    executor=dg.in_process_executor,
)
