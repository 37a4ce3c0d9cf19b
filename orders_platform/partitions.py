"""The calendar as Dagster partitions. Belongs here: DAILY, WEEKLY and the mappings between intervals. Not here: date arithmetic."""

import warnings

import dagster as dg

from orders_platform.calendar import DAY
from orders_platform.settings import settings

# Backfill policies, mappings before the first day and partitioned checks are beta or preview in 1.13, and needed.
warnings.filterwarnings("ignore", category=dg.BetaWarning)
warnings.filterwarnings("ignore", category=dg.PreviewWarning)

_calendar = settings().calendar
_end = (_calendar.end + DAY).isoformat() if _calendar.end else None

DAILY = dg.DailyPartitionsDefinition(_calendar.start.isoformat(), end_date=_end, timezone=_calendar.timezone)
"""Business days; Dagster's end_date is exclusive."""

WEEKLY = dg.WeeklyPartitionsDefinition(_calendar.start.isoformat(), end_date=_end, timezone=_calendar.timezone, day_offset=1)
"""ISO weeks, named by their Monday (Dagster's own weeks start on Sunday)."""

PREVIOUS_DAY = dg.TimeWindowPartitionMapping(start_offset=-1, end_offset=-1, allow_nonexistent_upstream_partitions=True)
"""An interval reads the day before it; the calendar's first day reads nothing."""

TRAILING_28_DAYS = dg.TimeWindowPartitionMapping(start_offset=-27, end_offset=0, allow_nonexistent_upstream_partitions=True)
"""An interval reads itself and the 27 days before it, as far as the calendar reaches."""
