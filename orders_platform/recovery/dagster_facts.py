"""What Dagster knows. Belongs here: the graph's edges, claims, attempts and runs, read from definitions and the instance.

Not here: what follows from them. The storage's index connection is internal to Dagster, checked on 1.13.27.
"""

import multiprocessing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, cast

import dagster as dg
import sqlalchemy as sa
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable as EVENTS  # noqa: N814

from orders_platform.recovery import states
from orders_platform.recovery.audit import Attempt
from orders_platform.recovery.closure import Graph, Node
from orders_platform.recovery.interventions import NO_REASON, Intervention
from orders_platform.recovery.repair import Launched
from orders_platform.recovery.states import Facts, State
from orders_platform.settings import dagster_home, settings
from orders_platform.warehouse.contract import TableContract
from orders_platform.warehouse.publications import Pair
from orders_platform.warehouse.session import Warehouse

MANY = 20_000
"""Bound variables a statement; SQLite allows 32,766."""

DEFINITIONS = ("orders_platform.definitions", "defs")
INTERVENTION_TAG = "orders/intervention"
WHO_TAG = "orders/who"
REASON_TAG = "orders/reason"
FIRST_TAG, LAST_TAG = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
PARTITION_TAG, BACKFILL_TAG, USER_TAG = "dagster/partition", "dagster/backfill", "user"
REPAIR_JOB = "repair"
BY_ITSELF = ("dagster/schedule_name", "dagster/sensor_name", "dagster/from_automation_condition", "dagster/auto_materialize")
"""A run with one of these tags was not launched by hand."""


@dataclass(frozen=True)
class World:
    """Everything recovery looks at: the graph, the warehouse and Dagster's instance."""

    graph: Graph
    instance: dg.DagsterInstance
    warehouse: Warehouse

    @classmethod
    @contextmanager
    def open(cls, definitions: dg.Definitions) -> Iterator["World"]:
        """The world of the settings; Dagster's home is DAGSTER_HOME, else the one under ORDERS_HOME."""
        with dg.DagsterInstance.from_config(str(dagster_home())) as instance:
            yield cls.of(definitions.get_repository_def(), instance)

    @classmethod
    def of(cls, repository: dg.RepositoryDefinition, instance: dg.DagsterInstance) -> "World":
        """The world around an instance that is open already, as in a run or a sensor."""
        return cls(graph_of(repository), instance, Warehouse.from_settings(settings()))

    def look(self) -> tuple[Facts, dict[Pair, State]]:
        """The facts and states as they are now, in one short reading session."""
        claimed = self.claims()
        with self.warehouse.read() as con:
            facts = states.read_facts(con, self.graph, claimed)
        return facts, states.states(self.graph, facts)

    def claims(self) -> dict[Pair, str]:
        """Pair -> run id of its newest materialization event; "" where it was marked without a run."""
        return claims(self.instance, self.graph)


def graph_of(repository: dg.RepositoryDefinition, now: datetime | None = None) -> Graph:
    """The graph of this code location, with the intervals that have ended by `now`."""
    moment = now or datetime.now(UTC)
    assets: Any = repository.asset_graph
    nodes, keys = {}, {}
    for key in assets.toposorted_asset_keys:
        found = assets.get(key)
        metadata = found.metadata
        contract = getattr(metadata.get("contract"), "value", metadata.get("contract"))
        partitions = found.partitions_def
        name = key.path[-1]
        keys[name] = key
        nodes[name] = Node(
            name,
            tuple(partitions.get_partition_keys(current_time=moment)) if partitions else ("",),
            _step_days(partitions),
            tuple(found.owners),
            isinstance(contract, TableContract),
            not found.parent_keys,
            found.tags.get("external_effect") == "true",
            tuple(getattr(metadata.get("companions"), "value", metadata.get("companions")) or ()),
        )
    needs, pinned = {}, set()
    for name, key in keys.items():
        for parent in sorted(assets.get(key).parent_keys):
            edge = (name, parent.path[-1])
            needs[edge] = _needs(assets, key, parent, nodes[name], nodes[edge[1]])
            if not _is_bare(assets.get(key).assets_def, parent):
                pinned.add(edge)
    return Graph(nodes, needs, frozenset(pinned))


