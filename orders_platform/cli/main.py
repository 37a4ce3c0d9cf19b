"""The `orders` command. Belongs here: the root group, its lazy command table and how errors are shown.

Not here: the commands, which live one module a group and are imported only when called.
"""

import importlib
import sys
import traceback

import click
from rich.console import Console
from rich.markup import escape

from orders_platform.errors import OrdersError

# command -> (module, function, help): one line each, so that --help and completion import nothing.
COMMANDS = {
    "setup": ("setup", "setup", "Create the workspace: .env, Dagster home, warehouse."),
    "source": ("source", "source", "Fill and inspect the source database."),
    "settings": ("settings", "settings", "Every environment variable, its value and its meaning."),
    "status": ("status", "status", "Every asset and interval: what is published, by which run and code."),
    "query": ("query", "query", "Run one read-only SELECT over published.* tables."),
    "show": ("show", "show", "The publications of one interval, newest first, with their inputs."),
    "reconcile": ("reconcile", "reconcile", "Compare tables with what was landed and published: match or not, to the key."),
    "closure": ("closure", "closure", "What lies downstream of some intervals, and what a repair would do."),
    "repair": ("repair", "repair", "Repair intervals and everything they reach, in order, recorded."),
    "quarantine": ("quarantine", "quarantine", "Hold intervals back from everything that reads them, and release them."),
    "deliveries": ("deliveries", "deliveries", "What was sent to the partner, what waits, and decisions on it."),
    "interventions": ("interventions", "interventions", "Everything a person did: who, when, why."),
    "audit": ("audit", "audit", "What needs a person: claims without data, holes, blocked and divergent intervals."),
    "maintenance": ("maintenance", "maintenance", "Give space back: checkpoint, past snapshots, small and orphaned files."),
    "explain": ("explain", "explain", "One interval: its inputs, what it replaced, who made it, what used it."),
    "drill": ("drill", "drill", "Replay a failure on the usual build and on this platform, and compare the numbers."),
    "features": ("features", "features", "Write and verify training sets of customer_features."),
}


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        module, function, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(f"orders_platform.cli.{module}"), function)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command list, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="orders-platform")
def orders(debug: bool) -> None:
    """Run, inspect and repair the orders pipeline.

    Exit codes: 0 done, 1 an error or a finding, 2 the command was typed wrong. Most commands print JSON with --json.
    Tab completion (bash): eval "$(_ORDERS_COMPLETE=bash_source orders)".
    """


def main() -> None:
    """Entry point: errors become one sentence on stderr and exit code 1."""
    try:
        orders(standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except OrdersError as error:
        if "--debug" in sys.argv:
            traceback.print_exc()
        console = Console(stderr=True, soft_wrap=True, highlight=False)
        console.print(f"[bold red]error:[/] {escape(error.message)}")
        if error.remedy:
            console.print(f"[bold]remedy:[/] {escape(error.remedy)}")
        sys.exit(1)
