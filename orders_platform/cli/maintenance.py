"""orders maintenance. Belongs here: its options and output. Not here: what is done (warehouse/maintenance.py)."""

import click

from orders_platform.cli.output import console, json_option, print_json, print_table
from orders_platform.settings import settings


@click.command()
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do none of it.")
@json_option
def maintenance(dry_run: bool, as_json: bool) -> None:
    """Give space back; no row, no publication and no file that a publication names is touched.

    A DuckDB file is checkpointed. Of a DuckLake, past states older than ORDERS_SNAPSHOT_DAYS are forgotten, small files are
    merged, and files that nothing names any more are removed after ORDERS_UNNAMED_FILE_DAYS; so are landed files that no
    publication ever named. Safe beside running swaps and readers. The same as the job `maintenance`.
    """
    from orders_platform.warehouse.maintenance import Ages, maintain
    from orders_platform.warehouse.session import Warehouse

    values = settings()
    done = list(maintain(Warehouse.from_settings(values), values.landing_root, Ages.from_settings(values), dry_run=dry_run))
    if as_json:
        print_json(vars(item) for item in done)
        return
    title = "would be done" if dry_run else "done"
    print_table(title, ["step", "where", "count", "detail"], [(d.step, d.where, d.count, d.detail) for d in done])
    console().print(
        "Orphans are files that nothing names; counts are bytes given back (checkpoint), files, tables or snapshots."
    )