def _step_days(partitions: Any) -> int:
    if partitions is None:
        return 0
    return 7 if isinstance(partitions, dg.WeeklyPartitionsDefinition) else 1


def _is_bare(definition: dg.AssetsDefinition, parent: dg.AssetKey) -> bool:
    """Whether the parent is only declared (`deps=`), not read through a parameter."""
    names = {name for name, key in definition.keys_by_input_name.items() if key == parent}
    inputs = [item for item in definition.node_def.input_defs if item.name in names]
    return all(item.dagster_type.is_nothing for item in inputs)


def _needs(assets: Any, key: dg.AssetKey, parent: dg.AssetKey, reader: Node, read: Node) -> dict[str, tuple[str, ...]]:
    """Reader's interval -> intervals read, by Dagster's own mapping.

    Between days, between weeks and from weeks to days a time-window mapping is the same distance everywhere, so it is asked
    at the first and the last interval and moved (a call costs 0.1-1 ms, 1,100 days have 30,000 edges). Others are asked one by
    one.
    """
    if not reader.step_days or not read.step_days:
        return dict.fromkeys(reader.intervals, read.intervals)
    mapping = assets.get_partition_mapping(key, parent)
    if not reader.intervals or not read.intervals:
        return {}

    def ask(interval: str) -> tuple[str, ...]:
        own, other = assets.get(key).partitions_def, assets.get(parent).partitions_def
        subset = own.empty_subset().with_partition_keys([interval])
        result = mapping.get_upstream_mapped_partitions_result_for_partitions(subset, own, other)
        return tuple(sorted(result.partitions_subset.get_partition_keys()))

    if not isinstance(mapping, dg.TimeWindowPartitionMapping) or reader.step_days < read.step_days:
        return {interval: ask(interval) for interval in reader.intervals}
    known = set(read.intervals)
    ends = (reader.intervals[0], reader.intervals[-1])
    distances = sorted({(date.fromisoformat(i) - date.fromisoformat(end)).days for end in ends for i in ask(end)})
    days = {interval: date.fromisoformat(interval) for interval in reader.intervals}
    moved = {interval: [(day + timedelta(d)).isoformat() for d in distances] for interval, day in days.items()}
    return {interval: tuple(i for i in found if i in known) for interval, found in moved.items()}


def claims(instance: dg.DagsterInstance, graph: Graph) -> dict[Pair, str]:
    """Pair -> run id of its newest materialization event; "" where it was marked without a run."""
    storage: Any = instance.event_log_storage
    newest: dict[int, Pair] = {}
    for node in graph.nodes.values():
        if node.is_table:
            ids = storage.get_latest_storage_id_by_partition(dg.AssetKey(node.asset), dg.DagsterEventType.ASSET_MATERIALIZATION)
            newest.update({event: (node.asset, interval) for interval, event in ids.items()})
    return {newest[event]: run_id for event, run_id in _runs_of(storage, newest).items()}


def _runs_of(storage: Any, events: Iterable[int]) -> dict[int, str]:
    wanted = sorted(events)
    found: dict[int, str] = {}
    with storage.index_connection() as con:
        for start in range(0, len(wanted), MANY):
            chosen = sa.select(EVENTS.c.id, EVENTS.c.run_id).where(EVENTS.c.id.in_(wanted[start : start + MANY]))
            found.update(cast("Mapping[int, str]", dict(con.execute(chosen).fetchall())))
    return found


