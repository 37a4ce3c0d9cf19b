"""Jobs. Belongs here: what is launched together. Not here: when (schedules.py, sensors.py)."""

import dagster as dg

daily_orders = dg.define_asset_job(
    "daily_orders",
    selection=dg.AssetSelection.assets("raw_orders", "stg_orders", "fct_orders", "revenue_daily", "revenue_to_date"),
    description="One business day from the source to the balance since 1 January; the day before must be there.",
)

daily_features = dg.define_asset_job(
    "daily_features",
    selection=dg.AssetSelection.assets("customer_features"),
    description="The features of the customers active in the 28 days that end with the business day.",
)

build_dashboard = dg.define_asset_job(
    "build_dashboard",
    selection=dg.AssetSelection.assets("executive_dashboard"),
    description="The dashboard page, from whatever is published: also when some days are stale, held or missing.",
)

weekly_finance_export = dg.define_asset_job(
    "weekly_finance_export",
    selection=dg.AssetSelection.assets("finance_export"),
    description="The file of one ISO week; it is sent by another job.",
)

DELIVERY_LIMIT_SECONDS = 900
"""Longer than any delivery takes; a run that still stands as started after that has been killed."""

deliver_finance_export = dg.define_asset_job(
    "deliver_finance_export",
    selection=dg.AssetSelection.assets("finance_delivery"),
    tags={"dagster/max_runtime": str(DELIVERY_LIMIT_SECONDS)},
    description="Sends one week's file to the partner; the only job with an effect outside this house.",
)
