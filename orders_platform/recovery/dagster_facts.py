"""What Dagster knows. Belongs here: the graph's edges, claims, attempts and runs, read from definitions and the instance.

Not here: what follows from them. The storage's index connection is internal to Dagster, checked on 1.13.27.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, cast

import dagster as dg
import sqlalchemy as sa
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable as EVENTS  # noqa: N814

from orders_platform.recovery.closure import Graph, Node
from orders_platform.warehouse.contract import TableContract
from orders_platform.warehouse.publications import Pair

MANY = 20_000
"""Bound variables a statement; SQLite allows 32,766."""


def graph_of(definitions: dg.Definitions, now: datetime | None = None) -> Graph:
    """The graph of these definitions, with the intervals that have ended by `now`."""
    moment = now or datetime.now(UTC)
    assets: Any = definitions.get_repository_def().asset_graph
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