def silent(instance: dg.DagsterInstance, graph: Graph, facts: Facts, claimed: Mapping[Pair, str]) -> dict[Pair, str]:
    """Pairs whose current publication has no materialization event -> its run: ended, running, or unknown to this instance."""
    tables = {node.asset for node in graph.nodes.values() if node.is_table}
    found = {p: v.run_id for p, v in facts.current.items() if p[0] in tables and claimed.get(p) != v.run_id}
    wanted = sorted(set(found.values()))
    storage: Any = instance.event_log_storage
    told: set[tuple[str, str, str]] = set()
    known: dict[str, str] = {}
    for start in range(0, len(wanted), MANY):
        part = wanted[start : start + MANY]
        chosen = sa.select(EVENTS.c.run_id, EVENTS.c.asset_key, EVENTS.c.partition).where(
            EVENTS.c.run_id.in_(part), EVENTS.c.dagster_event_type == dg.DagsterEventType.ASSET_MATERIALIZATION.value
        )
        with storage.index_connection() as con:
            told.update(con.execute(chosen).fetchall())
        runs = instance.get_runs(dg.RunsFilter(run_ids=part))
        known.update({run.run_id: "ended" if run.is_finished else "running" for run in runs})
    return {
        (asset, interval): known.get(run_id, "unknown")
        for (asset, interval), run_id in found.items()
        if (run_id, dg.AssetKey(asset).to_string(), interval) not in told
    }


def attempts(instance: dg.DagsterInstance, graph: Graph) -> dict[Pair, Attempt]:
    """Pairs that runs planned and did not materialize since they were last materialized."""
    storage: Any = instance.event_log_storage
    newest: dict[Pair, str] = {}
    for node in graph.nodes.values():
        if node.is_table:
            key = dg.AssetKey(node.asset)
            found = storage.get_latest_asset_partition_materialization_attempts_without_materializations(key)
            newest.update({(node.asset, interval): run_id for interval, (run_id, _) in found.items()})
    counts = _tries(storage, newest)
    outcomes = {run_id: _steps(instance, run_id) for run_id in set(newest.values())}
    return {
        pair: Attempt(counts.get(pair, 1), run_id, outcomes[run_id].get(pair[0], outcomes[run_id][""]))
        for pair, run_id in newest.items()
    }


def _tries(storage: Any, pairs: Iterable[Pair]) -> dict[Pair, int]:
    """How often each pair was planned since it was last materialized."""
    planned, made = dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED.value, dg.DagsterEventType.ASSET_MATERIALIZATION.value
    found: dict[Pair, int] = {}
    for asset in {asset for asset, _ in pairs}:
        key = dg.AssetKey(asset).to_string()
        last = (
            sa.select(EVENTS.c.partition, sa.func.max(EVENTS.c.id).label("id"))
            .where(EVENTS.c.asset_key == key, EVENTS.c.dagster_event_type == made)
            .group_by(EVENTS.c.partition)
            .subquery()
        )
        chosen = (
            sa.select(EVENTS.c.partition, sa.func.count())
            .select_from(EVENTS.outerjoin(last, last.c.partition == EVENTS.c.partition))
            .where(EVENTS.c.asset_key == key, EVENTS.c.dagster_event_type == planned)
            .where(EVENTS.c.id > sa.func.coalesce(last.c.id, 0))
            .group_by(EVENTS.c.partition)
        )
        with storage.index_connection() as con:
            found.update({(asset, interval): count for interval, count in con.execute(chosen).fetchall() if interval})
    return found


def _steps(instance: dg.DagsterInstance, run_id: str) -> dict[str, str]:
    """Step -> failed; under "" what is true of the steps that never started: blocked, or running while the run is."""
    run = instance.get_run_by_id(run_id)
    if run is not None and not run.is_finished:
        return {"": "running"}
    failed = {s.step_key: "failed" for s in instance.get_run_step_stats(run_id) if s.status and s.status.value == "FAILURE"}
    return {**failed, "": "blocked"}


@dataclass(frozen=True)
class StepError:
    """Why a step failed; `is_check` where the asset was published and its blocking check then failed."""

    text: str
    is_check: bool


