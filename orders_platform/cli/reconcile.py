"""orders reconcile. Belongs here: its options, progress and output. Not here: what is compared (recovery/)."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import Progress

from orders_platform.calendar import describe, parse_interval
from orders_platform.cli.output import console, interval_options, json_option, print_json, print_table
from orders_platform.settings import settings

if TYPE_CHECKING:
    from orders_platform.recovery.reconcile import Line

SHOWN = 40


@click.command()
@click.argument("interval", required=False)
@interval_options
@click.option("--source", "with_source", is_flag=True, help="Read the live source too and compare it with the landed rows.")
@json_option
def reconcile(interval: str | None, first: str | None, last: str | None, with_source: bool, as_json: bool) -> None:
    """Compare every published table with what was landed, read and recorded: match, divergent, missing or held.

    Without an interval: every day that has ended. Weeks are compared where the range covers them whole. What is found is
    recorded: whatever would read a divergent interval is refused from then on. Exit code 1 unless everything matches.

    \b
    orders reconcile 2026-01-06
    orders reconcile --from 2026-01-05 --to 2026-01-11 --json
    orders reconcile --source              also: did the source change since it was landed?
    """
    if interval and (first or last):
        raise click.UsageError("Name one INTERVAL or a range with --from and --to, not both.")
    if first and last and last < first:
        raise click.UsageError(f"--from {first} lies after --to {last}.")
    values = settings()
    now = datetime.now(UTC)
    for bound in filter(None, (interval, first, last)):
        parse_interval(bound)
    begin, end = interval or first or values.start_date.isoformat(), interval or last or "9999-12-31"
    days = [day for day in values.calendar.days(now) if begin <= day <= end]
    if interval or not days:
        days = values.calendar.require([interval or begin], now)

    from orders_platform.checks.tables import tables_of
    from orders_platform.definitions import ASSETS
    from orders_platform.recovery.reconcile import MATCH, Reconciler
    from orders_platform.source.reader import reader_of
    from orders_platform.warehouse.session import Warehouse

    reconciler = Reconciler(
        Warehouse.from_settings(values), tables_of(ASSETS), values, reader_of(values) if with_source else None
    )
    steps = reconciler.steps(reconciler.expected(days, values.calendar, is_single=interval is not None))
    errors = Console(stderr=True)
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("Reconciling", total=len(steps))
        lines = list(reconciler.run(steps, lambda: progress.advance(task)))
    bad = [line for line in lines if line.verdict != MATCH]
    if as_json:
        names = ("asset", "interval", "verdict", "left", "right", "difference", "details")
        print_json({**{n: getattr(x, n) for n in names}, "keys": [vars(key) for key in x.differences]} for x in lines)
    else:
        steps_of = {name: timedelta(days=table.contract.step_days) for name, table in reconciler.tables.items()}
        print_lines(bad, steps_of)
        counts = Counter(line.verdict for line in lines)
        console().print(f"{days[0]} to {days[-1]}: " + ", ".join(f"{n} {verdict}" for verdict, n in counts.items()))
    if bad:
        sys.exit(1)


def print_lines(lines: "Sequence[Line]", steps: Mapping[str, timedelta]) -> None:
    """What does not match, equal lines of one table as one."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for x in lines:
        alike.setdefault((x.asset, x.verdict, x.left, x.right, x.difference, x.details), []).append(x.interval)
    rows = [(key[0], describe(intervals, steps[key[0]]), *key[1:]) for key, intervals in alike.items()]
    if rows:
        columns = ("asset", "interval", "verdict", "should be", "is", "difference", "details")
        print_table("Not matching", columns, rows[:SHOWN])
    if len(rows) > SHOWN:
        console().print(f"… and {len(rows) - SHOWN} more: --json names all")
