"""Maintenance. Belongs here: giving space back: a checkpoint, a lake's past snapshots and small files, landed files of nobody.

Not here: when it runs (automation/). Nothing here changes a row, a publication or a file that a publication names.
"""

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from orders_platform.settings import Settings
from orders_platform.warehouse.contract import IDENTIFIER, identifier, literal
from orders_platform.warehouse.landing import MARKS, others
from orders_platform.warehouse.publications import one
from orders_platform.warehouse.session import Warehouse, WarehouseBusy


@dataclass(frozen=True)
class Ages:
    """How long what nobody needs any more is kept.

    Attributes:
        snapshots: Past states of a DuckLake; longer than any swap takes.
        files: Files that nothing names any more, or not yet; longer than any capture, swap or reading session takes.
    """

    snapshots: timedelta
    files: timedelta

    @classmethod
    def from_settings(cls, settings: Settings) -> "Ages":
        """The ages that these settings describe."""
        return cls(timedelta(days=settings.snapshot_days), timedelta(days=settings.unnamed_file_days))


@dataclass(frozen=True)
class Done:
    """One thing that was done, or would be in a dry run.

    Attributes:
        step: checkpoint, rewrite, merge, expire, clean up, orphans, or skipped.
        where: Table, file or folder.
        count: Bytes given back by a checkpoint; tables, snapshots or files otherwise.
        detail: For people.
    """

    step: str
    where: str
    count: int
    detail: str


def maintain(warehouse: Warehouse, landing_root: Path, ages: Ages, *, dry_run: bool = False) -> Iterator[Done]:
    """Everything there is to do, each part in a short session of its own; what is in use meanwhile is left for the next time."""
    now = datetime.now(UTC)
    is_alone = not others(landing_root, warehouse.name)
    if warehouse.url.startswith("ducklake:"):
        holds_landing = any(landing_root.resolve().is_relative_to(Path(folder).resolve()) for folder in warehouse.folders)
        yield from _lake(warehouse, ages, now, dry_run, is_alone=is_alone and not holds_landing)
    else:
        yield checkpoint(warehouse, dry_run=dry_run)
    if not is_alone:
        yield Done("skipped", str(landing_root), 0, f"another warehouse lands here too, or did: see {MARKS} in it")
        return
    for folder in sorted(landing_root.iterdir()) if landing_root.is_dir() else ():
        if folder.is_dir() and IDENTIFIER.match(folder.name):  # others, such as lost+found, are no asset's
            yield from _orphans(warehouse, landing_root, folder.name, now - ages.files, dry_run)


def checkpoint(warehouse: Warehouse, *, dry_run: bool = False) -> Done:
    """Write the log into the file, and give the file's free end back to the disk."""
    file = Path(warehouse.url)
    before = file.stat().st_size if file.exists() else 0
    with warehouse.read() if dry_run else warehouse.write("maintenance") as con:
        if not dry_run:
            con.execute("checkpoint").fetchall()
        used, block = one(
            con,
            "select used_blocks, block_size from pragma_database_size() where database_name = current_database()",
        )
    after = file.stat().st_size
    return Done("checkpoint", file.name, before - after, f"{size_text(after)}, of which {size_text(used * block)} are in use")


def _lake(warehouse: Warehouse, ages: Ages, now: datetime, dry_run: bool, *, is_alone: bool) -> Iterator[Done]:
    """DuckLake takes every Parquet file below its data path that its catalog does not name for an orphan (measured)."""
    with warehouse.read() as con:
        tables = con.execute(
            "select schema_name, table_name from duckdb_tables() where database_name = current_database() "
            "and schema_name in ('orders', 'platform') order by all"
        ).fetchall()
    for schema, table in tables:
        try:
            with warehouse.write(f"maintenance of {table}", [table]) as con:
                yield from _compact(con, schema, table, dry_run)
        except WarehouseBusy as busy:
            yield Done("skipped", f"{schema}.{table}", 0, busy.message)
    asked = [("expire", "ducklake_expire_snapshots", ages.snapshots), ("clean up", "ducklake_cleanup_old_files", ages.files),
             ("orphans", "ducklake_delete_orphaned_files", ages.files)]  # fmt: skip
    with warehouse.write("maintenance of the lake", ["maintenance"]) as con:
        for step, function, age in asked:
            if step == "orphans" and not is_alone:
                yield Done("skipped", "orphans of the lake", 0, "files of others may lie below its data path")
                continue
            before = literal((now - age).isoformat())
            rows = con.execute(
                f"call {function}(current_database(), older_than => {before}::timestamptz, dry_run => {dry_run})"
            ).fetchall()
            yield Done(step, "the lake", len(rows), f"older than {age}")


