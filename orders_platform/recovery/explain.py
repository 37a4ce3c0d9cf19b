"""orders explain. Belongs here: the five questions about one interval, answered from publications. Not here: showing them.

What interval, which input versions, what it replaced, who published it with which code, what downstream used it.
"""

from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from orders_platform.calendar import Calendar
from orders_platform.errors import OrdersError
from orders_platform.recovery import interventions, states
from orders_platform.recovery.closure import Graph, closure
from orders_platform.recovery.states import State
from orders_platform.warehouse import publications
from orders_platform.warehouse.publications import EXACT, Pair, Publication


class NeverPublished(OrdersError):
    """A pair with nothing to explain."""


def explain(
    con: Any, graph: Graph, known: Mapping[Pair, State], calendar: Calendar, pair: Pair, tags: Mapping[str, str]
) -> dict[str, Any]:
    """The five answers, as one object.

    Args:
        con: A session of the warehouse.
        graph: Assets and what they read.
        known: The states as they are now.
        calendar: The business calendar, for the window.
        pair: What is asked about.
        tags: Tags of the run that published it, if Dagster still has it.

    Raises:
        NeverPublished: There is no publication; says in which state the pair is.
    """
    asset, interval = pair
    past = publications.history(con, asset, interval)
    state = known[pair]
    if not past:
        raise NeverPublished(
            f"{asset} {interval} has never been published ({state.name}: {state.reason}).",
            f"dagster asset materialize --select {asset} --partition {interval}",
        )
    now, before = past[0], past[1] if len(past) > 1 else None
    return {
        "asset": asset,
        "interval": interval,
        "window": _window(graph, calendar, pair),
        "state": state.name,
        "reason": state.reason,
        "published": _version(now),
        "inputs": _inputs(con, now),
        "replaced": _replaced(now, before),
        "by": _by(con, now, tags),
        "used_by": _used_by(con, graph, pair, known),
    }


def _window(graph: Graph, calendar: Calendar, pair: Pair) -> dict[str, Any]:
    last = calendar.days_of(pair[1])[-1] if graph.nodes[pair[0]].step_days > 1 else pair[1]
    start, end = calendar.window(pair[1])[0], calendar.window(last)[1]
    return {"start_at": start.replace(tzinfo=None), "end_at": end.replace(tzinfo=None), "timezone": calendar.timezone}


def _version(p: Publication) -> dict[str, Any]:
    return {
        "publication_id": p.publication_id, "revision": p.revision, "rows": p.row_count, "measures": dict(p.measures),
        "digest": p.digest, "published_at": p.published_at, "location": p.location,
    }  # fmt: skip


def _inputs(con: Any, p: Publication) -> list[dict[str, Any]]:
    """Each input as it was read, and whether that is still what is current."""
    current = publications.current(con, [(i.asset, i.interval) for i in p.inputs])
    revisions = {
        str(row[0]): row[1]
        for row in con.execute(
            "select publication_id, revision from platform.publications where publication_id in (select unnest(?::uuid[]))",
            [[i.publication_id for i in p.inputs]],
        ).fetchall()
    }
    found = []
    for item in p.inputs:
        now = current.get((item.asset, item.interval))
        same = now is not None and now.digest == item.digest
        row = {**asdict(item), "revision": revisions.get(item.publication_id), "is_current": same}
        found.append({**row, "current_revision": now.revision if now else None})
    return found


def _replaced(now: Publication, before: Publication | None) -> dict[str, Any] | None:
    """The version before, and by how much this one differs from it."""
    if before is None:
        return None
    names = sorted(set(now.measures) | set(before.measures))
    nothing = Decimal(0)
    moved = {n: EXACT.subtract(now.measures.get(n, nothing), before.measures.get(n, nothing)) for n in names}
    return {
        **_version(before), "run_id": before.run_id, "code_version": before.code_version,
        "is_same_content": before.digest == now.digest, "rows_difference": now.row_count - before.row_count,
        "measures_difference": {n: value for n, value in moved.items() if value},
    }  # fmt: skip


def _by(con: Any, p: Publication, tags: Mapping[str, str]) -> dict[str, Any]:
    """The run, its code, and what launched it."""
    found: dict[str, Any] = {"run_id": p.run_id, "code_version": p.code_version, "git_commit": p.git_commit}
    mine = tags.get("orders/intervention")
    if mine:
        act = next((i for i in interventions.recorded(con) if i.intervention_id == mine), None)
        who, why = (act.who, act.reason) if act else (tags.get("orders/who", ""), tags.get("orders/reason", ""))
        return {**found, "launched_by": "repair", "who": who, "reason": why, "intervention_id": mine}
    for tag, kind in (
        ("dagster/schedule_name", "schedule"), ("dagster/sensor_name", "sensor"), ("dagster/backfill", "backfill")
    ):  # fmt: skip
        if tag in tags:
            return {**found, "launched_by": f"{kind} {tags[tag]}", "who": tags.get("user", ""), "reason": ""}
    by = "a person" if tags else "unknown: Dagster no longer has the run"
    return {**found, "launched_by": by, "who": tags.get("user", "unknown"), "reason": interventions.NO_REASON}


def _used_by(con: Any, graph: Graph, pair: Pair, known: Mapping[Pair, State]) -> list[dict[str, Any]]:
    """Everything downstream that was made from what the pair holds now, and whether it still is what should be there."""
    used = set(states.consumers(con, graph, [pair]))
    found = publications.current(con, used)
    readers = set(graph.children.get(pair, ()))
    return [
        {
            "asset": p[0], "interval": p[1], "state": known[p].name, "directly": p in readers,
            "run_id": found[p].run_id, "published_at": found[p].published_at,
        }
        for p in closure(graph, [pair]) if p in used and p in found
    ]  # fmt: skip
