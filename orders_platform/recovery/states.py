"""States. Belongs here: what is true of each (asset, interval), from publications, holds, verdicts and claims, in one pass.

Not here: what to do about it (repair.py), or what Dagster says (dagster_facts.py).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from orders_platform.recovery.closure import Graph, walk
from orders_platform.warehouse.contract import inline
from orders_platform.warehouse.publications import Pair

BY_HAND = ""
"""Run id of a claim that no run made: a partition marked as materialized."""


@dataclass(frozen=True)
class State:
    """The state of one pair, why, and the pairs it comes from (the quarantined one, the replaced input, …)."""

    name: str
    reason: str = ""
    causes: tuple[Pair, ...] = ()


@dataclass(frozen=True)
class Version:
    """What a pair holds right now, in brief."""

    publication_id: str
    revision: int
    digest: str
    row_count: int
    run_id: str
    code_version: str
    published_at: datetime
    duration_seconds: float


@dataclass(frozen=True)
class Facts:
    """All that states follow from.

    Attributes:
        current: The current publication of each pair that has one.
        held: Directly quarantined pairs -> who, since when and why.
        failing: Pairs whose current publication failed a blocking check -> which.
        unbacked: Pairs whose newest claim in Dagster has no publication by that run -> the run id, or BY_HAND.
        moved: Pairs -> the inputs whose current digest is not the one recorded.
        without: Pairs -> published inputs that the graph maps to them and that their current publication did not read.
    """

    current: Mapping[Pair, Version]
    held: Mapping[Pair, str] = field(default_factory=dict)
    failing: Mapping[Pair, str] = field(default_factory=dict)
    unbacked: Mapping[Pair, str] = field(default_factory=dict)
    moved: Mapping[Pair, tuple[Pair, ...]] = field(default_factory=dict)
    without: Mapping[Pair, tuple[Pair, ...]] = field(default_factory=dict)


def compute(con: Any, graph: Graph, claims: Mapping[Pair, str]) -> dict[Pair, State]:
    """The state of every pair of every table, in graph order.

    Args:
        con: A session of the warehouse.
        graph: Assets and what they read.
        claims: pair -> run id of its newest materialization event in Dagster.
    """
    return states(graph, read_facts(con, graph, claims))


def states(graph: Graph, facts: Facts) -> dict[Pair, State]:
    """The state of every pair of every table, in graph order: pure.

    An input that is not current makes its reader stale, whatever the input's trouble; held reaches everything downstream.
    """
    found: dict[Pair, State] = {}
    held: dict[Pair, Pair] = {pair: pair for pair in facts.held}
    for node in graph.nodes.values():
        if not node.is_table:
            continue
        for interval in node.intervals:
            pair = (node.asset, interval)
            parents = graph.parents.get(pair, ())
            root = held.get(pair) or next((held[p] for p in parents if p in held), None)
            if root:
                held[pair] = root
            found[pair] = _state(graph, facts, pair, root, found)
    return found


def _state(graph: Graph, facts: Facts, pair: Pair, root: Pair | None, found: Mapping[Pair, State]) -> State:
    if root:
        where = "" if root == pair else f"{_text(root)}, which it is made from, is "
        return State("held", f"{where}{facts.held[root]}", (root,))
    if pair in facts.failing and pair in facts.current:
        return State("divergent", facts.failing[pair])
    if pair in facts.unbacked:
        return State("claimed", _claim(facts.unbacked[pair], pair in facts.current))
    if pair not in facts.current:
        return State("missing", "never published")
    moved = facts.moved.get(pair, ())
    if moved:
        return State("stale", f"{_list(moved)} {'has' if len(moved) == 1 else 'have'} been replaced since", moved)
    without = facts.without.get(pair, ())
    if without:
        return State("stale", f"it was built without {_list(without)}", without)
    behind = tuple(p for p in graph.parents.get(pair, ()) if p in found and found[p].name != "current")
    if behind:
        return State("stale", f"its input {_text(behind[0])} is {found[behind[0]].name}", behind)
    return State("current")


def _claim(run_id: str, is_published: bool) -> str:
    who = f"run {run_id}" if run_id else "a person"
    holds = "what it holds is older than that claim" if is_published else "nothing is published"
    return f"{who} marked it as materialized, but published nothing: {holds}"


def _text(pair: Pair) -> str:
    return " ".join(pair).strip()


def _list(pairs: tuple[Pair, ...], shown: int = 3) -> str:
    more = f" and {len(pairs) - shown} more" if len(pairs) > shown else ""
    return ", ".join(map(_text, pairs[:shown])) + more


def read_facts(con: Any, graph: Graph, claims: Mapping[Pair, str]) -> Facts:
    """Read the facts: a handful of statements, whatever the size of the calendar.

    Args:
        con: A session of the warehouse.
        graph: Assets and what they read.
        claims: pair -> run id of its newest materialization event in Dagster.
    """
    current = {
        (row[0], row[1]): Version(*row[2:])
        for row in con.execute("""
            select asset, "interval", publication_id::varchar, revision, digest, row_count, run_id, code_version, published_at,
              duration_seconds
            from platform.current_publications where companion_of is null
        """).fetchall()
    }
    held = {
        (asset, interval): f"quarantined by {who} since {at:%Y-%m-%d %H:%M} UTC ({reason})"
        for asset, interval, who, reason, at in con.execute(
            'select asset, "interval", who, reason, recorded_at from platform.held'
        ).fetchall()
    }
    failing: dict[Pair, str] = {}
    for asset, interval, check, details in con.execute("""
        select coalesce(p.companion_of, p.asset), p."interval", f.check_name, f.details
        from platform.failing f join platform.current_publications p using (publication_id) order by all
    """).fetchall():
        failing.setdefault((asset, interval), f"failed its check {check}" + (f" ({details})" if details else ""))
    return Facts(current, held, failing, _unbacked(con, claims), _moved(con), _without(con, graph, current))


def _moved(con: Any) -> dict[Pair, tuple[Pair, ...]]:
    found: dict[Pair, tuple[Pair, ...]] = {}
    for asset, interval, input_asset, input_interval in con.execute("""
        select r.asset, r."interval", r.input_asset, r.input_interval from platform.reads r
        left join platform.current_publications p on p.asset = r.input_asset and p."interval" = r.input_interval
        where p.digest is distinct from r.input_digest order by all
    """).fetchall():
        found[asset, interval] = (*found.get((asset, interval), ()), (input_asset, input_interval))
    return found


def _without(con: Any, graph: Graph, current: Mapping[Pair, Version]) -> dict[Pair, tuple[Pair, ...]]:
    """Counted first, an asset's reads are fetched one by one only where some count falls short."""
    rows = con.execute('select asset, input_asset, "interval", count(*) from platform.reads group by all').fetchall()
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for asset, input_asset, interval, count in rows:
        counts.setdefault((asset, input_asset), {})[interval] = count
    found: dict[Pair, tuple[Pair, ...]] = {}
    for edge in sorted(graph.pinned):
        asset, read = edge
        seen = counts.get(edge, {})
        short = [i for i, needed in graph.needs[edge].items() if seen.get(i, 0) < len(needed) and (asset, i) in current]
        if not short:
            continue
        known = set(
            con.execute(
                'select "interval", input_interval from platform.reads where asset = ? and input_asset = ?', [asset, read]
            ).fetchall()
        )
        for i in short:
            lacking = tuple((read, n) for n in graph.needs[edge][i] if (read, n) in current and (i, n) not in known)
            found[asset, i] = found.get((asset, i), ()) + lacking
    return {pair: lacking for pair, lacking in found.items() if lacking}


