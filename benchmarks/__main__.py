"""python -m benchmarks [SCENARIO …]: run, print, and write results.json and results.md."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console

from benchmarks import report
from benchmarks.measure import CommandFailed, machine
from benchmarks.scenarios import SCENARIOS, Bench, Disagreement, Options
from benchmarks.tools import WORK, install, versions

PEERS = ("floor", "dbt", "sqlmesh", "stock")


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.argument("scenarios", nargs=-1, type=click.Choice([*SCENARIOS]))
@click.option("--days", default=30, show_default=True, help="Days of `range` and `features`.")
@click.option("--orders", default=100_000, show_default=True, help="Orders a day.")
@click.option("--rounds", default=3, show_default=True, help="Repetitions, tools alternating; the least counts.")
@click.option("--history", default=1_100, show_default=True, help="Days of the long warehouse of `history`.")
@click.option("--large", default=5_000_000, show_default=True, help="Orders of the one day of `memory`.")
@click.option("--slow", is_flag=True, help="Also run the tools that go a day at a time where that takes many minutes.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=WORK / "results", help="Folder of the results."
)
@click.option(
    "--doc", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Also put the tables into this document."
)
def main(
    scenarios: tuple[str, ...],
    days: int,
    orders: int,
    rounds: int,
    history: int,
    large: int,
    slow: bool,
    out: Path,
    doc: Path | None,
) -> None:
    r"""Measure this pipeline beside a bare DuckDB script, dbt, SQLMesh and stock Dagster, on the same landed files.

    Without SCENARIO all of them run. Exit code 1 when a target is missed, a tool fails or two tools disagree.

    \b
    Examples:
      python -m benchmarks one-day
      python -m benchmarks range features --days 30 --orders 10000 --rounds 2
    """
    console = Console(stderr=True, highlight=False, soft_wrap=True)

    @contextmanager
    def busy(text: str) -> Iterator[None]:
        if not console.is_terminal:
            yield
            return
        with console.status(text):
            yield

    bench = Bench(Options(days, orders, rounds, history, large, slow), console.print, busy)
    found = machine()
    try:
        install(PEERS, console.print)
        for name in scenarios or SCENARIOS:
            SCENARIOS[name](bench)
            text = report.write(out, found, versions(PEERS), bench.lines)
    except (CommandFailed, Disagreement) as error:
        raise click.ClickException(str(error)) from error
    click.echo(text.read_text())
    if doc:
        report.write_into(doc, text.read_text())
    sys.exit(0 if all(target.holds for target in report.targets(bench.lines)) else 1)


if __name__ == "__main__":
    main()
