"""What Dagster's commands refuse before an asset runs, in a sentence. Belongs here: which sentence. Not here: who shows it.

Dagster 1.13 answers `dagster asset materialize` of an interval in the future with a traceback that names no asset.
"""

import argparse
import shlex
import sys
from collections.abc import Sequence
from datetime import datetime

from orders_platform.calendar import DAY, WEEK, Calendar, NotEnded
from orders_platform.errors import OrdersError

REFUSED = ("DagsterInvalidSubsetError", "CheckError")


def refusal(argv: Sequence[str], error: BaseException | None, now: datetime) -> OrdersError | None:
    """The sentence for an error of `dagster asset materialize` or `dg launch`; None where Dagster's own is all there is.

    Args:
        argv: The words of the command.
        error: What ended it; one of ours, anywhere among its causes, speaks for itself.
        now: Aware; what tells an interval of the future.
    """
    spoken, cause = set[int](), error
    while isinstance(cause, Exception) and id(cause) not in spoken:
        if isinstance(cause, OrdersError):
            return cause
        spoken.add(id(cause))
        cause = cause.__cause__  # said by `raise … from`; what merely came before is another matter
    loaded = sys.modules.get("orders_platform.definitions")
    if type(error).__name__ not in REFUSED or loaded is None:
        return None
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--select", "--assets", default="")
    parser.add_argument("--partition")
    parser.add_argument("--partition-range", default="")
    asked, _ = parser.parse_known_args(argv[1:])
    intervals = [asked.partition] if asked.partition else asked.partition_range.split("...")
    if not asked.select or (asked.partition_range and (asked.partition or len(intervals) != 2)):
        return None
    from dagster import AssetSelection

    from orders_platform.partitions import DAILY, WEEKLY
    from orders_platform.settings import settings

    graph = loaded.defs.get_repository_def().asset_graph
    known = {key.to_user_string() for key in graph.get_all_asset_keys()}
    if strangers := [word for word in asked.select.split(",") if word.strip().isidentifier() and word.strip() not in known]:
        return OrdersError(f"There is no asset {', '.join(strangers)}.", f"The assets are {', '.join(sorted(known))}.")
    keys = AssetSelection.from_coercible(asked.select.split(",")).resolve(graph)
    kinds = {key.to_user_string(): graph.get(key).partitions_def for key in sorted(keys)}
    daily, weekly = ([name for name, kind in kinds.items() if kind == wanted] for wanted in (DAILY, WEEKLY))
    if daily and weekly:
        message = f"Days and weeks cannot share a call (daily: {', '.join(daily)}; weekly: {', '.join(weekly)})."
        return OrdersError(message, "Call it once for each.")
    for name in (*daily, *weekly):
        for interval in intervals:
            found = _unknown(name, interval, settings().calendar, now, asked.select, is_weekly=bool(weekly))
            if found:
                return found
    return None


def _unknown(
    asset: str, interval: str, calendar: Calendar, now: datetime, select: str, *, is_weekly: bool
) -> OrdersError | None:
    there = (calendar.weeks if is_weekly else calendar.days)(now)
    newest = there[-1] if there else ""
    remedy = (
        f"The newest is {newest}: dagster asset materialize --select {shlex.quote(select)} --partition {newest}"
        if newest
        else ""
    )
    if not interval:
        return OrdersError(f"{asset} is made of intervals, and none was named.", remedy)
    try:
        calendar.require([interval], now, WEEK if is_weekly else DAY)
    except OrdersError as error:
        return OrdersError(f"{asset} {error.message}", remedy if isinstance(error, NotEnded) else error.remedy)
    return None