def _unbacked(con: Any, claims: Mapping[Pair, str]) -> dict[Pair, str]:
    """Claims whose run never published the pair."""
    if not claims:
        return {}
    claimed = [{"asset": asset, "interval": interval, "run_id": run_id} for (asset, interval), run_id in claims.items()]
    rows = con.execute(f"""
        select c.asset, c."interval", c.run_id
        from ({inline(claimed, {"asset": "VARCHAR", "interval": "VARCHAR", "run_id": "VARCHAR"})}) c
        where not exists (
          from platform.publications p where p.asset = c.asset and p."interval" = c."interval" and p.run_id = c.run_id)
    """).fetchall()
    return {(asset, interval): run_id for asset, interval, run_id in rows}


def consumers(con: Any, graph: Graph, seeds: Iterable[Pair]) -> list[Pair]:
    """Pairs downstream whose current publication was made, directly or through others, from what the seeds hold now."""
    made_from: dict[Pair, list[Pair]] = {}
    for asset, interval, input_asset, input_interval in con.execute("""
        select r.asset, r."interval", r.input_asset, r.input_interval from platform.reads r
        join platform.current_publications p on p.asset = r.input_asset and p."interval" = r.input_interval
        where p.digest = r.input_digest
    """).fetchall():
        if asset in graph.nodes:  # a companion is used by whoever uses its asset
            made_from.setdefault((graph.owner_of.get(input_asset, input_asset), input_interval), []).append((asset, interval))
    wanted = set(seeds)
    return [pair for pair in graph.sort(walk(made_from, wanted)) if pair not in wanted]
