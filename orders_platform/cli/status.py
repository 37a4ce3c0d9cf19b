"""orders status. Belongs here: the grid of assets and intervals. Not here: what a state means (recovery/)."""

from datetime import UTC, datetime
from typing import Any

import click

from orders_platform.calendar import parse_interval
from orders_platform.cli.output import console, interval_options, json_option, print_json
from orders_platform.settings import settings

MARKS = {"current": "[green]●[/]", "stale": "[yellow]◐[/]", "missing": "[red]○[/]", "held": "[magenta]■[/]"}


@click.command()
@interval_options
@json_option
def status(first: str | None, last: str | None, as_json: bool) -> None:
    """Every asset and interval: is it published, how many rows, when, by which run and code version.

    \b
    orders status                          the whole calendar
    orders status --from 2026-01-12 --json one object an asset and interval
    """
    rows = [row for row in states() if (first or "") <= row["interval"] <= (last or "9999-12-31")]
    for bound in filter(None, (first, last)):
        parse_interval(bound)
    if as_json:
        print_json(rows)
    else:
        print_grid(rows)


def states() -> list[dict[str, Any]]:
    """One row an (asset, interval) that should exist by now, in graph order."""
    from orders_platform.warehouse import publications
    from orders_platform.warehouse.session import Warehouse

    with Warehouse.from_settings(settings()).read() as con:
        result = con.execute("""
            select c.asset, c."interval",
              case when not is_published then 'missing' when is_held then 'held' when is_current then 'current' else 'stale' end
                as state,
              p.row_count as rows, p.measures, p.digest, p.published_at, p.run_id, p.code_version, p.publication_id
            from published.coverage c left join platform.publications p using (publication_id)
            order by c."interval", c.asset
        """)
        names = [column[0] for column in result.description]
        rows = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
    for row in rows:
        row["measures"] = publications.exact_measures(row["measures"])
    return rows


def print_grid(rows: list[dict[str, Any]]) -> None:
    """Assets down, intervals across, seven to a block, with the counts beneath."""
    out = console()
    if not rows:
        out.print("Nothing is published yet. Run: orders source init, then materialize daily_orders (see README).")
        return
    assets = sorted({row["asset"] for row in rows})
    found = {(row["asset"], row["interval"]): row for row in rows}
    intervals = sorted({row["interval"] for row in rows})
    width = max(map(len, assets))
    out.print(" " * width, " ".join(i[5:] if n % 7 == 0 else "  " for n, i in enumerate(intervals)))
    for asset in assets:
        marks = [MARKS.get(found[asset, i]["state"], "?") if (asset, i) in found else " " for i in intervals]
        total = sum(found[asset, i]["rows"] or 0 for i in intervals if (asset, i) in found)
        out.print(f"{asset:{width}}", "  ".join(marks), f" {total:,} rows")
    counts = {state: sum(row["state"] == state for row in rows) for state in MARKS}
    out.print("   ".join(f"{mark} {state} {counts[state]}" for state, mark in MARKS.items()))
    newest = max((row["published_at"] for row in rows if row["published_at"]), default=None)
    out.print(f"newest publication {newest:%Y-%m-%d %H:%M} UTC; now {datetime.now(UTC):%Y-%m-%d %H:%M} UTC" if newest else "")
