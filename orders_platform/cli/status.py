"""orders status. Belongs here: the grid of assets and intervals. Not here: what a state means (recovery/)."""

from contextlib import ExitStack
from datetime import UTC, datetime
from functools import cache
from typing import Any

import click

from orders_platform.calendar import parse_interval
from orders_platform.cli.output import console, interval_options, json_option, print_json
from orders_platform.cli.world import world
from orders_platform.settings import settings

MARKS = {
    "current": "[green]●[/]",
    "stale": "[yellow]◐[/]",
    "missing": "[red]○[/]",
    "claimed": "[red]?[/]",
    "divergent": "[red]≠[/]",
    "held": "[magenta]■[/]",
}

TOTAL = 18
"""Columns of the terminal that the counts at the end of a line take."""


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
    """One row a (table, interval) that should exist by now, in graph order; a companion is in the state of its asset."""
    from orders_platform.recovery import remembered
    from orders_platform.recovery.states import compute
    from orders_platform.warehouse import publications
    from orders_platform.warehouse.session import Warehouse

    with ExitStack() as stack:
        opened = cache(lambda: stack.enter_context(world()))
        graph = remembered.graph(lambda: opened().graph)
        claims = remembered.claims(graph, lambda: opened().claims())
        with Warehouse.from_settings(settings()).read() as con:
            known = compute(con, graph, claims)
            rows = con.execute("""
                select asset, "interval", row_count as rows, measures, digest, published_at, run_id, code_version,
                  publication_id
                from platform.current_publications
            """)
            names = [column[0] for column in rows.description]
            published = {(row[0], row[1]): dict(zip(names, row, strict=True)) for row in rows.fetchall()}
    if not published:
        return []
    rows = []
    for (asset, interval), state in known.items():
        for table in (asset, *graph.nodes[asset].companions):
            row = published.get((table, interval)) or dict.fromkeys(names)
            exact = publications.exact_measures(row["measures"]) if row["measures"] else {}
            given = {"asset": table, "interval": interval, "state": state.name, "reason": state.reason}
            rows.append({**given, **{name: value for name, value in row.items() if name not in given}, "measures": exact})
    return rows


def print_grid(rows: list[dict[str, Any]]) -> None:
    """Assets down, intervals across, as many weeks to a block as the terminal is wide, with the counts beneath."""
    out = console()
    if not rows:
        out.print("Nothing is published yet. Run: orders source init, then materialize daily_orders (see README).")
        return
    assets = list(dict.fromkeys(row["asset"] for row in rows))
    found = {(row["asset"], row["interval"]): row for row in rows}
    intervals = sorted({row["interval"] for row in rows})
    width = max(map(len, assets))
    step = max(7, (out.width - width - TOTAL) // 3 // 7 * 7)
    for block in (intervals[n : n + step] for n in range(0, len(intervals), step)):
        out.print(" " * width, "".join(f"{i:21}" for i in block[::7]).rstrip())
        for asset in assets:
            marks = [MARKS.get(found[asset, i]["state"], "?") if (asset, i) in found else " " for i in block]
            total = sum(found[asset, i]["rows"] or 0 for i in block if (asset, i) in found)
            out.print(f"{asset:{width}}", "  ".join(marks), f" {total:,} rows")
    counts = {state: sum(row["state"] == state for row in rows) for state in MARKS}
    out.print("   ".join(f"{mark} {state} {counts[state]}" for state, mark in MARKS.items()))
    newest = max((row["published_at"] for row in rows if row["published_at"]), default=None)
    out.print(f"newest publication {newest:%Y-%m-%d %H:%M} UTC; now {datetime.now(UTC):%Y-%m-%d %H:%M} UTC" if newest else "")
