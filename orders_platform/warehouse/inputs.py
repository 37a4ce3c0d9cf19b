"""Inputs of a swap. Belongs here: which publications are read, refusing those that may not be, and the views that hold them.

Not here: which intervals map to which; the asset graph says (io_managers.py).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orders_platform.calendar import Calendar, describe
from orders_platform.errors import OrdersError
from orders_platform.warehouse import gates, landing, publications
from orders_platform.warehouse.contract import PRODUCED_BY, identifier, in_intervals, literal
from orders_platform.warehouse.publications import Pair, Publication, Read

SHOWN = 20
PORTION_ROWS = 4_000_000
"""Rows read at once, about. A year of 100,000 orders a day then takes 2.3 GiB instead of 6, and a day lies in an eighth of the row
groups instead of in all: replacing one, and every checkpoint after that, takes half the time (measured; smaller ones cost an insert a tenth)."""


class MissingInput(OrdersError):
    """An interval that is read has not been published; never a shorter week, never another day under today's label."""


class InputMoved(OrdersError):
    """An input was replaced between loading it and publishing what was made of it."""

    retryable = True


@dataclass(frozen=True)
class Input:
    """What the outputs read.

    Attributes:
        name: Name of the view that the SQL reads.
        asset: Table or landed asset.
        partition: Its partition column.
        needs: output interval -> the input intervals it maps to.
        seen: interval -> publication id at the moment a frame was loaded; None for SQL, which reads inside the swap.
    """

    name: str
    asset: str
    partition: str
    needs: Mapping[str, Sequence[str]]
    seen: Mapping[str, str] | None = None

    @property
    def intervals(self) -> list[str]:
        """Every interval read, in order."""
        return sorted({interval for needed in self.needs.values() for interval in needed})


def of_intervals(inputs: Sequence[Input], intervals: Sequence[str]) -> list[Input]:
    """The inputs as far as these output intervals read them."""
    return [replace(item, needs={i: item.needs[i] for i in intervals if i in item.needs}) for item in inputs]


def portions(intervals: Sequence[str], inputs: Sequence[Input], read: Mapping[Pair, Publication]) -> Iterator[list[str]]:
    """The intervals in portions to be made one after the other: each reads PORTION_ROWS and four times what the next reads again."""
    reads = {i: {(item.asset, n) for item in inputs for n in item.needs.get(i, ())} for i in intervals}
    portion: list[str] = []
    known: set[Pair] = set()
    rows = 0
    for interval, following in zip(intervals, [*intervals[1:], None], strict=True):
        portion.append(interval)
        rows += _rows(reads[interval] - known, read)
        known |= reads[interval]
        again = known & reads[following] if following else set()
        if following is None or rows >= PORTION_ROWS + 4 * _rows(again, read):
            yield portion
            portion, known, rows = [], again, _rows(again, read)


def _rows(pairs: Collection[Pair], read: Mapping[Pair, Publication]) -> int:
    return sum(read[pair].row_count for pair in pairs)


def resolve(con: Any, inputs: Sequence[Input], written: Collection[Pair], reader: str) -> dict[Pair, Publication]:
    """The current publication of every pair read, apart from those `written` by the same swap; `reader` is named in errors.

    Raises:
        MissingInput: Some pair has no publication; names them and the command that makes them.
        gates.InputRefused: Some pair is quarantined or failed a blocking check.
    """
    wanted = {(item.asset, i) for item in inputs for i in item.intervals} - set(written)
    found = publications.current(con, wanted)
    missing = sorted(wanted - set(found))
    if missing:
        asset = missing[0][0]
        days = [interval for name, interval in missing if name == asset]
        raise MissingInput(
            f"{reader} needs {asset} {describe(days)}, which has not been published.",
            f"Materialize it first: dagster asset materialize --select {asset} --partition {days[0]}",
        )
    refused = gates.refusals(con, found.values())
    if refused:
        reasons = [reason for reason, _ in refused.values()]
        raise gates.InputRefused(
            f"{reader} may not read its input: {'; '.join(reasons[:SHOWN])}.", next(iter(refused.values()))[1]
        )
    return found


