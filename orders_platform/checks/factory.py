"""The checks of a table. Belongs here: at most three named checks an asset, made from its contract, one evaluation an interval.

Not here: what is compared (arrival.py, usual.py, recovery/reconciliation.py) or who obeys a verdict (warehouse/gates.py).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from orders_platform.calendar import describe
from orders_platform.checks import usual
from orders_platform.checks.arrival import arrival
from orders_platform.checks.tables import tables_of
from orders_platform.recovery.reconciliation import Reconciliation, Table
from orders_platform.settings import settings
from orders_platform.warehouse import publications, verdicts
from orders_platform.warehouse.io_managers import CheckTarget
from orders_platform.warehouse.publications import Publication
from orders_platform.warehouse.verdicts import Finding, Verdict

ARRIVED, RECONCILES, USUAL = "arrived", "reconciles", "usual"
BLOCKING = (ARRIVED, RECONCILES)
MEANING = {
    ARRIVED: "The day has rows, or may be empty. Blocks what reads it, in this run and in every later one.",
    RECONCILES: "Exactly what was published, made from its inputs, to the cent. Blocks what reads it, now and later.",
    USUAL: "Warns when an interval is unlike others: volume, nulls, rejects, attempts, replaced inputs, a source that moved.",
}
Found = dict[str, dict[str, list[Finding]]]
"""check -> interval -> findings."""


@dataclass(frozen=True)
class Judge:
    """What is asked of one asset's intervals.

    Attributes:
        tables: The asset, its companions and everything it reads.
        arrives: Whether its intervals come from the source, and so may fail to arrive.
        has_volume: Whether its row count is compared with earlier weeks.
    """

    asset: str
    tables: Mapping[str, Table]
    arrives: bool = False
    has_volume: bool = False

    def blocking(self, con: Any, intervals: Sequence[str], run_id: str, checks: Iterable[str]) -> Found:
        """Findings of `arrived` and `reconciles`."""
        values = settings()
        look = Reconciliation(con, self.tables, values.calendar, values.landing_root, values.exports_root, run_id)
        found: Found = {}
        if RECONCILES in checks:
            found[RECONCILES] = look.findings(self.asset, intervals)
        if ARRIVED in checks:
            found[ARRIVED] = {}
            for interval, publication in look.publications(self.asset, intervals).items():
                before = publications.history(con, self.asset, interval) if not publication.row_count else []
                earlier = next((p for p in before if p.row_count), None)
                found[ARRIVED][interval] = [arrival(publication, earlier, values.closed_days)]
        return found

    def usual(self, con: Any, published: Mapping[str, Publication], attempts: Mapping[str, int]) -> dict[str, list[Finding]]:
        """Findings of `usual`, apart from the source's."""
        values, found = settings(), {}
        current = usual.history_of(con, list(published.values()))
        companions = [name for name, table in self.tables.items() if table.companion_of == self.asset]
        beside = publications.current(con, [(c, i) for c in companions for i in published])
        contract = self.tables[self.asset].contract
        is_table = all(p.location is None for p in published.values())
        empty = usual.nulls(con, contract, self.asset, list(published)) if is_table else {}
        for interval, publication in published.items():
            lines = [usual.attempts(publication, attempts.get(publication.run_id, 1), values.attempts)]
            if self.has_volume:
                lines.append(usual.volume(publication, current, values.closed_days, values.volume_warn, values.volume_fail))
            if interval in empty:
                lines.append(empty[interval])
            if companions:
                aside = [p for (_, i), p in beside.items() if i == interval]
                lines.append(usual.rejected(publication, aside, values.rejected_share))
            if publication.inputs:
                lines.append(usual.drift(publication, current))
            found[interval] = lines
        return found


