"""Measuring anew. Belongs here: what a published table or file holds at this moment, an interval at a time.

Not here: what was recorded when it was published (publications.py), or comparing the two (reconcile.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from orders_platform.warehouse import landing
from orders_platform.warehouse.contract import PRODUCED_BY, TableContract, identifier, in_intervals
from orders_platform.warehouse.files import safe_path, sha256_of
from orders_platform.warehouse.publications import EXACT, Publication, one
from orders_platform.warehouse.tables import columns_of


@dataclass(frozen=True)
class Measured:
    """What one interval holds now.

    Attributes:
        digest: As in a publication; empty where a file is gone or cannot be read.
        measures: As in a publication.
        producers: Every value of produced_by found, at most two; None for a row without one.
        trouble: Why the rows cannot be compared at all.
    """

    rows: int = 0
    digest: str = ""
    measures: Mapping[str, Decimal] = field(default_factory=dict)
    producers: frozenset[str | None] = frozenset()
    trouble: str = ""

    def changes_since(self, publication: Publication) -> str:
        """How this differs from what was published, in words; empty when it does not.

        Digests are compared only under one hash canary: another engine version may hash the same rows differently.
        """
        if self.trouble:
            return self.trouble
        parts = [f"rows {self.rows - publication.row_count:+d}"] if self.rows != publication.row_count else []
        columns = {label.partition(" ")[0] for label in self.measures} & set(publication.digest_columns)
        for label in sorted({*self.measures, *publication.measures}):
            moved = EXACT.subtract(self.measures.get(label, Decimal(0)), publication.measures.get(label, Decimal(0)))
            if moved and (label in publication.measures or label.partition(" ")[0] in columns):
                parts.append(f"{label} {moved:+f}")
        if not parts and self.digest != publication.digest and self.digest[:4] == publication.digest[:4]:
            parts.append("same count and sums, other content")
        return ", ".join(parts)


def measure_table(con: Any, contract: TableContract, publications: Sequence[Publication]) -> dict[str, Measured]:
    """Every interval of one table, in one scan for each set of columns that was recorded (one, unless a column was added)."""
    groups: dict[tuple[str, ...], list[Publication]] = {}
    for publication in publications:
        groups.setdefault(publication.digest_columns, []).append(publication)
    found: dict[str, Measured] = {}
    for columns, members in groups.items():
        found |= _scan(con, contract, columns, members)
    return found


def _scan(
    con: Any, contract: TableContract, columns: tuple[str, ...], publications: Sequence[Publication]
) -> dict[str, Measured]:
    table = publications[0].asset
    intervals = [p.interval for p in publications]
    present = columns_of(con, table)
    gone = [c for c in (*columns, PRODUCED_BY) if c not in present]
    if gone:
        return dict.fromkeys(intervals, Measured(trouble=f"orders.{table} has no {', '.join(gone)}"))
    measures = [m for m in contract.measures if m in columns]
    group = identifier(contract.currency) if contract.has_amounts else "null"
    partition = identifier(contract.partition)
    selected = [f"{partition}::varchar", group, "count(*)", contract.row_digest(columns)]
    selected += [f"min({PRODUCED_BY})::varchar", f"max({PRODUCED_BY})::varchar", f"count({PRODUCED_BY})"]
    selected += [f"sum({identifier(m)})" for m in measures]
    rows = con.execute(
        f"select {', '.join(selected)} from orders.{identifier(table)} where {in_intervals(partition, intervals)} group by 1, 2"
    ).fetchall()
    canary = one(con, landing.CANARY)[0]
    counts, totals = dict.fromkeys(intervals, 0), dict.fromkeys(intervals, 0)
    sums: dict[str, dict[str, Decimal]] = {i: {} for i in intervals}
    producers: dict[str, set[str | None]] = {i: set() for i in intervals}
    for interval, currency, count, total, first, last, owned, *values in rows:
        counts[interval] += count
        totals[interval] += total
        producers[interval] |= {first, last} | ({None} if owned < count else set())
        for m, value in zip(measures, values, strict=True):
            label = f"{m} {currency}" if contract.columns[m].unit == "currency" else m
            sums[interval][label] = EXACT.add(sums[interval].get(label, Decimal(0)), Decimal(value or 0))
    return {
        i: Measured(counts[i], landing.digest_text(canary, counts[i], totals[i]), sums[i], frozenset(producers[i]))
        for i in intervals
    }


def measure_file(con: Any, root: Path, publication: Publication) -> Measured:
    """One landed or exported file: by its bytes, and only where those changed by its rows."""
    try:
        path = safe_path(root, publication.location or "")
        if sha256_of(path) == publication.sha256:
            return Measured(publication.row_count, publication.digest, dict(publication.measures))
    except FileNotFoundError:
        return Measured(trouble=f"{publication.location} is gone")
    if path.suffix != ".parquet":
        return Measured(trouble=f"the bytes of {publication.location} changed")
    listed = ", ".join(identifier(c) for c in publication.digest_columns)
    try:
        rows, total = one(
            con,
            f"select count(*), coalesce(sum(hash({listed})::hugeint), 0) from read_parquet(?, hive_partitioning = false)",
            [str(path)],
        )
    except duckdb.Error as error:
        return Measured(trouble=f"{publication.location} cannot be read: {str(error).splitlines()[0]}")
    digest = landing.digest_text(one(con, landing.CANARY)[0], rows, total)
    changed = "" if digest != publication.digest else f"the bytes of {publication.location} changed, its rows did not"
    return Measured(rows, digest, dict(publication.measures), trouble=changed)
