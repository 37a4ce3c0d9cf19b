"""What recovery commands share. Belongs here: opening the world, drawing states and spans. Not here: any one command."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from orders_platform.calendar import DAY, WEEK, describe
from orders_platform.cli.output import console

if TYPE_CHECKING:
    from orders_platform.recovery.closure import Graph
    from orders_platform.recovery.dagster_facts import World

MARKS = {
    "current": "[green]●[/] current",
    "stale": "[yellow]◐[/] stale",
    "missing": "[red]○[/] missing",
    "claimed": "[red]?[/] claimed",
    "divergent": "[red]≠[/] divergent",
    "held": "[magenta]■[/] held",
}
"""How a state is drawn; the word is always there, so that colour carries nothing alone."""

reason_option = click.option("--reason", metavar="TEXT", default="", help="Why; kept with the intervention. Refused without.")
who_option = click.option("--who", metavar="NAME", default="", help="Who asks; default the login name.")


@contextmanager
def world() -> Iterator["World"]:
    """The graph, the warehouse and Dagster's instance of this workspace."""
    from orders_platform.definitions import defs
    from orders_platform.recovery.dagster_facts import World

    with console().status("looking at the graph …"):
        opened = World.open(defs)
        found = opened.__enter__()
    try:
        yield found
    finally:
        opened.__exit__(None, None, None)


def spans(graph: "Graph", asset: str, intervals: list[str]) -> str:
    """The intervals of the asset as a person would write them."""
    node = graph.nodes.get(asset)
    if not intervals or intervals == [""]:
        return ""
    return describe(intervals, WEEK if node and node.step_days > 1 else DAY)
