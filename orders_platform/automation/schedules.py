"""Schedules. Belongs here: when a job runs, in business time. Not here: what it runs (jobs.py)."""

import dagster as dg

from orders_platform.automation.jobs import build_dashboard, daily_features, daily_orders, weekly_finance_export
from orders_platform.automation.maintenance import maintenance_job
from orders_platform.settings import settings

daily_orders_schedule = dg.build_schedule_from_partitioned_job(
    daily_orders,
    hour_of_day=2,
    minute_of_hour=0,
    description="At 02:00 business time, the day that has ended.",
)

daily_features_schedule = dg.build_schedule_from_partitioned_job(
    daily_features,
    hour_of_day=5,
    minute_of_hour=0,
    description="At 05:00 business time, the features as of the end of the day before.",
)

build_dashboard_schedule = dg.ScheduleDefinition(
    name="build_dashboard_schedule",
    job=build_dashboard,
    cron_schedule="30 5 * * *",
    execution_timezone=settings().timezone,
    description="At 05:30 business time, the page of what is known by then.",
)

weekly_finance_export_schedule = dg.build_schedule_from_partitioned_job(
    weekly_finance_export,
    day_of_week=1,
    hour_of_day=6,
    minute_of_hour=0,
    description="Monday 06:00 business time, the week that has ended.",
)

maintenance_schedule = dg.ScheduleDefinition(
    name="maintenance_schedule",
    job=maintenance_job,
    cron_schedule="0 4 * * *",
    execution_timezone=settings().timezone,
    description="At 04:00 business time, between the day's tables and its features. Off until turned on, as every schedule is.",
)
