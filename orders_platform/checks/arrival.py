"""Arrival. Belongs here: whether a landed interval may be empty. Not here: whether it has as many rows as usual (volume.py)."""

from datetime import date

from orders_platform.calendar import ClosedDays
from orders_platform.warehouse.publications import Publication
from orders_platform.warehouse.verdicts import Finding


def arrival(publication: Publication, earlier: Publication | None, closed: ClosedDays) -> Finding:
    """Whether rows arrived, or none may.

    Args:
        publication: The landed interval.
        earlier: The newest earlier publication of it that had rows, if there is one.
        closed: Days that may be empty. Rows that were there before may vanish only on a day closed by its own date.
    """
    asset, interval, rows = publication.asset, publication.interval, publication.row_count
    may_be_empty = closed.reason(interval)
    if rows:
        return Finding(asset, interval, "arrival", True, f"{rows} rows", f"{rows} rows")
    if earlier and date.fromisoformat(interval) not in closed.dates:
        return Finding(
            asset, interval, "arrival", False, f"{earlier.row_count} rows", "0 rows", f"rows {-earlier.row_count:+d}",
            f"the source sent {earlier.row_count} rows before and now sends none; if that is right, "
            f"add {interval} to ORDERS_CLOSED_DAYS and run the check again, otherwise mend the source and capture it again",
        )  # fmt: skip
    if may_be_empty:
        return Finding(asset, interval, "arrival", True, "0", "0", details=f"0 = 0 rows, {may_be_empty}")
    return Finding(
        asset, interval, "arrival", False, "at least 1 row", "0 rows",
        details="the day is not among ORDERS_CLOSED_DAYS; capture it again when the source has it",
    )  # fmt: skip