def checks_of(
    asset: dg.AssetsDefinition, among: Sequence[dg.AssetsDefinition], *, arrives: bool = False, has_volume: bool = False
) -> dg.AssetChecksDefinition:
    """The checks of one asset: `reconciles` and `usual`, and `arrived` for what comes from the source.

    Args:
        asset: The asset.
        among: Every asset, this one and those it reads among them.
        arrives: Whether its rows come from the source.
        has_volume: Whether its row count should be like that of earlier weeks.
    """
    judge = Judge(asset.key.path[-1], tables_of(among), arrives, has_volume)
    names = (*((ARRIVED,) if arrives else ()), RECONCILES, USUAL)
    specs = [
        dg.AssetCheckSpec(
            name, asset=asset, description=MEANING[name], blocking=name in BLOCKING, partitions_def=asset.partitions_def
        )
        for name in names
    ]
    needs = {"io_manager"} | ({"orders_source"} if arrives else set())

    @dg.multi_asset_check(name=f"{judge.asset}_checks", specs=specs, can_subset=True, required_resource_keys=needs)
    def checks(context: dg.AssetCheckExecutionContext) -> Iterator[Any]:
        yield from run_checks(context, judge, asset.partitions_def)

    return checks


def run_checks(
    context: dg.AssetCheckExecutionContext, judge: Judge, partitions: dg.PartitionsDefinition | None
) -> Iterator[Any]:
    """Judge the step's intervals, record the verdicts in one short session, then yield one evaluation an interval and check.

    Raises:
        dg.Failure: Some interval failed a blocking check; every verdict has been recorded and shown by then.
    """
    step = context.op_execution_context
    if partitions is None or not (step.has_partition_key or step.has_partition_key_range):
        raise dg.Failure(f"The checks of {judge.asset} are asked for an interval; choose a partition.", allow_retries=False)
    intervals = list(partitions.get_partition_keys_in_range(step.partition_key_range))
    selected = sorted(key.name for key in context.selected_asset_check_keys)
    published, found = judge_intervals(context, judge, intervals, selected)
    targets = targets_of(context.instance, judge.asset, intervals)
    failed: dict[str, str] = {}
    for interval in intervals:
        for check in selected:
            lines = found[check].get(interval, [])
            if interval not in published:
                lines = [Finding(judge.asset, interval, "content", False, "a publication", "none", details="not published")]
            bad = [line for line in lines if not line.passed]
            if bad and check in BLOCKING:
                failed[interval] = f"{check}: {bad[0].text()}"
            yield evaluation(judge.asset, check, interval, lines, targets.get(interval))
    for check in selected:
        yield dg.Output(None, f"{judge.asset}_{check}")
    if failed:
        raise dg.Failure(explain(context, judge, failed, intervals), allow_retries=False)


def judge_intervals(
    context: dg.AssetCheckExecutionContext, judge: Judge, intervals: Sequence[str], selected: Sequence[str]
) -> tuple[dict[str, Publication], Found]:
    """Look, then record: reading sessions are shared, and the writing one holds nothing but an insert."""
    resources: Any = context.op_execution_context.resources
    warehouse, run_id = resources.io_manager.warehouse, context.run.run_id
    with warehouse.read() as con:
        pairs = publications.current(con, [(judge.asset, i) for i in intervals])
        published = {p.interval: p for p in pairs.values()}
        attempts = {r: attempts_of(context, r, judge.asset) for r in {p.run_id for p in published.values()}}
        found = judge.blocking(con, intervals, run_id, selected)
        if USUAL in selected:
            found[USUAL] = judge.usual(con, published, attempts)
    if judge.arrives and USUAL in selected:
        reader, values = resources.orders_source.reader, settings()
        for interval, publication in published.items():
            line = usual.same_source(reader, publication, values.calendar, values.landing_root, run_id)
            found[USUAL][interval].append(line)
    rows: list[Verdict] = []
    for check, by_interval in found.items():
        for interval, lines in by_interval.items():
            rows += verdicts.verdicts_of(published[interval], check, lines, blocking=check in BLOCKING)
    with warehouse.write(f"run {run_id} judging {judge.asset}", [f"verdicts of {judge.asset}"]) as con:
        verdicts.record(con, rows, run_id)
    return published, found


