"""Training sets. Belongs here: a table's intervals as one Parquet file with a manifest, and what has changed since.

Not here: what the features are (assets/customer_features.py) or how the answer is printed (cli/features.py).
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from orders_platform.calendar import describe
from orders_platform.errors import OrdersError
from orders_platform.warehouse import publications
from orders_platform.warehouse.contract import TableContract, identifier, literal
from orders_platform.warehouse.files import part_of, place, sha256_of, write_once
from orders_platform.warehouse.publications import Publication


class NotTrainable(OrdersError):
    """An interval of the range is missing, held or stale, so a set of it would be shorter or older than it says."""


class NotATrainingSet(OrdersError):
    """The file has no manifest, or is not the file its manifest was written for."""


@dataclass(frozen=True)
class Change:
    """What became of one interval since the set was written.

    Attributes:
        state: unchanged, changed (other rows), stale (an input was replaced, not rebuilt yet), held or missing.
        added, removed: Rows (whole rows: an altered one counts in both) that today's interval has more or fewer than the file.
        cause: The first input that was replaced, where one was.
    """

    interval: str
    state: str
    trained_on: str
    now: str | None
    rows_then: int
    rows_now: int | None = None
    added: int = 0
    removed: int = 0
    cause: str = ""
    published_at: str = ""
    run_id: str = ""


def manifest_of(file: Path) -> Path:
    """The manifest beside a training set.

    >>> manifest_of(Path("a/train.parquet")).name
    'train.parquet.manifest.json'
    """
    return file.with_name(f"{file.name}.manifest.json")


def write(con: Any, table: str, contract: TableContract, intervals: Sequence[str], file: Path) -> dict[str, Any]:
    """Write the intervals, as published now, to a new Parquet file and name their publications in its manifest.

    Equal publications give equal bytes. Both files appear whole or not at all, the manifest last.

    Raises:
        NotTrainable: An interval is missing, held or stale; the file or its manifest exists.
    """
    taken = NotTrainable(f"{file} or its manifest exists, and a training set is never replaced.", "Name another --out.")
    if file.exists() or manifest_of(file).exists():
        raise taken
    _require_current(con, table, intervals)
    found = publications.current(con, [(table, interval) for interval in intervals])
    listed = [found[table, interval] for interval in intervals]
    with part_of(file.parent) as part:
        con.execute(f"copy ({_rows(table, contract, listed)}) to {literal(str(part))} (format parquet, compression zstd)")
        manifest = {
            "table": table,
            "grain": contract.grain,
            "from": intervals[0],
            "to": intervals[-1],
            "rows": sum(p.row_count for p in listed),
            "columns": {name: asdict(column) for name, column in contract.columns.items()},
            "sha256": sha256_of(part),
            "publications": [_entry(p) for p in listed],
        }
        if not place(part, file):
            raise taken
    if not write_once(manifest_of(file), (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode()):
        raise taken
    return manifest


def read_manifest(file: Path) -> dict[str, Any]:
    """The manifest of a training set whose bytes are still those that were written.

    Raises:
        NotATrainingSet: There is no manifest, or the file's bytes changed.
    """
    path = manifest_of(file)
    if not file.is_file() or not path.is_file():
        lacking = path if file.is_file() else file
        raise NotATrainingSet(f"{lacking} is not there.", "Write a set: orders features training-set --from … --to … --out …")
    try:
        manifest: dict[str, Any] = json.loads(path.read_text())
        expected = manifest["sha256"]
    except (ValueError, KeyError, TypeError) as error:
        raise NotATrainingSet(f"{path} cannot be read as a manifest.", "Restore it from a backup.") from error
    if sha256_of(file) != expected:
        raise NotATrainingSet(f"The bytes of {file} are not those its manifest records.", "Restore the file from a backup.")
    return manifest


def compare(
    con: Any, manifest: dict[str, Any], contract: TableContract, file: Path, progress: Callable[[str], None]
) -> list[Change]:
    """What became of each interval of the set; row differences are counted only where the digest moved."""
    table = identifier(manifest["table"])
    entries = {entry["interval"]: entry for entry in manifest["publications"]}
    found = publications.current(con, [(table, interval) for interval in entries])
    coverage = {
        row[0]: row[1:]
        for row in con.execute(
            'select "interval", is_current, is_held from published.coverage where asset = ?', [table]
        ).fetchall()
    }
    changes = []
    for interval, entry in entries.items():
        now = found.get((table, interval))
        is_current, is_held = coverage.get(interval, (False, False))
        same = now is not None and now.digest == entry["digest"]
        if now is None or is_held:
            state = "missing" if now is None else "held"
        else:
            state = "changed" if not same else "unchanged" if is_current else "stale"
        added, removed = (0, 0) if now is None or same else _differences(con, table, contract, file, entry, now)
        changes.append(
            Change(
                interval, state, entry["publication_id"], now.publication_id if now else None, entry["row_count"],
                now.row_count if now else None, added, removed, "" if state == "unchanged" else _cause(con, entry),
                f"{now.published_at:%Y-%m-%d %H:%M:%S}" if now else "", now.run_id if now else "",
            )
        )  # fmt: skip
        progress(interval)
    return changes


def _require_current(con: Any, table: str, intervals: Sequence[str]) -> None:
    states = con.execute(
        'select "interval", is_published, is_held, is_current from published.coverage where asset = ?', [table]
    ).fetchall()
    known = {interval: state for interval, *state in states}
    bad: dict[str, list[str]] = {}
    for interval in intervals:
        is_published, is_held, is_current = known.get(interval, (False, False, False))
        if not (is_published and is_current) or is_held:
            bad.setdefault("missing" if not is_published else "held" if is_held else "stale", []).append(interval)
    if bad:
        listed = "; ".join(f"{describe(days)} {'is' if len(days) == 1 else 'are'} {state}" for state, days in bad.items())
        first = next(iter(bad.values()))[0]
        raise NotTrainable(
            f"{table} cannot be trained on from {intervals[0]} to {intervals[-1]}: {listed}.",
            f"See why: orders status --from {first}; or choose another --from and --to.",
        )


def _rows(table: str, contract: TableContract, listed: Sequence[Publication]) -> str:
    columns = ", ".join(identifier(c) for c in contract.columns)
    order = ", ".join(identifier(c) for c in (contract.partition, *contract.key))
    ids = ", ".join(f"{literal(p.publication_id)}::uuid" for p in listed)
    return f"select {columns} from orders.{identifier(table)} where produced_by in ({ids}) order by {order}"


def _entry(p: Publication) -> dict[str, Any]:
    return {
        "interval": p.interval,
        "publication_id": p.publication_id,
        "revision": p.revision,
        "digest": p.digest,
        "row_count": p.row_count,
        "code_version": p.code_version,
        "git_commit": p.git_commit,
        "published_at": p.published_at.isoformat(timespec="seconds"),
        "inputs": [asdict(i) for i in p.inputs],
    }


def _differences(
    con: Any, table: str, contract: TableContract, file: Path, entry: dict[str, Any], now: Publication
) -> tuple[int, int]:
    """Rows the interval gained and lost against the file, over the columns that both have."""
    names = [c for c in contract.columns if c in pq.read_schema(file).names]
    columns = ", ".join(identifier(c) for c in names)
    today = f"select {columns} from orders.{table} where produced_by = ?::uuid"
    trained = f"select {columns} from read_parquet(?) where {identifier(contract.partition)} = ?::date"
    then = [str(file), entry["interval"]]
    gained = publications.one(con, f"select count(*) from ({today} except all {trained})", [now.publication_id, *then])
    lost = publications.one(con, f"select count(*) from ({trained} except all {today})", [*then, now.publication_id])
    return int(gained[0]), int(lost[0])


def _cause(con: Any, entry: dict[str, Any]) -> str:
    """The first input of then whose content is another one now."""
    then = {(i["asset"], i["interval"]): i["digest"] for i in entry["inputs"]}
    now = publications.current(con, then)
    moved = [pair for pair in then if pair not in now or now[pair].digest != then[pair]]
    return f"{' '.join(moved[0])} was replaced" + (f" (and {len(moved) - 1} more)" if moved[1:] else "") if moved else ""
