"""The watch. Belongs here: two checks an asset that look at all of it, `covered` and `fresh`, in one step for all assets.

Not here: the intervals themselves (factory.py), or when it runs (automation/).
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from orders_platform.checks import coverage, freshness
from orders_platform.checks.tables import tables_of
from orders_platform.errors import OrdersError
from orders_platform.recovery.reconciliation import Table
from orders_platform.settings import settings
from orders_platform.source.reader import Reader
from orders_platform.warehouse.verdicts import Finding

COVERED, FRESH = "covered", "fresh"
MEANING = {
    COVERED: "Every interval that has ended is published, and every row belongs to a publication.",
    FRESH: "The data reaches the newest interval whose deadline (ORDERS_DEADLINE_HOURS) has passed.",
}


def watch_of(assets: Sequence[dg.AssetsDefinition], source: str) -> dg.AssetChecksDefinition:
    """`covered` and `fresh` for each of the assets, without partitions; neither blocks.

    Args:
        assets: The assets, in graph order.
        source: The asset that is captured from the source, whose rows that no interval selects are counted.
    """
    tables = tables_of(assets)
    names = [asset.key.path[-1] for asset in assets if asset.key.path[-1] in tables]
    specs = [dg.AssetCheckSpec(check, asset=name, description=MEANING[check]) for name in names for check in (COVERED, FRESH)]

    @dg.multi_asset_check(
        name="watch_tables", specs=specs, can_subset=True, required_resource_keys={"io_manager", "orders_source"}
    )  # fmt: skip
    def watch(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        resources: Any = context.op_execution_context.resources
        selected = context.selected_asset_check_keys
        # Scanning whole tables and the whole source is for the watch alone, not for every run that makes a day.
        is_watch = not {node.name for node in context.job_def.nodes} & set(names)
        with resources.io_manager.warehouse.read() as con:
            found = findings(con, tables, datetime.now(UTC), scans=is_watch)
        for name in names:
            for check in (COVERED, FRESH):
                key = dg.AssetCheckKey(dg.AssetKey(name), check)
                if key not in selected:
                    continue
                lines = list(found[name, check])
                if is_watch and (name, check) == (source, COVERED):
                    lines.append(unselected(resources.orders_source.reader, name))
                yield result(key, lines)

    return watch


def findings(
    con: Any, tables: Mapping[str, Table], now: datetime, *, scans: bool = True
) -> dict[tuple[str, str], list[Finding]]:
    """Findings by (asset, check), companions with their asset; without `scans` from the publications alone."""
    values = settings()
    wanted = coverage.expected(tables, values.calendar, now)
    published = coverage.published_pairs(con)
    reaches = freshness.reaches(con, tables if scans else {})
    within = timedelta(hours=values.deadline_hours)
    found: dict[tuple[str, str], list[Finding]] = {}
    for name, table in tables.items():
        covered = found.setdefault((table.companion_of or name, COVERED), [])
        covered.append(coverage.coverage(table, wanted[name], published))
        if scans:
            covered.append(coverage.ownership(con, name))
        if not table.companion_of:
            last = freshness.due(wanted[name], values.calendar, table.contract.step_days, now, within)
            reach = reaches.get(name, freshness.Reach())
            found[name, FRESH] = [freshness.freshness(table, last, reach, values.closed_days)]
    return found


def unselected(reader: Reader, asset: str) -> Finding:
    """Source rows that no interval selects: without a date, or with an unreadable one."""
    try:
        counts = reader.check(settings().calendar)
    except OrdersError as error:
        return Finding(asset, "", "selectable", False, details=f"the source could not be counted: {error}")
    if counts.unselectable is None:
        return Finding(asset, "", "selectable", True, details="not known: set ORDERS_SOURCE_TOTAL_QUERY")
    bad = counts.unselectable
    note = "no interval ever selects them; see orders source check" if bad else ""
    return Finding(asset, "", "selectable", not bad, "0 rows without a day", f"{bad} rows", details=note)


def result(key: dg.AssetCheckKey, lines: Sequence[Finding]) -> dg.AssetCheckResult:
    """One evaluation, a line a finding."""
    bad = [line for line in lines if not line.passed]
    asset = key.asset_key.path[-1]
    metadata: dict[str, Any] = {
        line.name if line.table == asset else f"{line.table} {line.name}": line.text().removeprefix(f"{line.name}: ")
        for line in lines
    }
    if records := [dg.TableRecord({"interval": d.item, "is": d.right or ""}) for line in bad for d in line.differences]:
        metadata["missing"] = dg.MetadataValue.table(records[:20])
    metadata["investigate"] = "orders status"
    return dg.AssetCheckResult(
        passed=not bad, asset_key=key.asset_key, check_name=key.name, metadata=metadata,
        severity=dg.AssetCheckSeverity.ERROR if key.name == FRESH else dg.AssetCheckSeverity.WARN,
        description="; ".join(line.text() for line in bad) or "nothing against it",
    )  # fmt: skip
