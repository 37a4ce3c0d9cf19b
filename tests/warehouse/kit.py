"""A small warehouse for tests of the core: what is published, measured again by other means than the swap's own."""

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from orders_platform.calendar import Calendar
from orders_platform.warehouse.contract import Column, TableContract
from orders_platform.warehouse.inputs import Input
from orders_platform.warehouse.lake import Lake
from orders_platform.warehouse.publications import Publication
from orders_platform.warehouse.session import Warehouse
from orders_platform.warehouse.swap import Swap
from orders_platform.warehouse.tables import Output
from orders_platform.warehouse.values import rows_of
from tests import lakes

CALENDAR = Calendar(date(2026, 1, 5), date(2026, 2, 1))
DAYS = ("2026-01-05", "2026-01-06", "2026-01-07", "2026-01-08", "2026-01-09")
COLUMNS = {
    "order_date": Column("DATE", "day"),
    "line": Column("VARCHAR", "name"),
    "currency": Column("VARCHAR", "ISO 4217"),
    "amount": Column("DECIMAL(38,2)", "money", unit="currency", max_null_share=1),
    "note": Column("VARCHAR", "anything", max_null_share=1),
}
LINES = TableContract("one line", COLUMNS, key=("line",), measures=("amount",), allow_empty=True)
ASIDE = TableContract("one line put aside", COLUMNS, key=(), allow_empty=True)

# Fork from a small clean process: a killed child costs 50 ms instead of a second, and inherits no lock and no thread.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.warehouse.kit"])


def store(home: Path, **options: Any) -> Warehouse:
    chosen = {"wait_seconds": 20.0, **options}
    if lakes.chosen():
        return Lake(lakes.url_of(home), CALENDAR, home / "locks", data_path=f"{home}/lake/", **chosen)
    return Warehouse(str(home / "warehouse.duckdb"), CALENDAR, home / "locks", **chosen)


def lines(days: Sequence[str], amount: str = "1.10", count: int = 3) -> str:
    """SQL for some lines a day."""
    listed = ", ".join(f"date '{day}'" for day in days)
    return (
        f"select d as order_date, 'line ' || n as line, 'GBP' as currency, "
        f"{amount}::decimal(30,2) + n::decimal(6,0) as amount, null::varchar as note "
        f"from unnest([{listed}]::date[]) as a(d), range({count}) as b(n)"
    )


def swap(
    table: str,
    rows: str | pa.Table | pd.DataFrame,
    days: Sequence[str],
    contract: TableContract = LINES,
    companions: Mapping[str, str] | None = None,
    reads: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    run_id: str = "run",
    **options: Any,
) -> Swap:
    """A swap of one table and its companions; `reads`: input table -> day written -> days read."""
    found = rows_of(rows, table) if isinstance(rows, pd.DataFrame) else rows
    outputs = [Output(table, contract, found)]
    outputs += [Output(name, ASIDE, sql, table) for name, sql in (companions or {}).items()]
    inputs = [Input(name, name, "order_date", needs) for name, needs in (reads or {}).items()]
    return Swap(outputs, list(days), inputs, run_id, "code", CALENDAR, Path("landing"), **options)


def publish(warehouse: Warehouse, made: Swap, tables: Sequence[str] = ("sold",)) -> list[Publication]:
    with warehouse.write("a test", tables) as con:
        return made.run(con)


def daily(days: Sequence[str]) -> dict[str, list[str]]:
    return {day: [day] for day in days}


def current(con: Any) -> dict[tuple[str, str], tuple[str, str]]:
    """(table, day) -> (digest, publication id) of the highest revision, by plain SQL."""
    rows = con.execute(
        """select asset, "interval", arg_max(digest, revision), arg_max(publication_id, revision)::varchar
           from platform.publications where location is null group by all"""
    ).fetchall()
    return {(asset, interval): (digest, publication) for asset, interval, digest, publication in rows}


def sound(warehouse: Warehouse) -> dict[tuple[str, str], str]:
    """Digest of every (table, day), after proving that each is what the table holds and that every row has an owner."""
    with warehouse.read() as con:
        published = current(con)
        tables = {
            row[0]
            for row in con.execute(
                "select table_name from duckdb_tables() where database_name = current_database() and schema_name = 'orders'"
            ).fetchall()
        }
        assert {table for table, _ in published} <= tables
        for (table, day), (digest, publication) in published.items():
            columns = con.execute("select digest_columns from platform.publications where publication_id = ?", [publication])
            listed = ", ".join(columns.fetchall()[0][0])
            found = con.execute(
                f"select count(*), coalesce(sum(hash({listed})::hugeint), 0), count(*) filter (produced_by = ?) "
                f"from orders.{table} where order_date = ?",
                [publication, day],
            ).fetchall()[0]
            _, rows, total = digest.split(".")
            assert (found[0], f"{found[1]:x}", found[2]) == (int(rows), total, int(rows)), (table, day)
        for table in tables:
            days = [day for name, day in published if name == table]
            strays = con.execute(f"select count(*) from orders.{table} where not list_contains(?, order_date::varchar)", [days])
            assert strays.fetchall() == [(0,)], table
        return {pair: digest for pair, (digest, _) in published.items()}


def children(target: Callable[..., Any], *arguments: tuple[Any, ...], seconds: float = 60) -> list[int | None]:
    """Run these calls as processes at the same time; their exit codes."""
    started = [PROCESSES.Process(target=target, args=args) for args in arguments]
    for process in started:
        process.start()
    for process in started:
        process.join(seconds)
        assert process.exitcode is not None, "a process hangs"
    return [process.exitcode for process in started]