def attempts_of(context: dg.AssetCheckExecutionContext, run_id: str, step_key: str) -> int:
    """Attempts of a step in a run, and one for each run that this run is a retry of."""
    run = context.run if run_id == context.run.run_id else context.instance.get_run_by_id(run_id)
    restarts = context.instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.STEP_RESTARTED).records
    again = [record for record in restarts if record.event_log_entry.step_key == step_key]
    return (int(run.tags.get("dagster/retry_number", 0)) if run else 0) + 1 + len(again)


def targets_of(instance: dg.DagsterInstance, asset: str, intervals: Sequence[str]) -> dict[str, CheckTarget]:
    """Each interval's newest materialization, which its evaluations are about."""
    found: dict[str, Any] = {}
    cursor = None
    wanted = set(intervals)
    while wanted - set(found):
        page = instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=dg.AssetKey(asset), asset_partitions=list(wanted - set(found))),
            limit=max(50, len(intervals)), cursor=cursor,
        )  # fmt: skip
        for record in page.records:
            if record.partition_key and record.partition_key not in found:
                found[record.partition_key] = record
        if not page.has_more:
            break
        cursor = page.cursor
    return {
        interval: CheckTarget(storage_id=record.storage_id, run_id=record.run_id, timestamp=record.timestamp)
        for interval, record in found.items()
    }


def evaluation(
    asset: str, check: str, interval: str, lines: Sequence[Finding], target: CheckTarget | None
) -> dg.AssetCheckEvaluation:
    """One interval's evaluation: a line a finding, what differs as a small table, and the command that looks further."""
    bad = [line for line in lines if not line.passed]
    metadata: dict[str, Any] = {}
    for line in lines:
        name = line.name if line.table == asset else f"{line.table} {line.name}"
        metadata[name] = line.text().removeprefix(f"{line.name}: ")
    records = [
        dg.TableRecord({"what": d.item, "left": d.left or "", "right": d.right or ""})
        for line in bad or lines
        for d in line.differences
    ]
    if records:
        metadata["differences" if bad else "compared"] = dg.MetadataValue.table(records[:20])
    metadata["investigate"] = f"orders reconcile {interval}; orders show {asset} {interval}"
    is_error = check in BLOCKING or any(line.is_grave for line in bad)
    return dg.AssetCheckEvaluation(
        asset_key=dg.AssetKey(asset), check_name=check, passed=not bad, metadata=metadata, partition=interval,
        target_materialization_data=target, blocking=check in BLOCKING,
        severity=dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN,
        description="; ".join(line.text() for line in bad) or f"{interval}: {len(lines)} findings, nothing against it",
    )  # fmt: skip


def explain(context: dg.AssetCheckExecutionContext, judge: Judge, failed: Mapping[str, str], intervals: Sequence[str]) -> str:
    """What failed, and how to go on with the intervals that did not."""
    asset = judge.asset
    listed = "; ".join(f"{interval} {text}" for interval, text in sorted(failed.items())[:20])
    text = f"{asset} failed a blocking check ({listed}). Nothing that reads it runs, in this run or in a later one. "
    first = min(failed)
    text += f"Look at it with: orders reconcile {first}. Then: orders repair {asset} {first} --reason …"
    good = [i for i in intervals if i not in failed]
    if not good:
        return text
    order = [node.name for node in context.job_def.nodes_in_topological_order]
    rest = [name for name in order[order.index(asset) + 1 :] if name in judge.tables]
    ranges = describe(good).split(", ")
    commands = [f"dagster asset materialize --select {','.join(rest)} --partition-range {_range(r)}" for r in ranges[:5]]
    return f"{text} The other intervals are fine; go on with them: {'; '.join(commands)}" if rest else text


def _range(text: str) -> str:
    return text if "..." in text else f"{text}...{text}"
