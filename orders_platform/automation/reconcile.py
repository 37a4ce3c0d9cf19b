"""The reconcile job. Belongs here: `orders reconcile`, launched from the UI. Not here: what is compared (recovery/)."""

from collections.abc import Sequence
from datetime import UTC, datetime

import dagster as dg

from orders_platform.checks.tables import tables_of
from orders_platform.recovery.reconcile import MATCH, Reconciler
from orders_platform.settings import settings
from orders_platform.source.reader import reader_of
from orders_platform.warehouse.io_managers import explained
from orders_platform.warehouse.session import Warehouse

CONFIG = {
    "from": dg.Field(str, default_value="", description="First business day; empty for the calendar's first."),
    "to": dg.Field(str, default_value="", description="Last business day; empty for the newest that has ended."),
    "source": dg.Field(bool, default_value=False, description="Read the live source too."),
}


def reconcile_job(assets: Sequence[dg.AssetsDefinition]) -> dg.JobDefinition:
    """A plain job that compares every table of these assets, records the verdicts and fails unless all match."""

    @dg.op(name="compare_tables", config_schema=CONFIG, out=dg.Out(dg.Nothing))
    def reconcile(context: dg.OpExecutionContext) -> None:
        values, asked = settings(), context.op_config
        days = values.calendar.days(datetime.now(UTC))
        days = [day for day in days if (asked["from"] or "") <= day <= (asked["to"] or "9999-12-31")]
        with explained("reconcile", days):
            reader = reader_of(values) if asked["source"] else None
            work = Reconciler(Warehouse.from_settings(values), tables_of(assets), values, reader, context.run_id)
            steps = work.steps(work.expected(days, values.calendar, is_single=False))
            lines = list(work.run(steps, lambda: None))
        bad = [line for line in lines if line.verdict != MATCH]
        records = [
            dg.TableRecord(
                {
                    "asset": x.asset, "interval": x.interval, "verdict": x.verdict, "should be": x.left, "is": x.right,
                    "difference": x.difference, "details": x.details,
                }
            )
            for x in bad[:100]
        ]  # fmt: skip
        metadata = {"compared": len(lines), "not matching": len(bad)}
        if bad:
            named = ", ".join(f"{x.asset} {x.interval} {x.verdict}" for x in bad[:20])
            remedy = f"orders repair {bad[0].asset} {bad[0].interval} --reason …"
            raise dg.Failure(
                f"{len(bad)} of {len(lines)} do not match: {named}. Next: {remedy}",
                metadata={**metadata, "lines": dg.MetadataValue.table(records)},
                allow_retries=False,
            )
        context.log.info("All %s match.", len(lines))

    @dg.job(
        name="reconcile",
        description="Compare tables with what was landed and published, for a range of days; the same as `orders reconcile`.",
    )
    def job() -> None:
        reconcile()

    return job
