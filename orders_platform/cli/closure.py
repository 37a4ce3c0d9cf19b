"""orders closure. Belongs here: showing what lies downstream. Not here: finding it (recovery/closure.py, states.py)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from orders_platform.cli.output import console, json_option, print_json, print_table
from orders_platform.cli.world import spans, world

if TYPE_CHECKING:
    from orders_platform.recovery.closure import Graph
    from orders_platform.recovery.dagster_facts import World
    from orders_platform.warehouse.publications import Pair

SHOWN = 40


@click.command()
@click.argument("asset")
@click.argument("intervals", nargs=-1, required=True, metavar="INTERVAL...")
@click.option("--also", "others", multiple=True, nargs=2, metavar="ASSET INTERVAL", help="One more seed; may be repeated.")
@click.option("--all", "everything", is_flag=True, help="A line a pair, however many there are.")
@click.option("--draw", type=click.Choice(["mermaid", "dot"]), help="Print a drawing instead.")
@json_option
def closure(
    asset: str,
    intervals: tuple[str, ...],
    others: tuple[tuple[str, str], ...],
    everything: bool,
    draw: str | None,
    as_json: bool,
) -> None:
    """What lies downstream of some intervals: what it holds, whether it used them, what a repair would do, what has been sent.

    Walks Dagster's own graph and partition mappings: weeks, trailing windows and balances are known. Nothing is changed.

    \b
    orders closure fct_orders 2026-01-06
    orders closure raw_orders 2026-01-06...2026-01-08 --also stg_orders 2026-01-12 --json
    orders closure fct_orders 2026-01-06 --draw mermaid
    """
    from orders_platform.recovery.closure import closure as reached

    with world() as found:
        seeds = found.graph.require(asset, intervals)
        for name, interval in others:
            seeds += found.graph.require(name, [interval])
        if draw:
            click.echo(drawing(found.graph, reached(found.graph, seeds), seeds, draw))
            return
        rows = rows_of(found, seeds)
        if as_json:
            print_json(rows)
        else:
            show(found.graph, rows, everything)


def rows_of(found: "World", seeds: Sequence["Pair"]) -> list[dict[str, Any]]:
    """One object a pair of the closure, the seeds first."""
    from orders_platform.recovery import states
    from orders_platform.recovery.repair import plan

    facts, now = found.look()
    with found.warehouse.read() as con:
        used = set(states.consumers(con, found.graph, seeds))
    sent = deliveries()
    rows = []
    for line in plan(found.graph, facts, now, seeds).lines:
        version = facts.current.get(line.pair)
        node = found.graph.nodes[line.asset]
        if line.pair in seeds:
            consumed = "named"
        elif not node.is_table:
            consumed = ""
        else:
            consumed = "consumed" if line.pair in used else "untouched" if version else "never ran"
        rows.append(
            {
                "asset": line.asset, "interval": line.interval, "state": line.state, "consumed": consumed,
                "action": line.action, "reason": line.reason, "rerun": rerun_of(found.graph, line.asset),
                "owners": list(node.owners),
                "rows": version.row_count if version else None, "published_at": version.published_at if version else None,
                "run_id": version.run_id if version else None, "code_version": version.code_version if version else None,
                "deliveries": sent.get(line.interval, []) if line.asset in ("finance_export", "finance_delivery") else [],
            }
        )  # fmt: skip
    return rows


def rerun_of(graph: "Graph", asset: str) -> str:
    """Whether running the asset again replaces what is there or adds to it."""
    node = graph.nodes[asset]
    if node.is_effect:
        return "adds nothing: what was sent under its key is not sent again"
    return "captures the source anew beside the old file" if node.is_source else "replaces"


def deliveries() -> Mapping[str, list[dict[str, Any]]]:
    """Week -> what left the building, or may have."""
    from orders_platform.delivery.ledger import Ledger
    from orders_platform.settings import settings

    found: dict[str, list[dict[str, Any]]] = {}
    for item in Ledger(settings().ledger_url).all():
        row = {
            "key": item.idempotency_key,
            "revision": item.revision,
            "state": item.state.value,
            "delivered_at": item.delivered_at,
        }
        if item.may_be_there:
            found.setdefault(item.week, []).append(row)
    return found


def show(graph: "Graph", rows: Sequence[Mapping[str, Any]], everything: bool) -> None:
    """A line a pair, or, where there are many, a line for pairs alike."""
    columns = ["asset", "interval", "state", "used it?", "repair would", "rows", "published (UTC)", "by run", "code"]
    out = console()
    if everything or len(rows) <= SHOWN:
        lines: list[tuple[Any, ...]] = [
            (r["asset"], r["interval"], r["state"], r["consumed"], r["action"], r["rows"], f"{r['published_at']:%m-%d %H:%M}" if
             r["published_at"] else "", (r["run_id"] or "")[:8], (r["code_version"] or "")[:8]) for r in rows
        ]  # fmt: skip
    else:
        groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
        for r in rows:
            groups.setdefault((r["asset"], r["state"], r["consumed"], r["action"]), []).append(r)
        lines = [
            (asset, f"{spans(graph, asset, [r['interval'] for r in own])} ({len(own)})", state, used, action,
             sum(r["rows"] or 0 for r in own), "", "", "") for (asset, state, used, action), own in groups.items()
        ]  # fmt: skip
    print_table(f"closure: {len(rows)} intervals", columns, lines)
    for r in rows:
        for item in r["deliveries"] if r["asset"] == "finance_export" else ():
            out.print(f"[bold]has left the building[/]: {item['key']} ({item['state']})")
    owners = sorted({owner for r in rows for owner in r["owners"]})
    out.print(f"Owners: {', '.join(owners) or 'none named'}.")


def drawing(graph: "Graph", pairs: Sequence["Pair"], seeds: Sequence["Pair"], kind: str) -> str:
    """The closure as Mermaid or Graphviz: a node an asset with its intervals, an arrow where one reads another."""
    own: dict[str, list[str]] = {}
    for asset, interval in pairs:
        own.setdefault(asset, []).append(interval)
    named = {asset for asset, _ in seeds}
    edges = [(read, reader) for reader, read in graph.needs if read in own and reader in own]
    if kind == "mermaid":
        lines = ["flowchart LR"]
        lines += [f'  {a}["{a}<br/>{spans(graph, a, i)}<br/>{len(i)} intervals"]' for a, i in own.items()]
        lines += [f"  {read} --> {reader}" for read, reader in edges]
        lines += [f"  style {a} stroke-width:3px" for a in own if a in named]
        return "\n".join(lines)
    lines = ["digraph closure {", "  rankdir=LR; node [shape=box];"]
    lines += [
        f'  {a} [label="{a}\\n{spans(graph, a, i)}\\n{len(i)} intervals"{", penwidth=3" if a in named else ""}];'
        for a, i in own.items()
    ]
    lines += [f"  {read} -> {reader};" for read, reader in edges]
    return "\n".join([*lines, "}"])