def _compact(con: Any, schema: str, table: str, dry_run: bool) -> Iterator[Done]:
    """Files without their deleted rows, and small files made one; under the table's claim."""
    name, where = literal(table), f"{schema}.{table}"
    for step, call in (
        ("rewrite", f"ducklake_rewrite_data_files(current_database(), {name}, schema => {literal(schema)})"),
        ("merge", f"ducklake_merge_adjacent_files(current_database(), {name}, schema => {literal(schema)})"),
    ):
        con.execute("begin")
        rows = con.execute(f"call {call}").fetchall()
        con.execute("rollback" if dry_run else "commit")
        if rows:
            yield Done(step, where, len(rows), "")


def _orphans(warehouse: Warehouse, root: Path, asset: str, before: datetime, dry_run: bool) -> Iterator[Done]:
    """Landed files that no publication ever named. Under the claim of the asset, in which a landed file is published."""
    with warehouse.read() if dry_run else warehouse.write(f"maintenance of landed {asset}", [asset]) as con:
        for location, size in abandoned(con, root, asset, before):
            if not dry_run:
                (root / location).unlink(missing_ok=True)
            yield Done("orphans", location, 1, size_text(size))


def abandoned(con: Any, root: Path, asset: str, before: datetime) -> list[tuple[str, int]]:
    """Orphaned files of the asset that may go, with their sizes: ours, last touched before then, of this warehouse's time.

    A file that is older than the warehouse's first publication may be another's, whose loss made this one: it stays.
    """
    first = one(con, "select min(published_at) from platform.publications")[0]
    if first is None:
        return []
    since, until = first.replace(tzinfo=UTC).timestamp(), before.timestamp()
    found = []
    for location in orphaned(con, (f"{asset}/{path}" for path in files_below(root / identifier(asset)))):
        with suppress(FileNotFoundError):  # a capture has finished or given up its part meanwhile
            path = root / location
            facts = path.stat()
            is_own = path.resolve() == root.resolve() / location  # a link leads to a file that has another name
            if is_own and is_landing(path) and since < facts.st_mtime < until:
                found.append((location, facts.st_size))
    return found


def is_landing(path: Path) -> bool:
    """Whether the file is named as the landing names its files: by a digest, or as one being written."""
    return bool(re.fullmatch(r"[0-9a-f]{4}\.\d+\.[0-9a-f]+\.parquet|\.[0-9a-f]+\.part", path.name))


def orphaned(con: Any, locations: Iterable[str]) -> list[str]:
    """Those of the landed files that no publication names, past ones included."""
    known = {row[0] for row in con.execute("select location from platform.publications where location is not null").fetchall()}
    return sorted(set(locations) - known)


def files_below(root: Path) -> list[str]:
    """Every file that was landed below the folder, relative to it; those being written (.part) too."""
    found = [path.relative_to(root) for path in root.rglob("*") if path.is_file()] if root.is_dir() else []
    return [str(path) for path in found if MARKS not in path.parts]


def size_text(count: int) -> str:
    """Bytes, as people read them.

    >>> size_text(512), size_text(2_371_584)
    ('512 B', '2.3 MiB')
    """
    if count < 1024:
        return f"{count} B"
    power = min(int(math.log(count, 1024)), 4)
    return f"{count / 1024**power:.1f} {'KMGT'[power - 1]}iB"
