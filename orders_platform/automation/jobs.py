"""Jobs. Belongs here: what is launched together. Not here: when (schedules.py, sensors.py)."""

import dagster as dg

daily_orders = dg.define_asset_job(
    "daily_orders",
    selection=dg.AssetSelection.assets("raw_orders", "stg_orders", "fct_orders", "revenue_daily"),
    description="One business day from the source to revenue_daily.",
)
