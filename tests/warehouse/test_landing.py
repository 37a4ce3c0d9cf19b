"""Landed files: immutable, named by content, verified when read, and found wherever the workspace lies."""

import os
import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from orders_platform.errors import OrdersError
from orders_platform.warehouse.files import FileCorrupt
from orders_platform.warehouse.landing import LandedFile, LandingCorrupt, create_view, land

SCHEMA = pa.schema([("status", pa.string()), ("line", pa.string())])
DAY = "2026-01-05"


def landed(root: Path, *lines: str, day: str = DAY) -> LandedFile:
    batches = [pa.record_batch([["paid"], [line]], schema=SCHEMA) for line in lines]
    return land(root, "raw", day, "order_date", batches, SCHEMA)


def read(root: Path, *files: tuple[str, LandedFile]) -> list[tuple[str, str, str]]:
    with duckdb.connect() as con:
        create_view(con, "raw", "order_date", root, {day: (file.location, file.sha256) for day, file in files}, "raw")
        assert [row[0] for row in con.execute("describe raw").fetchall()] == ["status", "line", "order_date"]
        return con.execute("select order_date::varchar, status, line from raw order by all").fetchall()


def test_the_same_rows_in_any_order_keep_their_one_file(tmp_path: Path) -> None:
    first = landed(tmp_path, "a", "b")
    assert landed(tmp_path, "b", "a") == first
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [f"{first.digest}.parquet"]


def test_other_rows_make_a_second_file_beside_the_first_which_stays_readable(tmp_path: Path) -> None:
    first, second = landed(tmp_path, "a"), landed(tmp_path, "a", "a")
    assert first.location != second.location
    assert read(tmp_path, (DAY, first)) == [(DAY, "paid", "a")]
    assert read(tmp_path, (DAY, second)) == [(DAY, "paid", "a")] * 2


def test_a_day_without_rows_lands(tmp_path: Path) -> None:
    assert read(tmp_path, (DAY, landed(tmp_path))) == []


@pytest.mark.parametrize(
    "name", ["a b", "it's", "br[a]cket", "st*r", "env=prod", "order_date=1999-01-01", "status=lost", "ünï"]
)
def test_the_names_of_folders_further_up_mean_nothing(tmp_path: Path, name: str) -> None:
    root = tmp_path / name / "landing"
    (tmp_path / "bracket").mkdir()
    files = [(day, landed(root, day, day=day)) for day in (DAY, "2026-01-09")]
    assert read(root, *files) == [(DAY, "paid", DAY), ("2026-01-09", "paid", "2026-01-09")]


def test_a_changed_or_missing_file_is_named_with_its_day_and_the_way_back(tmp_path: Path) -> None:
    changed, missing = landed(tmp_path, "a"), landed(tmp_path, "b", day="2026-01-06")
    path = tmp_path / changed.location
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    (tmp_path / missing.location).unlink()
    with pytest.raises(LandingCorrupt) as caught:
        read(tmp_path, (DAY, changed), ("2026-01-06", missing))
    for part in (f"{DAY}: the bytes of", "2026-01-06: ", "is missing", "--select raw --partition 2026-01-05"):
        assert part in str(caught.value)
    landed(tmp_path, "b", day="2026-01-06")
    assert read(tmp_path, ("2026-01-06", missing)) == [("2026-01-06", "paid", "b")]


@pytest.mark.parametrize("damage", [b"", b"not parquet at all", None])
def test_landing_beside_a_broken_file_of_the_same_content_overwrites_nothing_and_says_what_to_do(
    tmp_path: Path, damage: bytes | None
) -> None:
    path = tmp_path / landed(tmp_path, "a").location
    broken = damage if damage is not None else (tmp_path / landed(tmp_path, "other").location).read_bytes()
    path.write_bytes(broken)
    with pytest.raises(LandingCorrupt, match=f"Move {path} away"):
        landed(tmp_path, "a")
    assert path.read_bytes() == broken
    path.rename(tmp_path / "away")
    assert read(tmp_path, (DAY, landed(tmp_path, "a"))) == [(DAY, "paid", "a")]


def test_a_source_that_fails_half_way_leaves_no_file(tmp_path: Path) -> None:
    def failing() -> object:
        yield pa.record_batch([["paid"], ["a"]], schema=SCHEMA)
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        land(tmp_path, "raw", DAY, "order_date", failing(), SCHEMA)  # type: ignore[arg-type]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("location", ["../outside.parquet", "/etc/passwd", "raw/../../outside.parquet", "link/x.parquet"])
def test_a_location_cannot_lead_out_of_its_root(tmp_path: Path, location: str) -> None:
    root = tmp_path / "landing"
    root.mkdir()
    (root / "link").symlink_to(tmp_path)
    with pytest.raises(FileCorrupt, match="leads out of"):
        read(root, (DAY, LandedFile(location, "", "", 0)))


@pytest.mark.parametrize(("asset", "day"), [("../raw", DAY), ("raw", "../../etc"), ("raw", "2026-01-05/../x"), ("raw", "")])
def test_neither_can_an_asset_or_an_interval(tmp_path: Path, asset: str, day: str) -> None:
    with pytest.raises(OrdersError):
        land(tmp_path / "landing", asset, day, "order_date", [], SCHEMA)
    assert list(tmp_path.rglob("*")) == []


def test_what_a_killed_landing_left_behind_is_removed_after_a_day_and_a_running_one_is_left_alone(tmp_path: Path) -> None:
    folder = (tmp_path / landed(tmp_path, "a").location).parent
    old, young = folder / ".old.part", folder / ".young.part"
    for part in (old, young):
        part.touch()
    os.utime(old, (time.time() - 2 * 86_400,) * 2)
    landed(tmp_path, "b")
    assert (old.exists(), young.exists()) == (False, True)
