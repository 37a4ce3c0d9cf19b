"""What is usual. Belongs here: warnings about intervals that are not wrong: volume, nulls, rejects, attempts, drift, source.

Not here: what must hold exactly (identities.py, recovery/reconciliation.py). Each is a function of what it is given.
"""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb

from orders_platform.calendar import Calendar, ClosedDays
from orders_platform.checks.volume import WEEKS, usual
from orders_platform.errors import OrdersError
from orders_platform.source.fingerprint import fingerprint_of_landed
from orders_platform.source.reader import Reader
from orders_platform.warehouse import publications
from orders_platform.warehouse.contract import TableContract, identifier, in_intervals
from orders_platform.warehouse.files import safe_path
from orders_platform.warehouse.publications import Pair, Publication
from orders_platform.warehouse.verdicts import Finding


def same_weekdays(interval: str) -> list[str]:
    """The same weekday of the eight weeks before, newest first.

    >>> same_weekdays("2026-03-02")[:2]
    ['2026-02-23', '2026-02-16']
    """
    return [(date.fromisoformat(interval) - timedelta(weeks=week)).isoformat() for week in range(1, WEEKS + 1)]


def volume(
    publication: Publication, current: Mapping[Pair, Publication], closed: ClosedDays, warn: float, fail: float
) -> Finding:
    """Row count against the same weekday of the trailing eight weeks.

    Args:
        publication: The interval.
        current: Current publications, the earlier weeks among them.
        closed: Days that may be empty; neither judged nor part of a history.
        warn: Deviations that are a warning.
        fail: Deviations that are an error (a grave finding).
    """
    asset, interval, rows = publication.asset, publication.interval, publication.row_count
    days = [day for day in same_weekdays(interval) if not closed.reason(day)]
    history = [current[asset, day].row_count for day in days if (asset, day) in current]
    expected = usual(history)
    if closed.reason(interval) or not expected:
        reason = closed.reason(interval) or f"not judged: {len(history)} of {WEEKS} earlier weeks are there, 4 are needed"
        return Finding(asset, interval, "volume", True, f"{rows} rows", f"{rows} rows", details=reason)
    low, high = expected.range(warn)
    lowest, highest = expected.range(fail)
    left = f"{low} to {high} rows"
    if low <= rows <= high:
        return Finding(asset, interval, "volume", True, left, f"{rows} rows")
    grave = not lowest <= rows <= highest
    return Finding(
        asset, interval, "volume", False, left, f"{rows} rows", f"{rows - expected.middle:+g} to the median",
        f"median {expected.middle:g} of {len(history)} weeks; an error outside {lowest} to {highest}", is_grave=grave,
    )  # fmt: skip


def nulls(con: Any, contract: TableContract, asset: str, intervals: Sequence[str]) -> dict[str, Finding]:
    """Share of null values in each column that may have some; the swap has refused them everywhere else."""
    bounds = {c: column.max_null_share for c, column in contract.columns.items() if 0 < column.max_null_share < 1}
    if not bounds or not intervals:
        return {}
    counted = ", ".join(f"count(*) - count({identifier(c)})" for c in bounds)
    partition = identifier(contract.partition)
    rows = con.execute(
        f"select {partition}::varchar, count(*), {counted} from orders.{identifier(asset)} "
        f"where {in_intervals(partition, intervals)} group by 1"
    ).fetchall()
    found = {i: Finding(asset, i, "nulls", True, "0", "0") for i in intervals}
    for interval, total, *empty in rows:
        shares = {c: count / total for c, count in zip(bounds, empty, strict=True)}
        bad = {c: share for c, share in shares.items() if share > bounds[c]}
        left = ", ".join(f"{c} at most {bounds[c]:.2%}" for c in bad or bounds)
        right = ", ".join(f"{c} {share:.2%}" for c, share in (bad or shares).items())
        found[interval] = Finding(asset, interval, "nulls", not bad, left, right)
    return found


def rejected(publication: Publication, companions: Sequence[Publication], bound: float) -> Finding:
    """Share of the rows received that were put aside into a companion table."""
    aside = sum(p.row_count for p in companions)
    total = aside + publication.row_count
    share = aside / total if total else 0.0
    left, right = f"at most {bound:.2%}", f"{share:.2%}, {aside} of {total} rows"
    passed = share <= bound
    note = "" if passed else f'orders query "from published.{companions[0].asset}" names the reasons'
    return Finding(publication.asset, publication.interval, "rejected", passed, left, right, details=note)


def attempts(publication: Publication, made: int, budget: int) -> Finding:
    """Attempts that the publishing run, and the runs it was a retry of, needed."""
    left, right = f"at most {budget} attempts", str(made)
    passed = made <= budget
    note = "" if passed else f"run {publication.run_id} is green and needed every one of them: see its log"
    return Finding(publication.asset, publication.interval, "attempts", passed, left, right, details=note)


def drift(publication: Publication, current: Mapping[Pair, Publication]) -> Finding:
    """Whether what the interval was made from is still what is published; an equal replacement is no drift."""
    asset, interval = publication.asset, publication.interval
    moved = [r for r in publication.inputs if (p := current.get((r.asset, r.interval))) is None or p.digest != r.digest]
    if not moved:
        inputs = f"{len(publication.inputs)} inputs"
        return Finding(asset, interval, "drift", True, inputs, inputs)
    named = ", ".join(f"{r.asset} {r.interval}" for r in moved[:20])
    return Finding(
        asset, interval, "drift", False, f"{len(publication.inputs)} inputs as read", f"{len(moved)} replaced since",
        details=f"{named}; materialize {asset} {interval} again",
    )  # fmt: skip


def same_source(reader: Reader, publication: Publication, calendar: Calendar, landing_root: Path, run_id: str) -> Finding:
    """Whether the source's window still looks like what was landed; asked outside every session, for the source may be slow.

    An interval that this very run captured was read from the source a moment ago, and is not read twice.
    """
    asset, interval = publication.asset, publication.interval
    if publication.run_id == run_id:
        return Finding(asset, interval, "source", True, details="captured by this run")
    try:
        now = reader.fingerprint(interval, *calendar.window(interval))
        with duckdb.connect() as con:
            landed = fingerprint_of_landed(con, [str(safe_path(landing_root, publication.location or ""))])
    except OrdersError as error:
        return Finding(asset, interval, "source", False, details=f"the source could not be compared: {error}")
    except duckdb.Error as error:
        return Finding(
            asset, interval, "source", False, details=f"the landed file could not be read: {str(error).splitlines()[0]}"
        )
    moved = "" if now == landed else now.moved(landed)
    left = f"{landed.rows} rows, newest {landed.last_updated_at}"
    note = f"captured {publication.published_at:%Y-%m-%d %H:%M} UTC; materialize {asset} {interval} again to take it in"
    right = f"{now.rows} rows, newest {now.last_updated_at}"
    return Finding(asset, interval, "source", not moved, left, right, moved, note if moved else "")


def history_of(con: Any, wanted: Sequence[Publication]) -> dict[Pair, Publication]:
    """Current publications that the warnings look at: earlier weeks of each, and what each was made from."""
    pairs: set[Pair] = {(p.asset, day) for p in wanted for day in same_weekdays(p.interval)}
    pairs |= {(r.asset, r.interval) for p in wanted for r in p.inputs}
    return publications.current(con, pairs)
