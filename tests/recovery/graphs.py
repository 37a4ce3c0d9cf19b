"""Small graphs and warehouses for tests of the pure core: no Dagster, no files."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta

import duckdb

from orders_platform.calendar import Calendar
from orders_platform.recovery.closure import Graph, Node
from orders_platform.warehouse import publications
from orders_platform.warehouse.publications import Pair, Publication, Read

CALENDAR = Calendar(date(2026, 1, 5), date(2026, 2, 1))


def days(count: int, first: date = date(2026, 1, 5)) -> tuple[str, ...]:
    return tuple((first + timedelta(n)).isoformat() for n in range(count))


def platform_graph(intervals: Sequence[str]) -> Graph:
    """The shape of the real graph over these days: a chain, a trailing window of 28, a balance, a week."""
    weeks = tuple(intervals[: len(intervals) // 7 * 7 : 7])
    daily = ["raw_orders", "stg_orders", "fct_orders", "customer_features", "revenue_daily", "revenue_to_date"]
    nodes = {name: Node(name, tuple(intervals), is_source=name == "raw_orders") for name in daily}
    nodes["finance_export"] = Node("finance_export", weeks, 7)
    nodes["finance_delivery"] = Node("finance_delivery", weeks, 7, is_table=False, is_effect=True)
    same = {i: (i,) for i in intervals}
    place = {i: n for n, i in enumerate(intervals)}
    needs: dict[tuple[str, str], Mapping[str, tuple[str, ...]]] = {
        ("stg_orders", "raw_orders"): same,
        ("fct_orders", "stg_orders"): same,
        ("customer_features", "fct_orders"): {i: tuple(intervals[max(0, place[i] - 27) : place[i] + 1]) for i in intervals},
        ("revenue_daily", "fct_orders"): same,
        ("revenue_to_date", "revenue_daily"): same,
        ("revenue_to_date", "revenue_to_date"): {i: tuple(intervals[max(0, place[i] - 1) : place[i]]) for i in intervals},
        ("finance_export", "revenue_daily"): {w: tuple(intervals[place[w] : place[w] + 7]) for w in weeks},
        ("finance_delivery", "finance_export"): {w: (w,) for w in weeks},
    }
    return Graph(nodes, needs, frozenset(edge for edge in needs if edge[0] != "finance_delivery"))


def warehouse() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute("set TimeZone = 'UTC'")
    publications.prepare(con, CALENDAR)
    return con


def publish(
    con: duckdb.DuckDBPyConnection,
    graph: Graph,
    pairs: Iterable[Pair],
    content: str = "a",
    run_id: str = "run",
    without: Sequence[Pair] = (),
) -> list[Publication]:
    """Publish the pairs in order with this content, recording the inputs that are there, in one statement an asset."""
    known = publications.all_current(con)
    made: dict[Pair, Publication] = {}
    for pair in pairs:
        inputs = [
            p
            for parent in graph.parents.get(pair, ())
            if parent not in without and (p := made.get(parent) or known.get(parent))
        ]
        old = known.get(pair)
        made[pair] = Publication(
            *pair, run_id, "v1", f"0000.1.{content}", 1, revision=old.revision + 1 if old else 1,
            inputs=tuple(Read(p.asset, p.interval, p.publication_id, p.digest) for p in inputs),
            step_days=graph.nodes[pair[0]].step_days, duration_seconds=0.5,
        )  # fmt: skip
    publications.append(con, list(made.values()))
    return list(made.values())


def tables(graph: Graph) -> list[Pair]:
    """Every pair of every table, in order."""
    return [(node.asset, i) for node in graph.nodes.values() if node.is_table for i in node.intervals]