def failures(instance: dg.DagsterInstance, run_id: str, graph: Graph) -> dict[str, tuple[list[str], StepError]]:
    """Asset -> the intervals that the run was to make of it, and the error of its step (or of its check's step).

    Nothing for a range of a repair: the repair halves it until the interval at fault fails alone.
    """
    run = instance.get_run_by_id(run_id)
    found: dict[str, tuple[list[str], StepError]] = {}
    if run is None or (INTERVENTION_TAG in run.tags and FIRST_TAG in run.tags):
        return found
    for record in instance.all_logs(run_id, of_type=dg.DagsterEventType.STEP_FAILURE):
        event: Any = record.dagster_event
        asset = event.step_key.removesuffix("_checks")
        if asset in graph.nodes:
            found[asset] = (_intervals(run.tags, graph.nodes[asset]), StepError(_text(event), event.step_key != asset))
    return found


def _intervals(tags: Mapping[str, str], node: Node) -> list[str]:
    if PARTITION_TAG in tags:
        return [tags[PARTITION_TAG]]
    if not node.step_days:
        return [""]
    return [i for i in node.intervals if FIRST_TAG in tags and tags[FIRST_TAG] <= i <= tags[LAST_TAG]]


@dataclass
class DagsterLauncher:
    """Runs one asset for blocks of intervals through Dagster, tagged with the intervention, so that the runs show in the UI.

    Attributes:
        processes: 0 runs in this process; otherwise in that many processes of their own.
    """

    instance: dg.DagsterInstance
    intervention_id: str
    who: str
    reason: str
    processes: int = 0
    _pool: ProcessPoolExecutor | None = field(default=None, init=False)

    def launch(self, asset: str, runs: Sequence[Sequence[str]]) -> list[Launched]:
        """Run them, and return when all have ended."""
        tags = {INTERVENTION_TAG: self.intervention_id, WHO_TAG: self.who, REASON_TAG: self.reason}
        if not self.processes:
            return [run_asset(self.instance, asset, run, tags) for run in runs]
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.processes, mp_context=multiprocessing.get_context("spawn"))
        home = self.instance.root_directory
        waiting = [self._pool.submit(run_asset_alone, home, asset, list(run), tags) for run in runs]
        try:
            return [item.result() for item in waiting]
        except BrokenProcessPool as error:
            self._pool = None
            return [_unless_done(item, str(error)) for item in waiting]

    def run_ids(self) -> set[str]:
        """Every run of this intervention, also from before it was interrupted."""
        found = self.instance.get_runs(dg.RunsFilter(tags={INTERVENTION_TAG: self.intervention_id}))
        return {run.run_id for run in found}

    def close(self) -> None:
        """End the processes."""
        if self._pool:
            self._pool.shutdown()


def _unless_done(item: Any, error: str) -> Launched:
    if item.done() and not item.exception():
        return cast("Launched", item.result())
    return Launched("", False, f"a worker process died: {error}")


def run_asset_alone(home: str, asset: str, intervals: Sequence[str], tags: Mapping[str, str]) -> Launched:
    """The same as run_asset, in a process that has no instance yet."""
    with dg.DagsterInstance.from_config(home) as instance:
        return run_asset(instance, asset, intervals, tags)


def run_asset(instance: dg.DagsterInstance, asset: str, intervals: Sequence[str], tags: Mapping[str, str]) -> Launched:
    """Run one asset for contiguous intervals, as `dagster asset materialize` does: in this process, visible in the UI."""
    repository = ReconstructableRepository.for_module(*DEFINITIONS)
    key = dg.AssetKey(asset)
    job = repository.get_definition().get_implicit_job_def_for_assets([key])
    if job is None:
        return Launched("", False, f"{asset} is not an asset of {DEFINITIONS[0]}")
    span = {PARTITION_TAG: intervals[0]} if len(intervals) == 1 else {FIRST_TAG: intervals[0], LAST_TAG: intervals[-1]}
    with dg.execute_job(
        repository.get_reconstructable_job(job.name),
        instance,
        tags={**tags, **(span if intervals[0] else {})},
        asset_selection=[key],
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
    ) as result:
        return Launched(result.run_id, result.success, "" if result.success else _error(result))