def verify_moved(inputs: Sequence[Input], read: Mapping[Pair, Publication]) -> None:
    """Refuse frames whose publications were replaced since they were loaded.

    Raises:
        InputMoved: Names the interval; running again reads the new one.
    """
    for item in inputs:
        for interval, publication_id in (item.seen or {}).items():
            now = read.get((item.asset, interval))
            if now is not None and now.publication_id != publication_id:
                raise InputMoved(
                    f"{item.asset} {interval} was replaced while it was being read.", "Run again to read the new one."
                )


def reads_of(inputs: Sequence[Input], interval: str, known: Mapping[Pair, Publication]) -> tuple[Read, ...]:
    """What one output interval was made from: the publications its own intervals map to, not the union of a range."""
    found = (known[item.asset, i] for item in inputs for i in item.needs.get(interval, ()))
    return tuple(Read(p.asset, p.interval, p.publication_id, p.digest) for p in found)


def verify_landed(inputs: Sequence[Input], read: Mapping[Pair, Publication], landing_root: Path) -> None:
    """Compare every landed file that is read with what was recorded, before anything is made of one.

    Raises:
        landing.LandingCorrupt: Names the intervals.
    """
    for item in inputs:
        landing.verify(landing_root, _files(item.asset, item.intervals, read), item.asset)


def _files(asset: str, intervals: Iterable[str], read: Mapping[Pair, Publication]) -> dict[str, tuple[str, str]]:
    """By interval: (location, sha256) of an asset's landed files; empty for a table."""
    found = [read[asset, i] for i in intervals if (asset, i) in read]
    return {p.interval: (p.location, p.sha256 or "") for p in found if p.location}


def create_views(
    con: Any,
    inputs: Sequence[Input],
    read: Mapping[Pair, Publication],
    landing_root: Path,
    *,
    is_verified: bool = False,
) -> None:
    """One temporary view an input, holding exactly its intervals, under the input's name.

    Only rows of the publications read: one that was inserted past them is in no digest, so it must not flow downstream.
    Landed files are compared with what was recorded, unless `is_verified`.
    """
    for item in inputs:
        if landed := _files(item.asset, [interval for asset, interval in read if asset == item.asset], read):
            files = _files(item.asset, item.intervals, read)
            landing.create_view(
                con, item.name, item.partition, landing_root, files or landed, item.asset,
                is_verified=is_verified, is_empty=not files,
            )  # fmt: skip
            continue
        found = [read[item.asset, i] for i in item.intervals if (item.asset, i) in read]
        name, table = identifier(item.name), identifier(item.asset)
        where = in_intervals(item.partition, [p.interval for p in found])
        owned = ", ".join(f"uuid {literal(p.publication_id)}" for p in found)
        con.execute(
            f"create or replace temp view {name} as select * exclude ({PRODUCED_BY}) from orders.{table} where {where}"
            + (f" and {PRODUCED_BY} in ({owned})" if owned else "")
        )


def create_run_intervals(con: Any, calendar: Calendar, intervals: Sequence[str], step_days: int) -> None:
    """The view every query may join: run_intervals(interval_date, start_at, end_at), windows in UTC."""
    rows = []
    for interval in intervals:
        last = calendar.days_of(interval)[-1] if step_days > 1 else interval
        rows.append((interval, calendar.window(interval)[0], calendar.window(last)[1]))
    values = ", ".join(
        f"(date {literal(i)}, timestamp '{a:%Y-%m-%d %H:%M:%S}', timestamp '{b:%Y-%m-%d %H:%M:%S}')" for i, a, b in rows
    )
    con.execute(f"create or replace temp view run_intervals as from (values {values}) as t(interval_date, start_at, end_at)")
