"""orders reconcile. Belongs here: going over a range of intervals, one line a table and interval, and recording what was found.

Not here: how one table is compared (reconciliation.py), or how the lines are shown (cli/reconcile.py, automation/).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from orders_platform.calendar import Calendar
from orders_platform.recovery.keys import SHOWN
from orders_platform.recovery.reconciliation import Reconciliation, Table
from orders_platform.settings import Settings
from orders_platform.source.reader import Reader
from orders_platform.warehouse import publications, verdicts
from orders_platform.warehouse.files import safe_path
from orders_platform.warehouse.publications import Publication
from orders_platform.warehouse.session import Warehouse
from orders_platform.warehouse.verdicts import Difference, Finding, Verdict

BLOCK = 31
"""Intervals compared in one session, so that writers do not wait long."""
MATCH, DIVERGENT, MISSING, HELD = "match", "divergent", "missing", "held"


@dataclass(frozen=True)
class Line:
    """What one table holds for one interval, against what it should hold: match, divergent, missing or held."""

    asset: str
    interval: str
    verdict: str
    left: str = ""
    right: str = ""
    difference: str = ""
    details: str = ""
    differences: tuple[Difference, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Reconciler:
    """Compares every table with what was published and landed and, given a reader, the landed files with the live source.

    Attributes:
        tables: Every table by name, in graph order.
        reader: The live source; None to leave it alone.
        run_id: Recorded with the verdicts; empty for a command.
    """

    warehouse: Warehouse
    tables: Mapping[str, Table]
    settings: Settings
    reader: Reader | None = None
    run_id: str = ""

    def expected(self, days: Sequence[str], calendar: Calendar, *, is_single: bool) -> dict[str, list[str]]:
        """The intervals of each table that lie wholly within the days.

        Args:
            days: Business days in order.
            calendar: The business calendar.
            is_single: One interval was named: a week of that name is compared too, where it was published.
        """
        wanted = set(days)
        weeks = [day for day in days if wanted.issuperset(calendar.days_of(day)) and calendar.days_of(day)[0] == day]
        found = {name: list(days) if table.contract.step_days == 1 else weeks for name, table in self.tables.items()}
        if is_single:
            with self.warehouse.read() as con:
                for name, table in self.tables.items():
                    if table.contract.step_days > 1:
                        found[name] = [i for _, i in publications.current(con, [(name, day) for day in days])]
        return found

    def steps(self, expected: Mapping[str, Sequence[str]]) -> list[tuple[str, list[str]]]:
        """The work in pieces: (asset, intervals); companions go with their asset."""
        owners = [name for name, table in self.tables.items() if not table.companion_of]
        return [(n, list(expected[n][i : i + BLOCK])) for n in owners for i in range(0, len(expected[n]), BLOCK)]

    def run(self, steps: Sequence[tuple[str, list[str]]], done: Callable[[], None]) -> Iterator[Line]:
        """Compare and record each piece; `done` is called after each."""
        for asset, intervals in steps:
            yield from self._compare(asset, intervals)
            done()

    def _compare(self, asset: str, intervals: Sequence[str]) -> list[Line]:
        values = self.settings
        with self.warehouse.read() as con:
            held = {i: f"quarantined by {who}: {why}" for i, who, why in _held(con, asset) if i in set(intervals)}
            look = Reconciliation(
                con, self.tables, values.calendar, values.landing_root, values.exports_root, self.run_id
            )  # fmt: skip
            wanted = [i for i in intervals if i not in held]
            published = look.publications(asset, wanted)
            found = look.findings(asset, wanted)
            standing = _standing(con, asset, published)
            orphans = {
                (n, i): look.orphans(n, i) for n in (asset, *look.companions(asset)) for i in wanted if i not in published
            }
        rows: list[Verdict] = []
        for interval, publication in published.items():
            rows += verdicts.verdicts_of(publication, "reconciles", found[interval], blocking=True)
            if self.reader and not self.tables[asset].inputs:
                finding = compare_source(self.reader, publication, values)
                found[interval].append(finding)
                # A source that moved is no fault of what was published from it: recorded, but it refuses nobody.
                rows += verdicts.verdicts_of(publication, "source", [finding], blocking=False)
        if rows:
            with self.warehouse.write(f"orders reconcile recording {asset}", [f"verdicts of {asset}"]) as con:
                verdicts.record(con, rows, self.run_id)
        for interval, others in standing.items():
            found[interval] = [*others, *found[interval]]
        lines = []
        for name in (asset, *look.companions(asset)):
            for interval in intervals:
                if interval in held:
                    lines.append(Line(name, interval, HELD, details=held[interval]))
                elif interval not in published:
                    there = f"{orphans[name, interval]} rows without one" if orphans[name, interval] else "nothing"
                    lines.append(Line(name, interval, MISSING, "a publication", there))
                else:
                    lines.append(line_of(name, interval, [f for f in found[interval] if f.table == name]))
        return lines


def line_of(asset: str, interval: str, findings: Sequence[Finding]) -> Line:
    """The line of one table and interval: its first finding against it, or its content."""
    bad = [finding for finding in findings if not finding.passed]
    shown = bad[0] if bad else findings[0]
    others = ", ".join(f.name for f in bad[1:])
    notes = "; ".join(filter(None, (shown.details, f"also: {others}" if others else "")))
    keys = next((f.differences for f in bad if f.differences), ())
    return Line(asset, interval, DIVERGENT if bad else MATCH, shown.left, shown.right, shown.difference, notes, keys)


def compare_source(reader: Reader, publication: Publication, values: Settings) -> Finding:
    """The landed rows against those the source sends now, row by row; asked outside every session.

    Raises:
        SourceError, SourceUnavailable: The source cannot answer.
    """
    asset, interval, columns = publication.asset, publication.interval, publication.digest_columns
    schema = pa.schema([(name, pa.string()) for name in columns])
    batches = list(reader.capture(interval, *values.calendar.window(interval)))
    with duckdb.connect() as con:
        con.register("live", pa.Table.from_batches(batches, schema=schema))
        path = str(safe_path(values.landing_root, publication.location or ""))
        con.register("landed", con.read_parquet(path, hive_partitioning=False))
        con.execute(
            "create temp table moved as (select true as is_live, * from (from live except all from landed)) "
            "union all (select false, * from (from landed except all from live))"
        )
        count = publications.one(con, "select count(*) from live")[0]
        rows = con.execute(
            "with keys as (select distinct coalesce(order_id, '') as key from moved) "
            "select order_id, is_live, * exclude (order_id, is_live), (select count(*) from keys) from moved "
            f"where coalesce(order_id, '') in (select key from keys order by key limit {SHOWN}) order by all"
        ).fetchall()
    left, right = f"{count} rows now", f"{publication.row_count} rows landed"
    if not rows:
        return Finding(asset, interval, "source", True, left, right)
    sides: dict[str, dict[bool, Sequence[Any]]] = {}
    for order_id, is_live, *row, _ in rows:
        sides.setdefault(order_id or "no order_id", {}).setdefault(is_live, row)
    names = [name for name in columns if name != "order_id"]
    keys = tuple(Difference(key, *_changed(names, both.get(True), both.get(False))) for key, both in sides.items())
    return Finding(
        asset, interval, "source", False, left, right, f"{rows[0][-1]} keys", f"the source moved: {', '.join(sides)}", keys
    )


def _changed(columns: Sequence[str], live: Sequence[Any] | None, landed: Sequence[Any] | None) -> tuple[str | None, str | None]:
    """Both sides of a key by the columns that differ; None for the side that has no such row."""
    if live is None or landed is None:
        return ("a row" if live else None), ("a row" if landed else None)
    moved = [(c, v, w) for c, v, w in zip(columns, live, landed, strict=True) if v != w]
    return ", ".join(f"{c} {v}" for c, v, _ in moved), ", ".join(f"{c} {w}" for c, _, w in moved)


def _standing(con: Any, asset: str, published: Mapping[str, Publication]) -> dict[str, list[Finding]]:
    """What another blocking check holds against these publications: equal to what was landed is not yet right."""
    ids = {p.publication_id: interval for interval, p in published.items()}
    found: dict[str, list[Finding]] = {}
    for publication_id, check, left, right, details in con.execute(
        "select publication_id, check_name, left_value, right_value, details from platform.failing where check_name <> 'reconciles'"
    ).fetchall():
        if interval := ids.get(str(publication_id)):
            finding = Finding(asset, interval, check, False, left, right, details=f"failed its check {check}: {details or ''}")
            found.setdefault(interval, []).append(finding)
    return found


def _held(con: Any, asset: str) -> list[tuple[str, str, str]]:
    rows: list[tuple[str, str, str]] = con.execute(
        'select "interval", who, reason from platform.held where asset = ?', [asset]
    ).fetchall()
    return rows
