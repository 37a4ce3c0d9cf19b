"""How commands print. Belongs here: JSON, tables, progress and shared options. Not here: what is printed."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import click
from rich.console import Console
from rich.table import Table

json_option = click.option("--json", "as_json", is_flag=True, help="Print a list of objects instead of a table.")


def console() -> Console:
    """The console for people; as wide as the terminal, or wide enough for a table when piped."""
    return Console(soft_wrap=not sys.stdout.isatty(), width=None if sys.stdout.isatty() else 160, highlight=False)


def plain(value: Any) -> Any:
    """A value as JSON carries it: decimals and ids as text, so that no digit is lost."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, date | UUID):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value


def print_json(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print the rows as a JSON list of objects."""
    click.echo(json.dumps([plain(row) for row in rows], indent=2, ensure_ascii=False))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows as a table; numbers to the right."""
    rows = list(rows)
    table = Table(title=title, title_justify="left", header_style="bold")
    for place, name in enumerate(columns):
        is_number = bool(rows) and all(isinstance(row[place], int | Decimal | None) for row in rows)
        table.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*("" if value is None else str(plain(value)) for value in row))
    console().print(table)


def interval_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--from and --to, both inclusive business days."""
    command = click.option("--to", "last", metavar="DAY", help="Last business day, inclusive.")(command)
    return click.option("--from", "first", metavar="DAY", help="First business day.")(command)
