"""Table contracts. Belongs here: what a table promises, and the DDL and audit that follow from the promise.

Not here: any one table's contract (its asset's module), or when the audit runs (swap.py).
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from orders_platform.calendar import blocks, describe, parse_interval
from orders_platform.errors import OrdersError

IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,62}\Z")
TYPE = re.compile(r"(VARCHAR|BIGINT|INTEGER|BOOLEAN|DATE|TIMESTAMP|UUID|DECIMAL\([0-9]{1,2},[0-9]{1,2}\))(\[\])?\Z")
MEASURE = re.compile(r"(BIGINT|INTEGER|DECIMAL\([0-9]{1,2},[0-4]\))\Z")
PRODUCED_BY = "produced_by"


class ContractError(OrdersError):
    """A contract that promises something that cannot be kept (a text partition column, an unknown key column)."""


class ContractViolation(OrdersError):
    """Rows that break their contract; nothing was published.

    Attributes:
        findings: interval (or "" where no interval can be told) -> what is wrong with it.
        good: Intervals of the same swap that are fine.
    """

    def __init__(self, table: str, findings: Mapping[str, list[str]], intervals: Sequence[str], step_days: int = 1) -> None:
        good = [] if "" in findings else [interval for interval in intervals if interval not in findings]
        shown = "; ".join(f"{interval or 'rows'}: {', '.join(texts)}" for interval, texts in sorted(findings.items())[:20])
        fine = (
            f"These intervals are fine and can run on their own: {describe(good, timedelta(days=step_days))}. " if good else ""
        )
        super().__init__(
            f"{table} breaks its contract ({shown}). Nothing was published; what was there stays readable.",
            f"{fine}Mend the input or the contract in assets/{table}.py, then materialize {table} again.",
        )
        self.findings = dict(findings)
        self.good = good


def identifier(name: str) -> str:
    """The name, checked to be safe inside a statement.

    >>> identifier("fct_orders")
    'fct_orders'
    """
    if not IDENTIFIER.match(name):
        raise ContractError(f"{name!r} cannot name a table or column.", "Use lower-case letters, digits and underscores.")
    return name


def literal(text: str) -> str:
    """A text as a quoted SQL literal, for the places where DuckDB takes no bound parameter.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def literals(texts: Iterable[str]) -> str:
    """Texts as a list of literals, for `in (…)`; no text, a list that holds nothing.

    >>> literals(["a", "b"]), literals([])
    ("'a', 'b'", 'null')
    """
    return ", ".join(map(literal, texts)) or "null"


def inline(rows: Sequence[Mapping[str, Any]], shape: Mapping[str, Any]) -> str:
    """A query whose result is these rows, as one literal.

    A bound parameter or a registered frame makes DuckDB 1.5 import pandas, which costs every process 0.2 s.

    Args:
        rows: Values that JSON can hold; amounts as text.
        shape: Column -> type, in the notation of DuckDB's from_json.
    """
    data, kinds = literal(json.dumps(list(rows))), literal(json.dumps([shape]))
    return f"select unnest(from_json_strict({data}, {kinds}), max_depth := 2)"


def in_intervals(column: str, intervals: Sequence[str]) -> str:
    """A predicate that holds for exactly these intervals: the set, not first to last.

    Contiguous days become ranges inside one outer range, so that min-max statistics prune row groups and files.

    >>> in_intervals("order_date", ["2026-01-05", "2026-01-06"])
    "order_date between date '2026-01-05' and date '2026-01-06'"
    >>> in_intervals("d", ["2026-01-05", "2026-01-09"])
    "d between date '2026-01-05' and date '2026-01-09' and (d = date '2026-01-05' or d = date '2026-01-09')"
    """
    name = identifier(column)
    found = [[parse_interval(block[0]), parse_interval(block[-1])] for block in blocks(intervals)]
    if not found:
        return "false"
    outer = f"{name} between date '{found[0][0]}' and date '{found[-1][1]}'"
    if len(found) == 1:
        return outer
    exact = [f"{name} = date '{a}'" if a == b else f"{name} between date '{a}' and date '{b}'" for a, b in found]
    return f"{outer} and ({' or '.join(exact)})"


