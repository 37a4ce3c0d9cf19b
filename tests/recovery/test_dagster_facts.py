"""What Dagster knows, read fast: the same as Dagster's own answers."""

from datetime import UTC, datetime

import dagster as dg
import pytest
from dagster._core.asset_graph_view.asset_graph_view import AssetGraphView
from dagster._core.definitions.events import AssetKeyPartitionKey

from orders_platform.definitions import defs
from orders_platform.recovery import dagster_facts
from orders_platform.recovery.closure import Graph, closure
from tests.conftest import Workspace

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return dagster_facts.graph_of(defs.get_repository_def(), NOW)


def test_every_edge_equals_what_dagsters_own_mapping_says_interval_by_interval(graph: Graph) -> None:
    assets = defs.get_repository_def().asset_graph
    seen = 0
    for (reader, read), mapping in graph.needs.items():
        keys = dg.AssetKey(reader), dg.AssetKey(read)
        own, other = assets.get(keys[0]).partitions_def, assets.get(keys[1]).partitions_def
        if own is None or other is None:
            continue
        for interval, needed in mapping.items():
            asked = assets.get_partition_mapping(*keys).get_upstream_mapped_partitions_result_for_partitions(
                own.empty_subset().with_partition_keys([interval]), own, other
            )
            assert needed == tuple(sorted(asked.partitions_subset.get_partition_keys())), (reader, read, interval)
            seen += 1
    assert seen >= 6 * 28


@pytest.mark.parametrize("day", ["2026-01-05", "2026-01-06", "2026-02-01"])
def test_the_closure_equals_dagsters_own_walk(workspace: Workspace, graph: Graph, day: str) -> None:
    view = AssetGraphView.for_test(defs, workspace.instance, effective_dt=NOW)
    assets = view.asset_graph
    reached = {dg.AssetKey("raw_orders"): {day}}
    waiting = [dg.AssetKey("raw_orders")]
    while waiting:
        key = waiting.pop()
        for child in assets.get(key).child_keys:
            if assets.get(child).partitions_def is None:
                continue
            mine = view.get_asset_subset_from_asset_partitions(key, {AssetKeyPartitionKey(key, i) for i in reached[key]})
            found = {p.partition_key for p in view.compute_child_subset(child, mine).expensively_compute_asset_partitions()}
            if not found <= reached.get(child, set()):
                reached.setdefault(child, set()).update(found)
                waiting.append(child)
    expected = {(key.path[-1], i) for key, found in reached.items() for i in found}
    assert {p for p in closure(graph, [("raw_orders", day)]) if p[1]} == expected


def test_claims_name_the_run_of_the_newest_materialization_and_nothing_for_a_mark(workspace: Workspace, graph: Graph) -> None:
    workspace.put_days("2026-01-05", "2026-01-06")
    first = workspace.materialize("2026-01-05", "2026-01-06", assets=("raw_orders",))
    second = workspace.materialize("2026-01-06", assets=("raw_orders",))
    workspace.instance.report_runless_asset_event(dg.AssetMaterialization("stg_orders", partition="2026-01-05"))
    assert dagster_facts.claims(workspace.instance, graph) == {
        ("raw_orders", "2026-01-05"): first.run_id,
        ("raw_orders", "2026-01-06"): second.run_id,
        ("stg_orders", "2026-01-05"): "",
    }


def test_the_graph_of_1100_days_takes_less_than_a_second(workspace: Workspace) -> None:
    found = workspace.run(
        "python", "-W", "ignore", "-c",
        "import time\nfrom datetime import UTC, datetime\nfrom orders_platform.definitions import defs\n"
        "from orders_platform.recovery.dagster_facts import graph_of\ndefs.get_repository_def()\nstart = time.perf_counter()\n"
        "graph = graph_of(defs.get_repository_def(), datetime(2026, 1, 7, tzinfo=UTC))\nseconds = time.perf_counter() - start\n"
        "print(len(graph.nodes['raw_orders'].intervals), seconds)",
        ORDERS_START_DATE="2023-01-02", ORDERS_END_DATE="",
    )  # fmt: skip
    count, seconds = found.stdout.split()
    assert int(count) == 1101
    assert float(seconds) < 1, found.stdout
