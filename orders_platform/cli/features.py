"""orders features. Belongs here: writing and verifying training sets. Not here: what the features are."""

from dataclasses import asdict
from pathlib import Path

import click
from rich.progress import Progress

from orders_platform.calendar import describe
from orders_platform.cli.output import json_option, print_json, print_table
from orders_platform.settings import settings

TABLE = "customer_features"


@click.group()
def features() -> None:
    """Training sets of customer_features: written with a manifest, and verified later."""


@features.command("training-set")
@click.option("--from", "first", metavar="DAY", required=True, help="First feature date.")
@click.option("--to", "last", metavar="DAY", required=True, help="Last feature date, inclusive.")
@click.option("--out", "file", metavar="FILE.parquet", required=True, type=click.Path(path_type=Path, dir_okay=False))
@json_option
def training_set(first: str, last: str, file: Path, as_json: bool) -> None:
    """Write the features of a range to a new Parquet file, and beside it a manifest of the publications it was read from.

    Refuses a range with a missing, held or stale day: a set is what it says, or it is not written. FILE.parquet.manifest.json
    holds the publication, digest, code version and inputs of every day, and the SHA-256 of the file.

    \b
    orders features training-set --from 2026-01-05 --to 2026-02-01 --out train.parquet
    """
    from datetime import UTC, datetime

    from orders_platform.assets.customer_features import CONTRACT
    from orders_platform.calendar import DAY, parse_interval
    from orders_platform.warehouse import training_set as sets
    from orders_platform.warehouse.session import Warehouse

    start, end = parse_interval(first), parse_interval(last)
    if end < start:
        raise click.UsageError(f"--to {last} lies before --from {first}.")
    days = [(start + n * DAY).isoformat() for n in range((end - start) // DAY + 1)]
    settings().calendar.require(days, datetime.now(UTC))
    with Progress(transient=True, disable=as_json) as bar, Warehouse.from_settings(settings()).read() as con:
        bar.add_task(f"Writing {file.name}", total=None)
        manifest = sets.write(con, TABLE, CONTRACT, days, file)
    if as_json:
        print_json([{"file": str(file), "manifest": str(sets.manifest_of(file)), **manifest}])
    else:
        click.echo(
            f"{file}: {manifest['rows']:,} rows of {describe(days)}; {sets.manifest_of(file).name} names their publications"
        )


@features.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@json_option
def verify(file: Path, as_json: bool) -> None:
    """Say whether any day that a training set was made of has changed since, and how.

    Exit code 0 when every day still holds the content it was trained on, 1 when some day does not.

    \b
    orders features verify train.parquet
    """
    from orders_platform.assets.customer_features import CONTRACT
    from orders_platform.warehouse import training_set as sets
    from orders_platform.warehouse.session import Warehouse

    manifest = sets.read_manifest(file)
    with Progress(transient=True, disable=as_json) as bar, Warehouse.from_settings(settings()).read() as con:
        task = bar.add_task("Comparing", total=len(manifest["publications"]))
        changes = sets.compare(con, manifest, CONTRACT, file, lambda _: bar.advance(task))
    moved = [c for c in changes if c.state != "unchanged"]
    if as_json:
        print_json(asdict(c) for c in changes)
    elif moved:
        columns = ("interval", "state", "rows then", "rows now", "added", "removed", "published", "why")
        rows = [(c.interval, c.state, c.rows_then, c.rows_now, c.added, c.removed, c.published_at, c.cause) for c in moved]
        print_table(f"{file.name}: {len(moved)} of {len(changes)} days are not what it was trained on", columns, rows)
    else:
        click.echo(f"{file.name}: all {len(changes)} days still hold what it was trained on")
    if moved:
        raise SystemExit(1)
