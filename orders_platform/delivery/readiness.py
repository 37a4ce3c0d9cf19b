"""Readiness: may a week leave the house? Belongs here: what is published of it, and everything it still waits for.

Not here: what the ledger already knows about it (decide.py).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orders_platform.calendar import DAY, WEEK, Calendar, describe
from orders_platform.delivery.states import Content
from orders_platform.warehouse import gates, publications
from orders_platform.warehouse.publications import Pair, Publication

EXPORT, DAILY = "finance_export", "revenue_daily"


@dataclass(frozen=True)
class Week:
    """One week of the export.

    Attributes:
        content: What is published of it; None when it has not been built.
        waits: What it waits for before it may be sent; empty when nothing.
    """

    week: str
    content: Content | None
    waits: tuple[str, ...] = ()


def contents(con: Any, weeks: Sequence[str]) -> dict[str, Content]:
    """What is published of each week that has been built."""
    found = publications.current(con, [(EXPORT, week) for week in weeks])
    return {
        week: Content(EXPORT, week, p.sha256 or p.digest, p.location or "", p.publication_id) for (_, week), p in found.items()
    }


def read_weeks(
    con: Any,
    calendar: Calendar,
    weeks: Sequence[str],
    marked: Callable[[Any, Iterable[Pair]], list[Pair]] = lambda con, pairs: [],
) -> list[Week]:
    """Each week with what it waits for: its days and its file published, current, reconciled, and nothing upstream held.

    Args:
        con: A session of the warehouse.
        calendar: The business calendar.
        weeks: Mondays.
        marked: Those of some pairs that Dagster claims to be materialized and nobody made.
    """
    built = contents(con, weeks)
    days = {week: calendar.days_of(week) for week in weeks}
    pairs: list[Pair] = [(EXPORT, week) for week in weeks] + [(DAILY, day) for week in weeks for day in days[week]]
    current = publications.current(con, pairs)
    stale = _stale(con, pairs)
    unjudged = {(p.asset, p.interval) for p in gates.unreconciled(con, current.values())}
    made_of = upstream(con, current)
    above = publications.current(con, {pair for found in made_of.values() for pair in found})
    refused = gates.refusals(con, [*current.values(), *above.values()])
    claimed = marked(con, {*pairs, *above})
    made = []
    for week in weeks:
        own = [(DAILY, day) for day in days[week]] + [(EXPORT, week)]
        around = sorted({pair for mine in own for pair in made_of.get(mine, {mine})})
        waits = [reason for pair, (reason, _) in sorted(refused.items()) if pair in around]
        waits += [f"{' '.join(pair)} was marked as materialized, and not made since" for pair in claimed if pair in around]
        for asset, step in ((DAILY, DAY), (EXPORT, WEEK)):
            mine = [pair for pair in own if pair[0] == asset]
            for text, found in (
                ("has not been published", [i for a, i in mine if (a, i) not in current]),
                ("is stale: an input was replaced since", [i for a, i in mine if (a, i) in stale]),
                ("has not been reconciled yet", [i for a, i in mine if (a, i) in unjudged]),
            ):
                if found:
                    waits.append(f"{asset} {describe(found, step)} {text}")
        made.append(Week(week, built.get(week), tuple(waits)))
    return made


def _stale(con: Any, pairs: Sequence[Pair]) -> set[Pair]:
    rows = con.execute(
        'select asset, "interval" from published.coverage where is_published and not is_current '
        'and asset in (select unnest(?::varchar[])) and "interval" in (select unnest(?::varchar[]))',
        [sorted({asset for asset, _ in pairs}), sorted({interval for _, interval in pairs})],
    ).fetchall()
    return set(rows)


def upstream(con: Any, current: Mapping[Pair, Publication]) -> dict[Pair, set[Pair]]:
    """Each pair with everything it was made of, itself included.

    The edges are materialized: a window inside the recursive term loses rows on several threads (DuckDB 1.5.5: here in a
    quarter to two thirds of the runs).
    """
    rows = con.execute(
        """with recursive edges as materialized (from platform.reads), up(asset, "interval", up_asset, up_interval) as (
             select asset, "interval", asset, "interval" from platform.current_publications
             where publication_id in (select unnest(?::uuid[]))
             union
             select up.asset, up."interval", r.input_asset, r.input_interval
             from up join edges r on r.asset = up.up_asset and r."interval" = up.up_interval)
           select * from up""",
        [[p.publication_id for p in current.values()]],
    ).fetchall()
    found: dict[Pair, set[Pair]] = {}
    for asset, interval, up_asset, up_interval in rows:
        found.setdefault((asset, interval), set()).add((up_asset, up_interval))
    return found
