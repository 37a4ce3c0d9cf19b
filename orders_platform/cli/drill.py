"""orders drill. Belongs here: choosing drills, showing both sides, the exit code. Not here: the drills (drills/)."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from rich.columns import Columns
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from orders_platform.cli.output import console, json_option, print_json, print_table
from orders_platform.drills import CATALOGUE
from orders_platform.settings import settings

if TYPE_CHECKING:
    from orders_platform.drills.drill import Line, Result


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", type=click.Choice(list(CATALOGUE)))
@click.option("--all", "everything", is_flag=True, help="All of them, two at a time: about a minute.")
@click.option("--keep", is_flag=True, help="Keep the throw-away workspaces and say where they are.")
@json_option
def drill(names: tuple[str, ...], everything: bool, keep: bool, as_json: bool) -> None:
    """Replay a failure: first on the usual build, then on this platform, with the numbers of both.

    Without a name: what there is. Each drill runs in a throw-away workspace, never in the real one; the source, Dagster, DuckDB
    and the partner are real. Exit code 1 when the usual build does not break, or this one does.

    \b
    orders drill                                 the sixteen, and what happens in each
    orders drill retry-after-partial-write
    orders drill --all --json
    """
    if names and everything:
        raise click.UsageError("Name drills or say --all, not both.")
    if not (names or everything):
        rows = [{"drill": found, "what_happens": text} for found, text in CATALOGUE.items()]
        if as_json:
            print_json(rows)
        else:
            print_table("drills", ["drill", "what happens"], [tuple(row.values()) for row in rows])
        return
    results = replay([name for name in CATALOGUE if everything or name in names], keep)
    if as_json:
        print_json(row_of(result) for result in results)
    elif len(results) == 1:
        show(results[0])
    else:
        summarize(results)
    if not all(result.passed for result in results):
        sys.exit(1)


def replay(names: Sequence[str], keep: bool) -> "list[Result]":
    """Run them with a progress bar; in the order of the catalogue."""
    from orders_platform.drills.runner import run

    errors = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    found = {}
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("Replaying", total=len(names))
        for result in run(names, settings().timezone, keep=keep):
            found[result.name] = result
            progress.update(task, advance=1, description=f"{result.name} replayed")
    return [found[name] for name in names]


def row_of(result: "Result") -> dict[str, object]:
    """One object a drill."""
    return {
        "drill": result.name, "naive": [vars(line) for line in result.naive], "ours": [vars(line) for line in result.ours],
        "passed": result.passed, "seconds": result.seconds, "error": result.error, "kept": result.kept,
    }  # fmt: skip


def show(result: "Result") -> None:
    """Both tables side by side, why, the rule, and the file to read."""
    from orders_platform.drills.drill import RULES
    from orders_platform.drills.runner import drill_of

    out, told = console(), drill_of(result.name)
    out.print(f"[bold]{result.name}[/]  {CATALOGUE[result.name]}\n")
    out.print(Columns([table_of("the usual build", result.naive), table_of("this platform", result.ours)], padding=(0, 2)))
    out.print(f"\n[bold]why[/]   {escape(told.why)}")
    out.print(f"[bold]rule[/]  {told.rule}. {RULES[told.rule]} (docs/handbook.md)")
    out.print(f"[bold]read[/]  orders_platform/{told.file}")
    tell(result)


def table_of(title: str, lines: "Sequence[Line]") -> Table:
    """One side; what is wrong is marked by a word, not by colour alone."""
    table = Table("", "should be", "is", "", title=title, title_justify="left", header_style="bold")
    for line in lines:
        mark = "[green]right[/]" if line.is_right else "[red]wrong[/]"
        table.add_row(line.what, line.should_be, escape(line.found), mark)
    return table


def summarize(results: "Sequence[Result]") -> None:
    """A line a drill: the first number that the usual build gets wrong, and ours."""
    rows = []
    for result in results:
        worst = next((n for n, line in enumerate(result.naive) if not line.is_right), 0)
        sides = [side[worst] for side in (result.naive, result.ours) if len(side) > worst]
        numbers = (sides[0].what, sides[0].should_be, *(line.found for line in sides)) if len(sides) == 2 else ("", "", "", "")
        rows.append((result.name, *numbers, "passed" if result.passed else "FAILED"))
    print_table("drills", ["drill", "what is counted", "should be", "usual build", "this platform", ""], rows)
    for result in results:
        tell(result)
    passed = sum(result.passed for result in results)
    console().print(f"{passed} of {len(results)} passed: the usual build broke, and this platform did not.")


def tell(result: "Result") -> None:
    """What a person has to know beside the numbers."""
    out = console()
    if result.error:
        out.print(f"[red]error[/] {result.name}: {escape(result.error)}")
    elif not result.passed:
        side = "this platform broke" if result.is_broken else "the usual build did not break, so the drill shows nothing"
        out.print(f"[red]failed[/] {result.name}: {side}")
    if result.kept:
        out.print(f"kept  {result.kept}")
