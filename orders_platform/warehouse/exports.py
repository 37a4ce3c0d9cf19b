"""Exports. Belongs here: writing an asset's rows as one immutable CSV file and manifest an interval, with its publication.

Not here: which rows (the asset), how a file appears whole (files.py), or sending it anywhere (delivery/).
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from orders_platform.calendar import describe, parse_interval
from orders_platform.warehouse import gates, publications
from orders_platform.warehouse.contract import PRODUCED_BY, ContractViolation, TableContract, identifier, in_intervals
from orders_platform.warehouse.files import FileCorrupt, sha256_of, write_once
from orders_platform.warehouse.inputs import Input, create_views, reads_of, resolve
from orders_platform.warehouse.publications import Pair, Publication
from orders_platform.warehouse.tables import Output, insert_rows, measure
from orders_platform.warehouse.values import Export

FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class FileExport:
    """The files of some intervals of one export, by one run; an export waits until every input has been reconciled.

    Attributes:
        fence: Raises when the asking run may no longer write; asked before the work and again before each COMMIT.
        exports_root: Where the files go: <table>/<partition>=<interval>/<sha256 of the bytes>.csv, its manifest beside it.
    """

    table: str
    contract: TableContract
    export: Export
    intervals: Sequence[str]
    inputs: Sequence[Input]
    run_id: str
    code_version: str
    landing_root: Path
    exports_root: Path
    git_commit: str | None = None
    fence: Callable[[], None] = field(default=lambda: None)

    def run(self, con: Any) -> list[Publication]:
        """Write and publish each interval, in one session, so that its inputs cannot move in between.

        Raises:
            MissingInput, gates.InputRefused: An input cannot be read, or has not been reconciled yet.
            BadQuery, ContractViolation: The rows do not keep the contract; no file is written.
            FileCorrupt: The file of this content is there and its bytes are no longer those it is named for.
        """
        self.fence()
        reader = f"{self.table} {describe(self.intervals)}"
        with publications.transaction(con):
            read = resolve(con, self.inputs, (), reader)
            gates.require_reconciled(con, read.values(), reader)
            create_views(con, self.inputs, read, self.landing_root)
            rows = con.sql(self.export.sql).to_arrow_table()
        with self._audited(rows) as (made, facts):
            return [
                self._publish(con, interval, self._csv(made, interval), facts[interval], read) for interval in self.intervals
            ]

    @contextmanager
    def _audited(self, rows: pa.Table) -> Iterator[tuple[Any, dict[str, dict[str, Any]]]]:
        """The rows as a table of a database in memory, audited and measured as any other table."""
        made = duckdb.connect()
        try:
            columns = ", ".join(f"{identifier(c)} {column.type}" for c, column in self.contract.columns.items())
            made.execute(f"create schema orders; create table orders.{identifier(self.table)} ({columns}, {PRODUCED_BY} uuid)")
            output = Output(self.table, self.contract, rows)
            ids = dict.fromkeys(self.intervals, "00000000-0000-0000-0000-000000000000")
            inserted = insert_rows(made, output, ids)
            facts, wrong = measure(made, output, [self.intervals], inserted)
            if wrong:
                raise ContractViolation(self.table, wrong, self.intervals, self.contract.step_days)
            yield made, facts
        finally:
            made.close()

    def _csv(self, made: Any, interval: str) -> bytes:
        partition = self.contract.partition
        rows = made.execute(
            f"select * exclude ({PRODUCED_BY}) from orders.{identifier(self.table)} "
            f"where {in_intervals(partition, [interval])} order by {self.contract.row_key}"
        ).fetchall()
        return csv_bytes(list(self.contract.columns), rows)

    def _publish(
        self, con: Any, interval: str, data: bytes, facts: Mapping[str, Any], read: Mapping[Pair, Publication]
    ) -> Publication:
        digest = hashlib.sha256(data).hexdigest()
        location = f"{identifier(self.table)}/{identifier(self.contract.partition)}={parse_interval(interval)}/{digest}.csv"
        final = self.exports_root / location
        inputs = reads_of(self.inputs, interval, read)
        if not write_once(final, data) and sha256_of(final) != digest:
            raise FileCorrupt(
                f"{self.table} {interval}: {final.name} no longer holds the bytes it is named for.",
                f"Move {final} away, then materialize {self.table} for {interval} again.",
            )
        manifest = {
            "export": self.table,
            self.contract.partition: interval,
            "schema_version": self.export.schema_version,
            "columns": list(self.contract.columns),
            "key": list(self.contract.key),
            "sha256": digest,
            "lines": facts["row_count"],
            "control_totals": control_totals(facts["measures"]),
            "first_built_from": [vars(item) for item in inputs],
        }
        write_once(final.with_suffix(".json"), (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())
        publication = Publication(
            self.table, interval, self.run_id, self.code_version, digest, facts["row_count"], self.git_commit,
            step_days=self.contract.step_days, measures=facts["measures"], inputs=inputs, location=location, sha256=digest,
        )  # fmt: skip
        return publications.publish(con, publication, self.fence)


def csv_bytes(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    r"""The rows as CSV: UTF-8, LF, a header, decimals with all their digits, nothing a spreadsheet would run.

    >>> csv_bytes(["country", "revenue"], [("=cmd()", Decimal("-1.50")), ("GB, UK", None)])
    b'country,revenue\n\'=cmd(),-1.50\n"GB, UK",\n'
    """
    lines = [columns, *([_cell(value) for value in row] for row in rows)]
    return "".join(",".join(_quoted(cell) for cell in line) + "\n" for line in lines).encode()


def _quoted(cell: str) -> str:
    """By RFC 4180; Python's csv writer leaves a carriage return bare (measured on 3.11), which splits the line for readers."""
    return '"' + cell.replace('"', '""') + '"' if any(mark in cell for mark in ',"\r\n') else cell


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULA) else value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, int):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no exact text in a CSV file")


def control_totals(measures: Mapping[str, Decimal]) -> dict[str, Any]:
    """Sums to check a file against, amounts apart by currency.

    >>> control_totals({"orders": Decimal(3), "revenue EUR": Decimal("1.50"), "revenue GBP": Decimal(2)})
    {'orders': '3', 'revenue': {'EUR': '1.50', 'GBP': '2'}}
    """
    totals: dict[str, Any] = {}
    for label, value in sorted(measures.items()):
        name, _, currency = label.partition(" ")
        if currency:
            totals.setdefault(name, {})[currency] = f"{value:f}"
        else:
            totals[name] = f"{value:f}"
    return totals
