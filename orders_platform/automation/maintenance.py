"""The maintenance job. Belongs here: `orders maintenance`, on a schedule or from the UI. Not here: what it does (warehouse/)."""

from dataclasses import astuple

import dagster as dg

from orders_platform.settings import settings
from orders_platform.warehouse.io_managers import explained
from orders_platform.warehouse.maintenance import Ages, maintain
from orders_platform.warehouse.session import Warehouse

SHOWN = 100


@dg.op(out=dg.Out(dg.Nothing))
def give_space_back(context: dg.OpExecutionContext) -> None:
    """Checkpoint or tidy the warehouse, and remove landed files of nobody; safe beside running swaps."""
    values = settings()
    with explained("maintenance", ()):
        done = list(maintain(Warehouse.from_settings(values), values.landing_root, Ages.from_settings(values)))
    for item in done[:SHOWN]:
        context.log.info("%s %s: %s %s", *astuple(item))
    if len(done) > SHOWN:
        context.log.info("… and %s more", len(done) - SHOWN)


@dg.job(
    name="maintenance",
    tags={"dagster/max_runtime": "21600"},
    description="Gives space back: checkpoint, past snapshots, small files, orphaned files; the same as `orders maintenance`.",
)
def maintenance_job() -> None:
    """A plain job; running it twice, or beside anything, does no harm."""
    give_space_back()
