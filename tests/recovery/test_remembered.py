"""The graph and the claims without Dagster: the same as Dagster says, and Dagster itself where that may have changed."""

import json
import os
import shutil
from pathlib import Path
from typing import NoReturn

import dagster as dg
import pytest

import orders_platform
from orders_platform.cli.status import states
from orders_platform.definitions import defs
from orders_platform.recovery import remembered
from orders_platform.recovery.closure import Graph
from orders_platform.recovery.dagster_facts import World
from orders_platform.settings import settings
from tests.conftest import DAILY, Workspace


def not_asked() -> NoReturn:
    raise AssertionError("Dagster was asked")


@pytest.fixture
def graph(workspace: Workspace) -> Graph:
    with World.open(defs) as world:
        return remembered.graph(lambda: world.graph)


def test_a_graph_that_was_kept_is_the_graph_of_dagster(graph: Graph) -> None:
    assert remembered.graph(not_asked) == graph
    assert len(graph.needs) >= 8


def test_claims_are_those_of_dagster_after_ranges_marks_and_wipes(workspace: Workspace, graph: Graph) -> None:
    workspace.put_days("2026-01-05", "2026-01-06")
    workspace.materialize("2026-01-05", "2026-01-06", assets=DAILY)
    workspace.materialize("2026-01-06", assets=("fct_orders",))
    workspace.instance.report_runless_asset_event(dg.AssetMaterialization("revenue_daily", partition="2026-01-05"))
    workspace.instance.report_runless_asset_event(dg.AssetMaterialization("finance_export", partition="2026-01-05"))
    workspace.instance.wipe_assets([dg.AssetKey("stg_orders")])
    with World.open(defs) as world:
        claims = world.claims()
        _, known = world.look()
    assert len(claims) == 7
    assert remembered.claims(graph, not_asked) == claims
    told = {(row["asset"], row["interval"]): row["state"] for row in states() if row["asset"] in graph.nodes}
    assert told == {pair: state.name for pair, state in known.items()}
    assert {"claimed", "current", "missing"} <= set(told.values())


def test_another_end_of_the_calendar_is_asked_again(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDERS_END_DATE", "2026-01-25")
    settings.cache_clear()
    with pytest.raises(AssertionError, match="asked"):
        remembered.graph(not_asked)


@pytest.mark.parametrize(
    "there", [b"", b"{", b'{"key": "', b"\xff", b"[]", b"null", b'{"key": "K"}', b'{"key": "K", "nodes": [3]}']
)
def test_what_is_no_graph_is_asked_again(graph: Graph, workspace: Workspace, there: bytes) -> None:
    kept = workspace.home / "dagster" / "graph.json"
    kept.write_bytes(there.replace(b"K", json.loads(kept.read_text())["key"].encode()))
    assert remembered.graph(lambda: graph) is graph
    assert remembered.graph(not_asked) == graph


def test_where_it_cannot_be_kept_dagster_is_asked_each_time(graph: Graph, workspace: Workspace) -> None:
    kept = workspace.home / "dagster" / "graph.json"
    kept.unlink()
    (kept / "a folder").mkdir(parents=True)
    assert remembered.graph(lambda: graph) is graph
    assert list(kept.parent.glob("*.part")) == []


def test_closed_days_in_another_order_are_the_same_settings(workspace: Workspace) -> None:
    days = ",".join(f"2026-01-{day:02d}" for day in range(6, 26))
    told = [
        workspace.run(
            "python", "-c", "from orders_platform.recovery import remembered; print(remembered._key())",
            PYTHONHASHSEED=str(seed), ORDERS_CLOSED_DAYS=days,
        ).stdout
        for seed in range(2)
    ]  # fmt: skip
    assert told[0] == told[1] != ""


def test_changed_code_is_asked_again(graph: Graph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    copied = shutil.copytree(Path(orders_platform.__file__).parent, tmp_path / "orders_platform")
    monkeypatch.setattr(orders_platform, "__file__", str(copied / "__init__.py"))
    remembered.graph(lambda: graph)
    assert remembered.graph(not_asked) == graph
    (copied / "assets" / ".#fct_orders.py").symlink_to("someone@a-host.1:1")  # as an editor locks a file
    assert remembered.graph(not_asked) == graph
    changed = copied / "assets" / "fct_orders.py"
    before = changed.stat()
    changed.write_text(changed.read_text().replace("gross", "other"))
    os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert changed.stat().st_size == before.st_size
    with pytest.raises(AssertionError, match="asked"):
        remembered.graph(not_asked)


def test_events_that_are_stored_elsewhere_are_asked_for(graph: Graph, workspace: Workspace) -> None:
    config = workspace.home / "dagster" / "dagster.yaml"
    config.write_text(config.read_text().replace(remembered.OWN_STORAGE, "module: elsewhere"))
    with pytest.raises(AssertionError, match="asked"):
        remembered.claims(graph, not_asked)


def test_an_event_log_that_cannot_be_read_is_asked_for(graph: Graph, workspace: Workspace) -> None:
    index = workspace.home / "dagster" / "history" / "runs" / "index.db"
    index.rename(index.with_name("moved.db"))
    assert remembered.claims(graph, lambda: {("fct_orders", "2026-01-05"): "asked"}) == {("fct_orders", "2026-01-05"): "asked"}
    index.write_bytes(b"not a database")
    assert remembered.claims(graph, dict) == {}
