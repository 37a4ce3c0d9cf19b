"""Coverage. Belongs here: which intervals should exist by now and do not. Not here: whether those that exist are right."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from orders_platform.calendar import DAY, WEEK, Calendar, describe
from orders_platform.recovery.reconciliation import Table
from orders_platform.warehouse import publications
from orders_platform.warehouse.contract import PRODUCED_BY, identifier, literal
from orders_platform.warehouse.publications import Pair
from orders_platform.warehouse.tables import columns_of
from orders_platform.warehouse.verdicts import Difference, Finding


def expected(tables: Mapping[str, Table], calendar: Calendar, now: datetime) -> dict[str, list[str]]:
    """Every interval of each table that has ended by `now`."""
    days, weeks = calendar.days(now), calendar.weeks(now)
    return {name: days if table.contract.step_days == 1 else weeks for name, table in tables.items()}


def holes(expected: Mapping[str, Sequence[str]], published: Collection[Pair]) -> dict[str, list[str]]:
    """The intervals of each table that should have been published and were not, in order.

    >>> holes({"fct_orders": ["2026-01-05", "2026-01-06"]}, {("fct_orders", "2026-01-05")})
    {'fct_orders': ['2026-01-06']}

    Args:
        expected: Table -> every interval it should have; a table that was never published is missing whole.
        published: What there is.
    """
    there = set(published)
    return {table: [i for i in intervals if (table, i) not in there] for table, intervals in expected.items()}


def coverage(table: Table, wanted: Sequence[str], published: Collection[Pair]) -> Finding:
    """Whether every interval that should exist does."""
    missing = holes({table.asset: wanted}, published)[table.asset]
    left, right = f"{len(wanted)} intervals", f"{len(wanted) - len(missing)} published"
    if not missing:
        return Finding(table.asset, "", "coverage", True, left, right)
    named = describe(missing, WEEK if table.contract.step_days > 1 else DAY)
    lines = tuple(Difference(interval, "published", "missing") for interval in missing[:20])
    note = f"missing {named}; dagster asset materialize --select {table.companion_of or table.asset} --partition {missing[0]}"
    return Finding(table.asset, "", "coverage", False, left, right, f"{-len(missing)}", note, lines)


def ownership(con: Any, table: str) -> Finding:
    """Whether every row of a table belongs to a current publication: also rows whose day is in no interval at all."""
    if not columns_of(con, table):
        return Finding(table, "", "owned_rows", True, "0", "0")
    name = identifier(table)
    count = publications.one(
        con,
        f"select count(*) from orders.{name} where {PRODUCED_BY} is null or {PRODUCED_BY} not in "
        f"(select publication_id from platform.current_publications where asset = {literal(name)})",
    )[0]
    note = "rows that no publication owns; orders reconcile names their days" if count else ""
    return Finding(table, "", "owned_rows", not count, "0", str(count), f"+{count}" if count else "", note)


def published_pairs(con: Any) -> set[Pair]:
    """Every (table, interval) that has a publication."""
    rows: Iterable[Pair] = con.execute('select distinct asset, "interval" from platform.publications').fetchall()
    return set(rows)
