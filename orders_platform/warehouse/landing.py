"""Landed files. Belongs here: writing an immutable Parquet file named by its content, verifying it, exposing it as a view.

Not here: where the rows come from (source/) or which file is current (publications.py).
"""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from orders_platform.calendar import parse_interval
from orders_platform.errors import OrdersError
from orders_platform.warehouse.contract import identifier, literal
from orders_platform.warehouse.files import FileCorrupt, part_of, place, safe_path, sha256_of
from orders_platform.warehouse.publications import one

CANARY = "select hash(42, 'canary', 1.50::decimal(18,2), date '2026-01-05') % 65536"


MARKS = ".warehouses"
"""Folder under the landing root in which each warehouse that lands there leaves its mark."""


class LandingCorrupt(FileCorrupt):
    """A landed file that is missing, or whose bytes are not those that were recorded."""


class LandingGone(OrdersError):
    """A landed file that nobody had published for long was removed by maintenance just when its rows were landed again."""

    retryable = True


@dataclass(frozen=True)
class LandedFile:
    """One file: location relative to the landing root, sha256 of its bytes, digest of its rows, row count."""

    location: str
    sha256: str
    digest: str
    row_count: int


def digest_text(canary: int, rows: int, total: int) -> str:
    """A digest as recorded: hash canary, row count, order-independent sum of row hashes.

    >>> digest_text(7, 2, 255)
    '0007.2.ff'
    """
    return f"{canary:04x}.{rows}.{total:x}"


def land(
    root: Path,
    asset: str,
    interval: str,
    partition: str,
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    repeating: Sequence[str] = (),
) -> LandedFile:
    """Write the rows as a new immutable file; equal rows already landed keep their file.

    The file is written beside its final place, measured, and linked to its name in one step, so no reader ever sees half of it
    and nothing is overwritten.
    """
    folder = root / identifier(asset) / f"{identifier(partition)}={parse_interval(interval)}"
    with part_of(folder) as part:
        with part.open("wb") as sink:
            # A batch is compressed while the next one is read; compressing is a fifth of the work and needs no GIL.
            # A dictionary of values that hardly repeat costs a third of the writing and of the file (measured).
            with (
                pq.ParquetWriter(sink, schema, compression="zstd", use_dictionary=[*repeating]) as writer,
                ThreadPoolExecutor(1) as pool,
            ):
                written = pool.submit(lambda: None)
                for batch in batches:
                    written.result()
                    written = pool.submit(writer.write_batch, batch)
                written.result()
            sink.flush()
            os.fsync(sink.fileno())
        rows, digest = _measure(part, schema.names)
        final = folder / f"{digest}.parquet"
        location = str(final.relative_to(root))
        is_new = place(part, final)
        require(root, location)
        if not is_new and not _holds(final, schema.names, rows, digest):
            require(root, location)
            raise LandingCorrupt(
                f"{asset} {interval}: {final.name} no longer holds the rows it is named for.",
                f"Move {final} away, then materialize {asset} for {interval} again.",
            )
    try:
        return LandedFile(location, sha256_of(final), digest, rows)
    except FileNotFoundError:
        raise _gone(location) from None


def require(root: Path, location: str) -> None:
    """Touch the landed file, so that maintenance takes it for young; asked again under the claim that publishes it.

    Raises:
        LandingGone: It was removed meanwhile.
    """
    try:
        os.utime(root / location)
    except FileNotFoundError:
        raise _gone(location) from None


def _gone(location: str) -> LandingGone:
    return LandingGone(f"{location} was removed as an orphan meanwhile.", "Capture the day again.")


def sign(root: Path, warehouse: str) -> None:
    """Leave the mark of a warehouse that lands here: where several do, no one of them knows which files nobody names."""
    mark = root / MARKS / _mark(warehouse)
    if not mark.exists():
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()


def others(root: Path, warehouse: str) -> bool:
    """Whether another warehouse lands here too, or did."""
    return any(mark.name != _mark(warehouse) for mark in (root / MARKS).glob("*"))


def _mark(warehouse: str) -> str:
    return hashlib.sha256(warehouse.encode()).hexdigest()[:16]


def verify(root: Path, files: Mapping[str, tuple[str, str]], asset: str) -> None:
    """Compare landed files, interval -> (location, sha256), with what was recorded.

    Raises:
        LandingCorrupt: A file is missing or its bytes changed; names every such interval.
    """
    paths = {interval: safe_path(root, location) for interval, (location, _) in files.items()}

    def broken(interval: str) -> str | None:
        path = paths[interval]
        if not path.is_file():
            return f"{interval}: {path.name} is missing"
        return None if sha256_of(path) == files[interval][1] else f"{interval}: the bytes of {path.name} changed"

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        found = sorted(filter(None, pool.map(broken, paths)))
    if found:
        first = found[0].split(":")[0]
        raise LandingCorrupt(
            f"Landed files of {asset} are not what was recorded ({'; '.join(found[:20])}).",
            f"Restore the file from a backup, or capture the source again: "
            f"dagster asset materialize --select {asset} --partition {first}",
        )


def create_view(
    con: Any,
    name: str,
    partition: str,
    root: Path,
    files: Mapping[str, tuple[str, str]],
    asset: str,
    *,
    is_verified: bool = False,
    is_empty: bool = False,
) -> None:
    """A temporary view over landed files, each verified first.

    Args:
        con: The session.
        name: View name.
        partition: Column taken from the name of the file's own folder, not of one further up that may hold a '=' too.
        root: Landing root.
        files: interval -> (location, sha256).
        asset: Named in errors.
        is_verified: Whether `verify` has just compared these files.
        is_empty: Whether the view has their columns and no row.

    Raises:
        LandingCorrupt: A file is missing or its bytes changed; names the interval.
    """
    if not is_verified:
        verify(root, files, asset)
    listed = ", ".join(literal(str(safe_path(root, location))) for _, (location, _) in sorted(files.items()))
    column = identifier(partition)
    con.execute(
        f"create or replace temp view {identifier(name)} as select * exclude (_file), "
        f"cast(regexp_extract(_file, '{column}=([0-9-]+)/[^/]*$', 1) as date) as {column} "
        f"from read_parquet([{listed}], hive_partitioning = false, filename = '_file'){' where false' if is_empty else ''}"
    )


def _holds(path: Path, columns: list[str], rows: int, digest: str) -> bool:
    try:
        return _measure(path, columns) == (rows, digest)
    except duckdb.Error:
        return False


def _measure(path: Path, columns: list[str]) -> tuple[int, str]:
    con = duckdb.connect()
    try:
        listed = ", ".join(identifier(c) for c in columns)
        rows, total = one(
            con,
            f"select count(*), coalesce(sum(hash({listed})::hugeint), 0) "
            f"from read_parquet({literal(str(path))}, hive_partitioning = false)",
        )
        return rows, digest_text(one(con, CANARY)[0], rows, total)
    finally:
        con.close()
