"""A full disk: nothing is published, what was there stays readable, and with room again the same run succeeds."""

import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from orders_platform.warehouse import engine
from orders_platform.warehouse.io_managers import Interrupted, explained
from orders_platform.warehouse.landing import land
from tests.warehouse.kit import DAYS, children, lines, publish, sound, store, swap


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 12 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("mounting a small disk needs root")
    yield disk
    engine.forget()  # it keeps a folder there
    subprocess.run(["umount", str(disk)], check=True)


def fill(disk: Path, left: int) -> Path:
    """A file that leaves so many bytes free."""
    state = os.statvfs(disk)
    filler = disk / "filler"
    filler.write_bytes(bytes(max(0, state.f_bavail * state.f_frsize - left)))
    return filler


@pytest.mark.file_only("a disk of 12 MB holds it and its log, not a Postgres")
@pytest.mark.parametrize(("left", "rows"), [(600_000, 200_000), (600_000, 5_000), (4096, 3), (0, 3)])
def test_a_swap_that_finds_the_disk_full_leaves_the_old_days_readable(disk: Path, left: int, rows: int) -> None:
    """Full while inserting, at COMMIT, at the first byte of the log, and before the lock can be signed."""
    warehouse = store(disk)
    publish(warehouse, swap("sold", lines(DAYS), DAYS))
    before = sound(warehouse)
    filler = fill(disk, left)
    with (
        pytest.raises(
            Interrupted, match=r"sold 2026-01-05\.\.\.2026-01-09 was not published: .*No space left.*free disk space"
        ),
        explained("sold", DAYS),
    ):
        publish(warehouse, swap("sold", lines(DAYS, "2.00", rows), DAYS))
    assert sound(warehouse) == before
    filler.unlink()
    publish(warehouse, swap("sold", lines(DAYS, "2.00", 3), DAYS))
    assert sound(warehouse) != before


def test_a_landing_that_finds_the_disk_full_leaves_no_file(disk: Path) -> None:
    schema = pa.schema([("line", pa.string())])
    batches = [pa.record_batch([[os.urandom(30).hex() for _ in range(20_000)]], schema=schema)]
    filler = fill(disk, 50_000)
    with pytest.raises(Interrupted, match="No space left"), explained("raw", [DAYS[0]]):
        land(disk, "raw", DAYS[0], "order_date", batches, schema)
    assert [path for path in disk.rglob("*") if path.is_file()] == [filler]
    filler.unlink()
    assert land(disk, "raw", DAYS[0], "order_date", batches, schema).row_count == 20_000


def write_within(home: Path, most: int) -> None:
    """A process that may not write beyond `most` bytes of any file, as on a full disk, without being root."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    try:
        publish(store(home), swap("sold", lines(DAYS, "2.00", 30_000), DAYS))
    except duckdb.Error as error:
        if "File too large" not in str(error):
            raise
        os._exit(7)


@pytest.mark.file_only("the size that it may have")
def test_a_process_whose_writes_fail_leaves_the_old_days_readable(tmp_path: Path) -> None:
    warehouse = store(tmp_path)
    publish(warehouse, swap("sold", lines(DAYS), DAYS))
    before = sound(warehouse)
    size = Path(warehouse.url).stat().st_size
    for most in (1_000, size, size + 300_000):
        assert children(write_within, (tmp_path, most)) == [7], most
        assert sound(warehouse) == before
    publish(warehouse, swap("sold", lines(DAYS, "2.00", 30_000), DAYS))
    sound(warehouse)
