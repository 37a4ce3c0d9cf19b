"""The watch's jobs and schedules. Belongs here: when tables are looked at though nothing ran. Not here: what is looked at."""

from collections.abc import Sequence
from datetime import UTC
from typing import Any

import dagster as dg

from orders_platform.checks.factory import USUAL
from orders_platform.checks.watch import COVERED, FRESH
from orders_platform.partitions import DAILY
from orders_platform.settings import settings

Job = Any
"""What define_asset_job returns; its type is not public."""

RECHECKED_DAYS = 7
"""How far back a source is asked whether it still says what was landed."""


def watch_job(assets: Sequence[dg.AssetsDefinition]) -> Job:
    """`covered` and `fresh` of these assets, without a run of theirs: a table stranded by a failure raises its own alarm."""
    keys = [dg.AssetCheckKey(asset.key, name) for asset in assets for name in (COVERED, FRESH)]
    selection = dg.AssetSelection.checks(*keys)
    return dg.define_asset_job("watch", selection=selection, description="Holes and late data in every table.")


def recheck_job(assets: Sequence[dg.AssetsDefinition]) -> Job:
    """`usual` of these daily assets, for days that were made earlier: a source that moved, inputs that were replaced."""
    daily = [asset for asset in assets if asset.partitions_def == DAILY]
    selection = dg.AssetSelection.checks(*(dg.AssetCheckKey(asset.key, USUAL) for asset in daily))
    return dg.define_asset_job("recheck", selection=selection, description="What has become unusual since it was made.")


def watch_schedule(job: Job) -> dg.ScheduleDefinition:
    """Every hour."""
    return dg.ScheduleDefinition(
        name="watch_schedule", job=job, cron_schedule="20 * * * *", execution_timezone=settings().timezone,
        description="Every hour: coverage and freshness.",
    )  # fmt: skip


def recheck_schedule(job: Job) -> dg.ScheduleDefinition:
    """Every morning, the last days as one run."""

    @dg.schedule(
        name="recheck_schedule", job=job, cron_schedule="0 3 * * *", execution_timezone=settings().timezone,
        description=f"At 03:00 business time, the last {RECHECKED_DAYS} days: has the source moved, were inputs replaced?",
    )  # fmt: skip
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        # Days of which nothing is published are for the watch, which names them.
        days = settings().calendar.days(context.scheduled_execution_time.astimezone(UTC))[-RECHECKED_DAYS - 1 : -1]
        if not days:
            return dg.SkipReason("No day has ended yet.")
        tags = {"dagster/asset_partition_range_start": days[0], "dagster/asset_partition_range_end": days[-1]}
        return dg.RunRequest(run_key=None, tags=tags)

    return schedule
