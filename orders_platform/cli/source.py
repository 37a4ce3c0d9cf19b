"""`orders source`. Belongs here: filling a sample source and counting what no interval selects. Not here: how that is done."""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import date, datetime, timedelta
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from orders_platform.errors import OrdersError
from orders_platform.settings import settings
from orders_platform.source.errors import parse_url, shown
from orders_platform.source.fill import fill, holds, rows_there
from orders_platform.source.generate import generated_day
from orders_platform.source.reader import reader_of
from orders_platform.source.sample import SAMPLE, Row, read_sample, sample_csv

_yes = click.option("--yes", "-y", is_flag=True, help="Replace the rows that are there without asking.")
_json = click.option("--json", "as_json", is_flag=True, help="Print a list of objects.")


@click.group()
def source() -> None:
    """Fill and inspect the source database (ORDERS_SOURCE_URL; default: source.db under ORDERS_HOME)."""


def _url() -> str:
    return settings().source_url


def _say(text: str, values: dict[str, object], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([values], indent=2))
    else:
        click.echo(text)


def _may_replace(yes: bool) -> None:
    """Ask before rows are lost.

    Raises:
        OrdersError: There are rows, and nobody to ask.
    """
    there = rows_there(_url())
    if not there or yes:
        return
    where = f"Table orders of {shown(parse_url(_url()))} holds {there:,} other rows."
    if not sys.stdin.isatty():
        raise OrdersError(where, "Add --yes to replace them.")
    click.confirm(f"{where} Replace them?", abort=True)


@source.command(short_help="Load the committed sample: four weeks, with the mess of real sources.")
@_yes
@_json
def init(yes: bool, as_json: bool) -> None:
    """Load the committed sample: four ISO weeks from 2026-01-05, about 60 orders a day, with the mess of real sources.

    Does nothing when exactly these rows are there already. SQLite only.

    \b
    Example:
      orders source init
    """
    url = parse_url(_url())
    if url.get_backend_name() != "sqlite":
        raise OrdersError(
            f"The sample has dates and amounts that {shown(url)} cannot store; it loads into SQLite only.",
            "Use `orders source generate`, or leave ORDERS_SOURCE_URL unset.",
        )
    rows = read_sample()
    changed = not holds(_url(), rows)
    if changed:
        _may_replace(yes)
        fill(_url(), [rows])
    text = f"Loaded {len(rows):,} rows into {shown(url)}." if changed else f"{shown(url)} holds the sample already."
    _say(text, {"source": shown(url), "rows": len(rows), "changed": changed}, as_json)


@source.command(short_help="Fill a source of any size, the same on any machine.")
@click.option("--days", type=click.IntRange(min=1), required=True, help="Days of orders.")
@click.option("--orders-per-day", type=click.IntRange(1, 100_000_000), required=True, help="Different orders a day.")
@click.option("--seed", type=click.IntRange(0, 2**31), default=1, show_default=True, help="Another seed, other orders.")
@click.option(
    "--start", type=click.DateTime(["%Y-%m-%d"]), help="First day, in UTC. [default: ORDERS_START_DATE]", metavar="YYYY-MM-DD"
)
@_yes
@_json
def generate(days: int, orders_per_day: int, seed: int, start: datetime | None, yes: bool, as_json: bool) -> None:
    """Fill a source of any size: the same arguments make the same rows, on any machine.

    About 1 % more rows are exact duplicates and 0.5 % later versions of an order. Replaces table orders in one
    transaction. SQLite gets text columns, any other database timestamps and numerics.

    \b
    Example:
      orders source generate --days 30 --orders-per-day 100000 --seed 7
    """
    _may_replace(yes)
    first = start.date() if start else settings().start_date
    dates = [first + timedelta(days=number) for number in range(days)]
    count = fill(_url(), _with_progress(dates, orders_per_day, seed))
    where = shown(parse_url(_url()))
    values = {"source": where, "rows": count, "from": str(dates[0]), "to": str(dates[-1]), "seed": seed}
    _say(f"Wrote {count:,} rows, {dates[0]} to {dates[-1]}, into {where}.", values, as_json)


def _with_progress(dates: Iterable[date], orders: int, seed: int) -> Iterator[list[Row]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("days"), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        for day in progress.track(list(dates), description="Generating"):
            yield from generated_day(day, orders, seed)


@source.command(short_help="Count the source rows that no interval selects.")
@click.option("--strict", is_flag=True, help="Exit 1 when some row can never be selected, or when that cannot be known.")
@_json
def check(strict: bool, as_json: bool) -> None:
    """Count the source rows that no interval selects: no date, an unreadable date, a date outside the calendar.

    Selected rows are counted with ORDERS_SOURCE_QUERY, all rows with ORDERS_SOURCE_TOTAL_QUERY (default: table orders, when
    the query is the default one).

    \b
    Examples:
      orders source check
      orders source check --strict --json
    """
    values = settings()
    found = reader_of(values).check(values.calendar)
    if as_json:
        click.echo(json.dumps([asdict(found)], indent=2))
    else:
        calendar = values.calendar
        table = Table("rows", "count", "meaning", title=f"source {shown(parse_url(values.source_url))}", title_justify="left")
        unknown = "not known: set ORDERS_SOURCE_TOTAL_QUERY"
        for name, count, meaning in (
            ("total", found.total, "all source rows"),
            ("before", found.before, f"dated before {calendar.start}: no interval selects them"),
            ("within", found.within, f"selected by the days {calendar.start} to {calendar.end or 'now and later'}"),
            (
                "after",
                found.after,
                f"dated after {calendar.end}: no interval selects them" if calendar.end else "the end is open",
            ),
            ("unselectable", found.unselectable, "without a date, or with an unreadable one: no interval ever selects them"),
        ):
            table.add_row(name, unknown if count is None else f"{count:,}", meaning)
        Console().print(table)
    if strict and found.unselectable != 0:
        sys.exit(1)


@source.command(hidden=True)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), default=SAMPLE, help="File to write.")
def sample(out: Path) -> None:
    """Write the sample file anew (development: after a change of its generator)."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(sample_csv())
    click.echo(f"Wrote {out}.")