def _error(result: dg.JobExecutionResult) -> str:
    """The message of the first step that failed, as its author wrote it."""
    failed = next((event for event in result.all_events if event.is_step_failure), None)
    return _text(failed) if failed else "the run failed before its first step; see it in the UI"


def _text(event: dg.DagsterEvent) -> str:
    data: Any = event.event_specific_data
    if data.user_failure_data and data.user_failure_data.description:
        return str(data.user_failure_data.description)
    error = data.error
    while error and error.cause:
        error = error.cause
    return str(error.message if error else "unknown").strip()


def by_hand(instance: dg.DagsterInstance, limit: int = 1000) -> list[Intervention]:
    """Runs, backfills and marks that a person made past our tools, newest first.

    Found by what they lack: the tag of a schedule, a sensor, an automation condition or an intervention.
    """
    found = []
    for record in instance.get_run_records(limit=limit):
        run = record.dagster_run
        if (
            run.job_name == REPAIR_JOB
            or INTERVENTION_TAG in run.tags
            or BACKFILL_TAG in run.tags
            or any(tag in run.tags for tag in BY_ITSELF)
        ):
            continue
        assets = ", ".join(sorted(key.path[-1] for key in run.asset_selection or ())) or run.job_name
        span = _span(run.tags)
        who = run.tags.get(USER_TAG) or "unknown"
        found.append(_seen(run.run_id, "launch", assets, span, who, record.create_timestamp, run.status.value.lower()))
    for backfill in instance.get_backfills(limit=limit):
        if INTERVENTION_TAG in backfill.tags or any(tag in backfill.tags for tag in BY_ITSELF):
            continue
        assets = ", ".join(sorted(key.path[-1] for key in backfill.asset_selection or ()))
        at = datetime.fromtimestamp(backfill.backfill_timestamp, UTC)
        who, end = backfill.user or "unknown", backfill.status.value.lower()
        found.append(_seen(backfill.backfill_id, "backfill", assets, (), who, at, end, backfill.description or ""))
    return sorted([*found, *_marks(instance)], key=lambda item: item.recorded_at, reverse=True)


def _span(tags: Mapping[str, str]) -> tuple[str, ...]:
    if PARTITION_TAG in tags:
        return (tags[PARTITION_TAG],)
    return (f"{tags[FIRST_TAG]}...{tags[LAST_TAG]}",) if FIRST_TAG in tags else ()


def _seen(
    found: str, kind: str, assets: str, span: tuple[str, ...], who: str, at: datetime, outcome: str, reason: str = ""
) -> Intervention:
    naive = at.astimezone(UTC).replace(tzinfo=None)
    return Intervention(found, kind, assets, span, who, reason or NO_REASON, {}, naive, outcome)


def _marks(instance: dg.DagsterInstance) -> list[Intervention]:
    """Partitions marked as materialized without a run."""
    storage: Any = instance.event_log_storage
    chosen = sa.select(EVENTS.c.id, EVENTS.c.asset_key).where(
        EVENTS.c.run_id == "", EVENTS.c.dagster_event_type == dg.DagsterEventType.ASSET_MATERIALIZATION.value
    )
    with storage.index_connection() as con:
        ids = con.execute(chosen).fetchall()
    found = []
    for key in sorted({key for _, key in ids}):
        wanted = [number for number, own in ids if own == key]
        asset = cast("dg.AssetKey", dg.AssetKey.from_db_string(key))
        records = instance.fetch_materializations(dg.AssetRecordsFilter(asset, storage_ids=wanted), limit=len(wanted)).records
        for record in records:
            event: Any = record.event_log_entry.dagster_event
            made = event.event_specific_data.materialization
            at = datetime.fromtimestamp(record.timestamp, UTC)
            who = (made.tags or {}).get("dagster/reporting_user") or "unknown"
            found.append(
                _seen(
                    str(record.storage_id), "mark", asset.path[-1], (made.partition or "",), who, at, "", made.description or ""
                )
            )
    return found
