"""orders query. Belongs here: one read-only SELECT for a person. Not here: anything that writes."""

from contextlib import ExitStack

import click
import duckdb
from rich.markup import escape

from orders_platform.cli.output import json_option, print_json, print_table
from orders_platform.errors import OrdersError
from orders_platform.settings import settings


@click.command()
@click.argument("sql")
@click.option("--limit", default=1000, show_default=True, help="Rows to print at most.")
@json_option
def query(sql: str, limit: int, as_json: bool) -> None:
    """Run one SELECT over published.* (and platform.*); it waits for a writer and holds nobody up afterwards.

    \b
    orders query "select order_date, sum(orders) from published.revenue_daily group by all order by all"
    orders query "from published.coverage where not is_current"
    """
    from orders_platform.warehouse import engine
    from orders_platform.warehouse.contract import literals
    from orders_platform.warehouse.session import Warehouse

    with ExitStack() as stack:
        stack.callback(engine.forget)  # one that may not reach outside cannot attach a file again
        warehouse = Warehouse.from_settings(settings())
        con = stack.enter_context(warehouse.read())
        con.execute(f"set allowed_directories = [{literals(warehouse.folders)}]")
        con.execute("set enable_external_access = false")
        con.execute("set lock_configuration = true")
        try:
            result = con.execute(sql)
            columns = [column[0] for column in result.description or ()]
            rows = result.fetchmany(limit + 1)
        except duckdb.Error as error:
            raise OrdersError(
                f"The query failed: {str(error).splitlines()[0]}", 'Tables: orders query "show all tables"'
            ) from error
    if as_json:
        print_json(dict(zip(columns, row, strict=True)) for row in rows[:limit])
    else:
        shown = [[escape(value) if isinstance(value, str) else value for value in row] for row in rows[:limit]]
        print_table("", columns, shown)  # a text in brackets is no markup
    if len(rows) > limit:
        click.echo(f"… more than {limit} rows; raise --limit", err=True)
