"""orders explain. Belongs here: showing the five answers about one interval. Not here: finding them (recovery/explain.py)."""

from collections.abc import Mapping
from typing import Any

import click

from orders_platform.cli.output import console, json_option, plain, print_json
from orders_platform.cli.world import world
from orders_platform.settings import settings

SHOWN = 12


@click.command()
@click.argument("asset")
@click.argument("interval")
@json_option
def explain(asset: str, interval: str, as_json: bool) -> None:
    """One interval: which input versions, what it replaced, who published it with which code, what used it.

    \b
    orders explain revenue_daily 2026-01-06
    """
    from orders_platform.recovery.explain import explain as answer
    from orders_platform.warehouse import publications

    with world() as found:
        (pair,) = found.graph.require(asset, [interval])
        _, known = found.look()
        with found.warehouse.read() as con:
            newest = publications.current(con, [pair]).get(pair)
        run = found.instance.get_run_by_id(newest.run_id) if newest else None
        with found.warehouse.read() as con:
            answers = answer(con, found.graph, known, settings().calendar, pair, run.tags if run else {})
    if as_json:
        print_json([answers])
    else:
        show(answers)


def show(a: Mapping[str, Any]) -> None:
    """The five answers, a paragraph each."""
    out = console()
    window, now, by, before = a["window"], a["published"], a["by"], a["replaced"]
    out.print(f"[bold]{a['asset']} {a['interval']}[/]  {a['state']}" + (f": {a['reason']}" if a["reason"] else ""))
    out.print(f"[bold]interval[/]  {window['start_at']} to {window['end_at']} UTC ({window['timezone']})")
    out.print(
        f"          revision {now['revision']}, {now['rows']:,} rows, digest {now['digest']}, "
        f"published {now['published_at']:%Y-%m-%d %H:%M} UTC"
    )
    out.print("[bold]made from[/]" + ("" if a["inputs"] else "  the source"))
    for item in a["inputs"][:SHOWN]:
        moved = "" if item["is_current"] else f"  [yellow]replaced since by revision {item['current_revision']}[/]"
        out.print(f"          {item['asset']} {item['interval']} revision {item['revision']}{moved}")
    if len(a["inputs"]) > SHOWN:
        out.print(f"          … and {len(a['inputs']) - SHOWN} more")
    out.print("[bold]replaced[/]  " + (replaced(before) if before else "nothing: it is the first version"))
    who = f" for {by['who']}" if by["who"] else ""
    why = f" ({by['reason']})" if by["reason"] else ""
    out.print(f"[bold]made by[/]   run {by['run_id']}, launched by {by['launched_by']}{who}{why}")
    out.print(f"          code {by['code_version']}" + (f", commit {by['git_commit']}" if by["git_commit"] else ""))
    out.print(f"[bold]used by[/]   {len(a['used_by'])} intervals downstream")
    for item in a["used_by"][:SHOWN]:
        out.print(f"          {item['asset']} {item['interval']} ({item['state']}{', directly' if item['directly'] else ''})")
    if len(a["used_by"]) > SHOWN:
        out.print(f"          … and {len(a['used_by']) - SHOWN} more: orders closure {a['asset']} {a['interval']}")


def replaced(before: Mapping[str, Any]) -> str:
    """The version before in one line."""
    text = f"revision {before['revision']} of {before['published_at']:%Y-%m-%d %H:%M} UTC by run {before['run_id']}"
    if before["is_same_content"]:
        return f"{text}: the same content"
    moved = [f"rows {before['rows_difference']:+d}"] if before["rows_difference"] else []
    moved += [
        f"{name} {plain(value)}" if value < 0 else f"{name} +{plain(value)}"
        for name, value in before["measures_difference"].items()
    ]
    return f"{text}: {', '.join(moved) or 'other content, same counts and sums'}"
