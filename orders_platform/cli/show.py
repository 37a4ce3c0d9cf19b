"""orders show. Belongs here: the publications of one interval. Not here: what they caused (closure, explain)."""

from typing import Any

import click

from orders_platform.calendar import parse_interval
from orders_platform.cli.output import console, json_option, print_json
from orders_platform.errors import OrdersError
from orders_platform.settings import settings


@click.command()
@click.argument("asset")
@click.argument("interval")
@json_option
def show(asset: str, interval: str, as_json: bool) -> None:
    """Every publication of one asset and interval, newest first, with the inputs each was made from.

    \b
    orders show fct_orders 2026-01-06
    """
    from orders_platform.warehouse import publications
    from orders_platform.warehouse.session import Warehouse

    parse_interval(interval)
    with Warehouse.from_settings(settings()).read() as con:
        found = publications.history(con, asset, interval)
    if not found:
        raise OrdersError(
            f"{asset} {interval} has never been published.",
            f"dagster asset materialize --select {asset} --partition {interval}",
        )
    rows = [{**vars(p), "inputs": [vars(i) for i in p.inputs], "rows": p.row_count} for p in found]
    if as_json:
        print_json(rows)
        return
    for p in found:
        print_publication(p, is_current=p is found[0])


def print_publication(p: Any, *, is_current: bool) -> None:
    """One publication as a few lines."""
    out = console()
    out.print(f"[bold]{p.asset} {p.interval}  r{p.revision}[/]" + ("  [green]current[/]" if is_current else ""))
    out.print(f"  published   {p.published_at:%Y-%m-%d %H:%M:%S} UTC by run {p.run_id}")
    out.print(f"  code        {p.code_version}" + (f" (commit {p.git_commit})" if p.git_commit else ""))
    out.print(f"  rows        {p.row_count:,}   digest {p.digest}")
    for name, value in p.measures.items():
        out.print(f"  {name:<24} {value:f}")
    for item in p.inputs:
        out.print(f"  read        {item.asset} {item.interval}  {item.publication_id}")
    if p.location:
        out.print(f"  file        {p.location}\n  sha256      {p.sha256}")
