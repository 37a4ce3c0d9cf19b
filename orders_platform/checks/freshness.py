"""Freshness. Belongs here: how far the data reaches, and how far it should. Not here: when something last ran."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from orders_platform.calendar import Calendar, ClosedDays
from orders_platform.recovery.reconciliation import Table
from orders_platform.warehouse import publications
from orders_platform.warehouse.contract import identifier
from orders_platform.warehouse.tables import columns_of
from orders_platform.warehouse.verdicts import Finding


@dataclass(frozen=True)
class Reach:
    """How far one table reaches.

    Attributes:
        complete: Newest interval that is published and may be read.
        filled: Newest of those that has rows.
        ordered_at: Newest ordered_at in the table, UTC, where it has that column.
    """

    complete: str | None = None
    filled: str | None = None
    ordered_at: datetime | None = None


def due(intervals: Sequence[str], calendar: Calendar, step_days: int, now: datetime, within: timedelta) -> str | None:
    """The newest interval whose deadline has passed: its end and some hours; None before the first deadline.

    >>> from datetime import UTC, date
    >>> calendar = Calendar(date(2026, 1, 5))
    >>> due(["2026-01-05", "2026-01-06"], calendar, 1, datetime(2026, 1, 7, 6, tzinfo=UTC), timedelta(hours=8))
    '2026-01-05'
    """
    for interval in reversed(intervals):
        last = calendar.days_of(interval)[-1] if step_days > 1 else interval
        if calendar.window(last)[1] + within <= now:
            return interval
    return None


def freshness(table: Table, wanted: str | None, reach: Reach, closed: ClosedDays) -> Finding:
    """Whether the table reaches the interval that is due, with rows unless that day may be empty.

    Only the newest interval counts: an old one that was repaired a minute ago makes nothing fresh.
    """
    right = f"complete to {reach.complete or 'nothing'}, rows to {reach.filled or 'nothing'}"
    if reach.ordered_at:
        right += f", newest ordered_at {reach.ordered_at:%Y-%m-%d %H:%M:%S} UTC"
    if wanted is None:
        return Finding(table.asset, "", "freshness", True, "nothing is due yet", right)
    left = f"complete to {wanted}"
    if (reach.complete or "") < wanted:
        note = f"dagster asset materialize --select {table.asset} --partition {wanted}"
        return Finding(table.asset, "", "freshness", False, left, right, details=note)
    if (reach.filled or "") < wanted and not closed.reason(wanted):
        return Finding(table.asset, "", "freshness", False, left, right, details=f"{wanted} is published and has no rows")
    return Finding(table.asset, "", "freshness", True, left, right)


def reaches(con: Any, tables: Mapping[str, Table]) -> dict[str, Reach]:
    """How far each table reaches now."""
    rows = con.execute(
        'select asset, max("interval"), max("interval") filter (where row_count > 0) from platform.readable group by asset'
    ).fetchall()
    found = {asset: Reach(complete, filled) for asset, complete, filled in rows}
    for name, table in tables.items():
        column = table.contract.columns.get("ordered_at")
        if column and column.type == "TIMESTAMP" and name in found and columns_of(con, name):
            newest = publications.one(con, f"select max(ordered_at) from orders.{identifier(name)}")[0]
            found[name] = Reach(found[name].complete, found[name].filled, newest)
    return found
