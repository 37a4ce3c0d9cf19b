"""orders repair. Belongs here: showing the plan, asking, showing what came of it. Not here: what is affected (recovery/)."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from orders_platform.cli.output import console, json_option, print_json, print_table
from orders_platform.cli.world import reason_option, spans, who_option, world

if TYPE_CHECKING:
    from orders_platform.automation.repair import Progress
    from orders_platform.recovery.closure import Graph
    from orders_platform.recovery.repair import Outcome, Plan


@click.command()
@click.argument("asset")
@click.argument("intervals", nargs=-1, required=True, metavar="INTERVAL...")
@reason_option
@who_option
@click.option("--recapture", is_flag=True, help="Land the source again first.")
@click.option("--only", is_flag=True, help="These intervals alone. Refused when something was made from what they hold now.")
@click.option("--force", is_flag=True, help="With --only: leave what was made from them stale.")
@click.option("--concurrency", type=click.IntRange(1), default=1, metavar="N", help="Runs at once, each in its own process.")
@click.option("--dry-run", is_flag=True, help="Show the plan and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def repair(
    asset: str, intervals: tuple[str, ...], reason: str, who: str, recapture: bool, only: bool, force: bool, concurrency: int,
    dry_run: bool, yes: bool, as_json: bool,
) -> None:  # fmt: skip
    """Repair intervals of an asset and everything they reach, in order, and reconcile.

    The plan is shown first. A branch stops where content did not change; what is quarantined stays out; nothing is ever sent.
    Interrupted: run the same command again and it goes on. Exit code 1 when something failed or disagrees.

    \b
    orders repair fct_orders 2026-01-06 --reason "bad discount, fixed in the code"
    orders repair raw_orders 2026-01-06...2026-01-09 --reason "the shop corrected its books"
    orders repair revenue_daily 2026-01-06 --recapture --dry-run
    """
    from orders_platform.automation.repair import Request, carry_out, plan_of
    from orders_platform.checks.tables import tables_of
    from orders_platform.definitions import ASSETS
    from orders_platform.recovery.interventions import require_reason

    if not dry_run:
        require_reason("repair", asset, reason)
    request = Request(asset, intervals, reason, who, only, force, recapture, concurrency if concurrency > 1 else 0)
    with world() as found:
        plan = plan_of(found, request)
        if dry_run or not as_json:
            show_plan(found.graph, plan, as_json)
        if dry_run:
            return
        if not yes and not click.confirm("Repair this?"):
            raise click.Abort
        progress = quiet() if as_json else loud(found.graph)
        intervention, outcome = carry_out(found, request, plan, tables_of(ASSETS), progress)
        if as_json:
            print_json(rows_of(outcome, intervention.intervention_id))
        else:
            show_outcome(found.graph, outcome)
    if not outcome.is_good:
        sys.exit(1)


def show_plan(graph: "Graph", plan: "Plan", as_json: bool) -> None:
    """What would be done: a line an asset and action, or in JSON an object a pair."""
    if as_json:
        names = ("asset", "interval", "state", "action", "reason", "rows")
        print_json({**{n: getattr(line, n) for n in names}, "is_named": line.pair in plan.seeds} for line in plan.lines)
        return
    groups: dict[tuple[str, str], list[Any]] = {}
    for line in plan.lines:
        groups.setdefault((line.asset, line.action), []).append(line)
    rows = []
    for (asset, action), lines in groups.items():
        reasons = list(dict.fromkeys(line.reason for line in lines))
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        is_work = action in ("rerun", "if changed")
        rows.append((asset, spans(graph, asset, [line.interval for line in lines]), len(lines), action,
                     sum(line.rows for line in lines) if is_work else None, reasons[0] + more))  # fmt: skip
    print_table("plan", ["asset", "intervals", "count", "action", "rows", "why"], rows)
    steps = {name: node.step_days for name, node in graph.nodes.items()}
    owners = sorted({owner for line in plan.lines for owner in graph.nodes[line.asset].owners})
    console().print(
        f"At most {plan.rows:,} rows to rewrite in about {plan.seconds(steps):,.0f} s; fewer where content does not change. "
        f"Owners: {', '.join(owners) or 'none named'}."
    )


def quiet() -> "Progress":
    """Nothing is told while it runs."""
    from orders_platform.automation.repair import Progress

    return Progress()


def loud(graph: "Graph") -> "Progress":
    """A line an asset as it begins."""
    from orders_platform.automation.repair import Progress

    out = console()

    def begun(intervention: Any, is_continued: bool) -> None:
        out.print(f"{'continuing' if is_continued else 'recorded as'} intervention {intervention.intervention_id}")

    def running(asset: str, intervals: Sequence[str]) -> None:
        out.print(f"running [bold]{asset}[/] {spans(graph, asset, list(intervals))} …")

    return Progress(begun, running, lambda count: out.print(f"reconciling {count} intervals …"))


def show_outcome(graph: "Graph", outcome: "Outcome") -> None:
    """The verdict, and what a person has to look at."""
    out = console()
    for title, found in (("failed", outcome.failed), ("waits", outcome.waiting)):
        for (asset, interval), reason in list(found.items())[:20]:
            out.print(f"[red]{title}[/] {asset} {interval}: {reason}")
        if len(found) > 20:
            out.print(f"… and {len(found) - 20} more")
    for asset, interval in outcome.divergent:
        out.print(f"[red]divergent[/] {asset} {interval}: orders reconcile {interval}")
    by_asset: dict[str, list[str]] = {}
    for asset, interval in outcome.held:
        by_asset.setdefault(asset, []).append(interval)
    for asset, intervals in by_asset.items():
        out.print(f"[magenta]held[/] {asset} {spans(graph, asset, intervals)}")
    colour = "green" if outcome.is_good else "red"
    out.print(f"[bold {colour}]{outcome.text()}[/]")


def rows_of(outcome: "Outcome", intervention_id: str) -> list[dict[str, Any]]:
    """One object a pair: what became of it, and why."""
    kinds: list[tuple[str, Any]] = [
        ("repaired", dict.fromkeys(outcome.repaired, "")),
        ("skipped", dict.fromkeys(outcome.unchanged, "content did not change")),
        ("held", dict.fromkeys(outcome.held, "quarantined, or made from what is")),
        ("waiting", outcome.waiting),
        ("failed", outcome.failed),
        ("divergent", dict.fromkeys(outcome.divergent, "does not reconcile")),
    ]
    return [
        {"asset": asset, "interval": interval, "outcome": kind, "reason": reason, "intervention_id": intervention_id}
        for kind, found in kinds
        for (asset, interval), reason in found.items()
    ]
