"""The graph and the claims without importing Dagster, which takes a second. Belongs here: keeping and finding them.

Not here: what they mean (closure.py, states.py), or how Dagster tells them (dagster_facts.py), which is asked whenever the code,
the settings, Dagster's version or the last business day are not those of the graph kept, or events are stored elsewhere.
"""

import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orders_platform
from orders_platform.recovery.closure import Graph, Node
from orders_platform.settings import dagster_home, settings
from orders_platform.warehouse.files import part_of, sha256_of
from orders_platform.warehouse.publications import Pair

OWN_STORAGE = "module: orders_platform.automation.event_log\n  class: WorkspaceEventLog"


def graph(ask: Callable[[], Graph]) -> Graph:
    """The graph as of now; `ask` is called, and its answer kept, where what is kept was made of something else or is no graph."""
    path, key = settings().home / "dagster" / "graph.json", _key()
    if kept := _kept(path, key):
        return kept
    made = ask()
    with suppress(OSError), part_of(path.parent) as part:  # a full disk or a workspace that is only read: the next asks again
        part.write_text(json.dumps({"key": key, **_plain(made)}))
        part.rename(path)
    return made


def _kept(path: Path, key: str) -> Graph | None:
    try:
        found = json.loads(path.read_bytes())
        return _graph(found) if found["key"] == key else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # none yet, another person's, or no graph
        return None


def _key() -> str:
    """Of everything the graph is made of: sources, settings, Dagster itself, and how far time has come."""
    root = Path(orders_platform.__file__).parent
    found = [path for path in sorted(root.rglob("*.py")) if path.is_file()]  # an editor's lock is a link to nowhere
    sources = [(str(path), sha256_of(path)) for path in found]
    spec = find_spec("dagster")
    dagster = Path(spec.origin).with_name("version.py").read_text() if spec and spec.origin else ""
    ended = settings().calendar.days(datetime.now(UTC))[-1:]
    return hashlib.sha256(repr((sources, _stable(settings()), dagster, ended)).encode()).hexdigest()


def _stable(value: Any) -> Any:
    """The value without its secrets, as text that is the same in every process; a set's is in the order of its hashes."""
    if isinstance(value, frozenset):
        return sorted(map(str, value))
    if is_dataclass(value):
        return [(f.name, _stable(getattr(value, f.name))) for f in fields(value) if f.repr]
    return repr(value)


def _plain(made: Graph) -> dict[str, Any]:
    return {
        "nodes": [vars(node) for node in made.nodes.values()],
        "needs": [[*edge, mapping] for edge, mapping in made.needs.items()],
        "pinned": sorted(made.pinned),
    }


def _graph(kept: dict[str, Any]) -> Graph:
    nodes = [Node(**values) for values in map(_tupled, kept["nodes"])]
    needs = {(reader, read): {i: tuple(found) for i, found in mapping.items()} for reader, read, mapping in kept["needs"]}
    return Graph({node.asset: node for node in nodes}, needs, frozenset((reader, read) for reader, read in kept["pinned"]))


def _tupled(values: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def claims(made: Graph, ask: Callable[[], dict[Pair, str]]) -> dict[Pair, str]:
    """Pair -> run id of its newest materialization event, "" where marked by hand; `ask` where Dagster stores them elsewhere.

    The index of Dagster's own SQLite event log (checked on 1.13.27); wiping an asset deletes its events there.
    """
    home = dagster_home()
    path, config = home / "history" / "runs" / "index.db", home / "dagster.yaml"
    if not config.exists() or OWN_STORAGE not in config.read_text():
        return ask()
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as con:
            rows = con.execute(
                "select asset_key, partition, run_id from event_logs where id in (select max(e.id) from event_logs e "
                "left join asset_keys k on k.asset_key = e.asset_key where e.dagster_event_type = 'ASSET_MATERIALIZATION' "
                "and e.partition is not null and (k.wipe_timestamp is null or e.timestamp > k.wipe_timestamp) "
                "group by e.asset_key, e.partition)"
            ).fetchall()
    except sqlite3.Error:  # not made yet, or of a Dagster that keeps it otherwise
        return ask()
    tables = {json.dumps([node.asset]): node.asset for node in made.nodes.values() if node.is_table}
    return {(tables[key], interval): run_id for key, interval, run_id in rows if key in tables}