@dataclass(frozen=True)
class Column:
    """One column.

    Args:
        type: DDL type: VARCHAR, BIGINT, INTEGER, BOOLEAN, DATE, TIMESTAMP (UTC), UUID, DECIMAL(p,s), or a list of one.
        meaning: One line.
        unit: "currency" for an amount in the row's own currency; otherwise free text.
        max_null_share: Share of an interval's rows that may be null; 0 means never, which the swap enforces.
        accepted: The only values allowed, enforced by the swap.
        source: Columns it is made of, as "table.column"; shown as column lineage.
    """

    type: str
    meaning: str
    unit: str = ""
    max_null_share: float = 0.0
    accepted: tuple[str, ...] = ()
    source: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableContract:
    """What a table promises to whoever reads it.

    Args:
        grain: What one row is.
        columns: Name -> Column, in table order.
        key: Columns that are unique within an interval.
        measures: Integer or DECIMAL columns (four decimals at most) whose sums are recorded with every publication, an amount
            apart by currency.
        partition: DATE column that holds the interval.
        currency: Column holding the currency of the amounts, if there are any.
        allow_empty: Whether an interval may have no row.
        step_days: Length of an interval: 1 or 7.

    Raises:
        ContractError: A partition column that is not DATE, an unknown key or measure, a measure that cannot be summed exactly
            or would add amounts of different currencies, a name or type not allowed.
    """

    grain: str
    columns: Mapping[str, Column]
    key: tuple[str, ...]
    measures: tuple[str, ...] = ()
    partition: str = "order_date"
    currency: str = "currency"
    allow_empty: bool = False
    step_days: int = 1

    def __post_init__(self) -> None:
        for name, column in self.columns.items():
            identifier(name)
            if not TYPE.match(column.type):
                raise ContractError(f"Column {name} has type {column.type!r}.", f"Use one of {TYPE.pattern}.")
        if self.partition not in self.columns or self.columns[self.partition].type != "DATE":
            found = self.columns[self.partition].type if self.partition in self.columns else "missing"
            raise ContractError(
                f"Partition column {self.partition} is {found}, not DATE: intervals of text compare as text.",
                f'Declare "{self.partition}": Column("DATE", …) and cast to it in the query.',
            )
        for name in (*self.key, *self.measures):
            if name not in self.columns:
                raise ContractError(f"{name} is a key or measure but no column.", "Add it to columns.")
        for name in self.measures:
            column = self.columns[name]
            if not MEASURE.match(column.type):
                raise ContractError(
                    f"Measure {name} is {column.type}; its sum cannot be kept exactly.",
                    "Measure BIGINT, INTEGER or DECIMAL columns of at most four decimals.",
                )
            if column.unit == "currency" and self.currency not in self.columns:
                raise ContractError(
                    f"Measure {name} is an amount, and there is no column {self.currency}: currencies would be added up.",
                    'Add the column, or name the one that holds it with currency="…".',
                )

    def fingerprint(self) -> str:
        """The contract as text that is equal exactly when the contract is."""
        return json.dumps(asdict(self), default=str, sort_keys=True)

    @property
    def row_key(self) -> str:
        """Partition and key columns as SQL: what tells rows of the table apart, and orders them."""
        return ", ".join(identifier(c) for c in dict.fromkeys((self.partition, *self.key)))

    @property
    def has_amounts(self) -> bool:
        """Whether sums must be kept apart by currency."""
        return self.currency in self.columns and any(self.columns[m].unit == "currency" for m in self.measures)

    def row_digest(self, columns: tuple[str, ...] | None = None) -> str:
        """SQL for a digest that does not depend on row order: never bit_xor, where two equal rows would cancel."""
        return f"coalesce(sum(hash({', '.join(identifier(c) for c in columns or tuple(self.columns))})::hugeint), 0)"
