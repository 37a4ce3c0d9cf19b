"""Maintenance beside running swaps and readers, by real processes on both engines: space is given back, and nothing else."""

import json
import os
import signal
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from orders_platform.definitions import defs
from orders_platform.settings import settings
from orders_platform.warehouse import landing, publications
from orders_platform.warehouse.lake import PREFIX
from orders_platform.warehouse.maintenance import Ages, Done, maintain
from orders_platform.warehouse.publications import Publication
from orders_platform.warehouse.session import Warehouse
from tests import lakes
from tests.conftest import Workspace
from tests.servers import new_database
from tests.warehouse.kit import DAYS, PROCESSES, children, lines, publish, sound, store, swap
from tests.warehouse.test_lake import WEEKS, lake

LONG = bool(os.environ.get("ORDERS_PROOF"))
SCHEMA = pa.schema([("order_id", pa.string())])
NOTHING = timedelta(0)
MANY = WEEKS[:12]
"""So many publications at once are a file of their own; fewer are kept in the lake's catalog."""


either = pytest.mark.parametrize("url", ["file", pytest.param("lake", marks=pytest.mark.proof)], indirect=True)
"""For what depends little on the engine: on a lake only in the long version."""


@pytest.fixture(params=["file", "lake"])
def url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Empty for the DuckDB file, else the catalog of a new lake."""
    if request.param == "file":
        monkeypatch.setenv(lakes.ENGINE, "file")
        return ""
    pytest.importorskip("duckdb_extensions", reason="DuckDB's extension wheels are not installed: pip install -e '.[scale]'")
    made = new_database(request.getfixturevalue("postgres"))
    return f"{PREFIX}host={made.host} port={made.port} user={made.username} dbname={made.database}"


def there(home: Path, url: str) -> Warehouse:
    return lake(home, url) if url else store(home, wait_seconds=60.0)


def tidy(home: Path, url: str, files: timedelta = NOTHING, *, dry_run: bool = False) -> list[Done]:
    return list(maintain(there(home, url), home / "landing", Ages(NOTHING, files), dry_run=dry_run))


def count(done: list[Done], step: str) -> int:
    return sum(item.count for item in done if item.step == step)


def replace_again(home: Path, url: str, table: str, day: str, times: int) -> None:
    for n in range(times):
        publish(there(home, url), swap(table, lines([day], f"{n}.10", 30 if table == "sold" else 2), [day]), [table])
    (home / f"{table} {day}").touch()


def keep_tidy(home: Path, url: str, marks: list[str], files: timedelta) -> None:
    """Maintenance after maintenance until the writers have ended; what was done is left behind."""
    found: list[Done] = []
    while not all((home / mark).exists() for mark in marks):
        found += tidy(home, url, files)
    (home / "done.json").write_text(json.dumps([vars(item) for item in found]))


def keep_reading(home: Path, url: str, marks: list[str]) -> None:
    """Sessions that ask twice, with time for swaps, expiry and merges in between, and get one answer."""
    question = (
        "select order_date::varchar, count(*), sum(amount), count(distinct produced_by) from orders.sold group by 1 order by 1"
    )
    while not all((home / mark).exists() for mark in marks):
        with there(home, url).read() as con:
            first = con.execute(question).fetchall()
            time.sleep(1.0 if url else 0.05)
            assert con.execute(question).fetchall() == first
            assert all(rows == 30 and owners == 1 for _, rows, _, owners in first), first


def fill(home: Path, url: str) -> None:
    """Two revisions of twelve days, and a table so small that a lake keeps it in its catalog."""
    for n in range(2):
        publish(there(home, url), swap("sold", lines(MANY, f"{n}.20", 30), MANY))
        publish(there(home, url), swap("small", lines(MANY[:2], f"{n}.20", 2), MANY[:2]), ["small"])


def files_of(home: Path, table: str) -> int:
    return len(list((home / "lake" / "orders" / table).rglob("*.parquet")))


def test_days_replaced_again_and_again_beside_maintenance_hold_their_rows_once_and_readers_keep_their_snapshot(
    url: str, tmp_path: Path
) -> None:
    times = 40 if LONG else 2
    fill(tmp_path, url)
    wanted = [("sold", MANY[0]), ("sold", MANY[1]), ("small", MANY[0])]
    marks = [f"{table} {day}" for table, day in wanted]
    started = [PROCESSES.Process(target=replace_again, args=(tmp_path, url, *pair, times)) for pair in wanted]
    started.append(PROCESSES.Process(target=keep_tidy, args=(tmp_path, url, marks, timedelta(seconds=5))))
    started.append(PROCESSES.Process(target=keep_reading, args=(tmp_path, url, marks)))
    for process in started:
        process.start()
    for process in started:
        process.join(500)
    assert [process.exitcode for process in started] == [0] * len(started)
    found = [Done(**item) for item in json.loads((tmp_path / "done.json").read_text())]
    assert not [item for item in found if item.step == "skipped"]
    assert {item.step for item in found} >= ({"merge", "expire", "clean up"} if url else {"checkpoint"})
    before = sound(there(tmp_path, url))
    tidy(tmp_path, url)
    tidy(tmp_path, url)  # what the first one set aside is now old enough
    assert sound(there(tmp_path, url)) == before
    with there(tmp_path, url).read() as con:
        assert con.execute("select count(*) from orders.sold").fetchall() == [(30 * len(MANY),)]
        assert con.execute("select count(*) from orders.small").fetchall() == [(4,)]
        revisions = con.execute('select max(revision) from platform.publications group by asset, "interval"').fetchall()
        assert sorted(revisions) == [(2,)] * 11 + [(times + 2,)] * 3
    if url:
        assert files_of(tmp_path, "sold") == len(MANY)


def test_a_session_that_reads_through_expiry_keeps_its_answer_as_long_as_its_files_are_kept(url: str, tmp_path: Path) -> None:
    if not url:
        pytest.skip("a DuckDB file has no snapshots: a reader excludes writers")
    fill(tmp_path, url)
    with there(tmp_path, url).read() as con:
        first = con.execute("select sum(amount) from orders.sold").fetchall()
        assert children(replace_again, (tmp_path, url, "sold", DAYS[0], 2)) == [0]
        assert children(tidy, (tmp_path, url, timedelta(hours=1))) == [0]
        assert con.execute("select sum(amount) from orders.sold").fetchall() == first
    with there(tmp_path, url).read() as con:
        assert con.execute("select sum(amount) from orders.sold").fetchall() != first


@pytest.mark.file_only("the size of the file")
def test_fifty_replacements_of_a_day_leave_the_file_below_three_times_its_live_data(tmp_path: Path) -> None:
    warehouse = store(tmp_path)
    file = tmp_path / "warehouse.duckdb"
    publish(warehouse, swap("sold", lines(DAYS[:2], count=40_000), DAYS[:2]))
    largest = 0
    for n in range(50):
        publish(warehouse, swap("sold", lines(DAYS[:1], f"{n}.10", count=40_000), DAYS[:1]))
        largest = max(largest, file.stat().st_size)
    (done,) = tidy(tmp_path, "")
    with duckdb.connect() as con:
        con.execute(f"attach '{file}' as own (read_only); attach '{tmp_path / 'copy.duckdb'}' as copied")
        con.execute("copy from database own to copied")
    live = (tmp_path / "copy.duckdb").stat().st_size
    print(f"live {live}, largest {largest} ({largest / live:.2f} ×), after maintenance {file.stat().st_size}: {done.detail}")
    assert largest < 3 * live
    assert file.stat().st_size <= largest


def die_tidying(home: Path, url: str, statements: int) -> None:
    """Kill this process with -9 at its n-th statement of maintenance."""
    left = [statements]
    real = type(there(home, url))._connect

    class Counted:
        def __init__(self, con: Any) -> None:
            self.con = con

        def execute(self, sql: str, *values: Any) -> Any:
            if sql.startswith(("call", "commit", "checkpoint")):
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return self.con.execute(sql, *values)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.con, name)

    type(there(home, url))._connect = lambda self, *, read_only: Counted(real(self, read_only=read_only))  # type: ignore[method-assign]
    tidy(home, url)


@pytest.mark.parametrize("statements", [pytest.param(n, marks=() if n in (0, 27) else pytest.mark.proof) for n in range(40)])
def test_maintenance_killed_anywhere_has_changed_nothing_and_runs_again(url: str, tmp_path: Path, statements: int) -> None:
    if not url and statements:
        pytest.skip("on a file maintenance is one statement")
    fill(tmp_path, url)
    before = sound(there(tmp_path, url))
    assert children(die_tidying, (tmp_path, url, statements)) in ([-signal.SIGKILL], [0])
    assert sound(there(tmp_path, url)) == before
    tidy(tmp_path, url)
    tidy(tmp_path, url)
    assert sound(there(tmp_path, url)) == before
    if url:
        assert files_of(tmp_path, "sold") == len(MANY)


def landed(home: Path, day: str, *orders: str) -> landing.LandedFile:
    batch = pa.RecordBatch.from_pylist([{"order_id": order} for order in orders], SCHEMA)
    return landing.land(home / "landing", "raw", day, "order_date", [batch], SCHEMA)


def announce(home: Path, url: str, day: str, file: landing.LandedFile) -> None:
    made = Publication("raw", day, "run", "v1", file.digest, file.row_count, location=file.location, sha256=file.sha256)
    with there(home, url).write("a test", ["raw"]) as con:
        landing.require(home / "landing", file.location)
        publications.publish(con, made, lambda: None)


def age(home: Path, location: str, **ago: float) -> str:
    moment = (datetime.now(UTC) - timedelta(**ago)).timestamp()
    os.utime(home / "landing" / location, (moment, moment))
    return location


@either
def test_landed_files_of_nobody_go_when_they_are_old_and_every_other_file_stays(url: str, tmp_path: Path) -> None:
    warehouse = there(tmp_path, url)
    named = [landed(tmp_path, DAYS[0], "a"), landed(tmp_path, DAYS[0], "a", "b")]
    for file in named:
        announce(tmp_path, url, DAYS[0], file)
    with warehouse.write("a test", ["raw"]) as con:
        con.execute("update platform.publications set published_at = now()::timestamp - interval 30 day")
    for file in named:
        age(tmp_path, file.location, days=10)
    folder = tmp_path / "landing" / "raw" / f"order_date={DAYS[0]}"
    (folder / ".4f.part").write_bytes(b"half a file")
    (folder / "notes.txt").write_text("a person's")
    gone = {age(tmp_path, landed(tmp_path, DAYS[0], "orphan").location, days=10),
            age(tmp_path, str((folder / ".4f.part").relative_to(tmp_path / "landing")), days=10)}  # fmt: skip
    stay = {*(file.location for file in named), age(tmp_path, landed(tmp_path, DAYS[1], "young").location, days=1),
            age(tmp_path, landed(tmp_path, DAYS[1], "of a warehouse before").location, days=40),
            age(tmp_path, str((folder / "notes.txt").relative_to(tmp_path / "landing")), days=10)}  # fmt: skip

    def orphans(*, dry_run: bool = False) -> set[str]:
        done = tidy(tmp_path, url, timedelta(days=2), dry_run=dry_run)
        return {item.where for item in done if item.step == "orphans" and item.where.startswith("raw")}

    def present() -> set[str]:
        return {str(p.relative_to(tmp_path / "landing")) for p in (tmp_path / "landing" / "raw").rglob("*") if p.is_file()}

    assert orphans(dry_run=True) == gone and present() == gone | stay
    landing.sign(tmp_path / "landing", "another warehouse")
    assert orphans() == set() and present() == gone | stay
    (*_, said) = tidy(tmp_path, url, timedelta(days=2))
    assert (said.step, ".warehouses" in said.detail) == ("skipped", True)
    next((tmp_path / "landing" / ".warehouses").iterdir()).unlink()
    landing.sign(tmp_path / "landing", warehouse.name)
    assert orphans() == gone and present() == stay
    assert orphans() == set()


def test_links_folders_and_files_of_others_below_the_landing_root_stay(tmp_path: Path) -> None:
    named, root = landed(tmp_path, DAYS[0], "a"), tmp_path / "landing"
    announce(tmp_path, "", DAYS[0], named)
    with there(tmp_path, "").write("a test", ["raw"]) as con:
        con.execute("update platform.publications set published_at = now()::timestamp - interval 30 day")
    (root / "lost+found").mkdir()
    (root / "raw_before").symlink_to("raw")
    (tmp_path / "elsewhere" / "day").mkdir(parents=True)
    (root / "elsewhere").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "day" / Path(named.location).name).write_bytes(b"of another program")
    (root / named.location).with_name("before the incident.parquet").write_bytes(b"a person's")
    files = [path for path in tmp_path.rglob("*.parquet") if path.is_file()]
    for path in files:
        age(tmp_path, str(path), days=10)
    assert count(tidy(tmp_path, "", timedelta(days=2)), "orphans") == 0
    assert len(files) == 3 and all(path.exists() for path in files)


def test_files_that_may_be_others_below_a_lakes_data_path_stay(postgres: Any, tmp_path: Path) -> None:
    pytest.importorskip("duckdb_extensions", reason="DuckDB's extension wheels are not installed: pip install -e '.[scale]'")
    made = [new_database(postgres) for _ in range(2)]
    first, second = (f"{PREFIX}host={m.host} port={m.port} user={m.username} dbname={m.database}" for m in made)
    fill(tmp_path, first)
    landing.sign(tmp_path / "landing", there(tmp_path, first).name)
    before = sound(there(tmp_path, first))
    tidy(tmp_path, second)
    assert sound(there(tmp_path, first)) == before
    inside = tmp_path / "lake"
    (inside / "landing" / "raw").mkdir(parents=True)
    (inside / "landing" / "raw" / "other.parquet").write_bytes(b"no file of the lake")
    list(maintain(there(tmp_path, first), inside / "landing", Ages(NOTHING, NOTHING)))
    assert (inside / "landing" / "raw" / "other.parquet").exists()


def test_a_password_of_a_lake_is_no_part_of_its_mark() -> None:
    one, other = (replace(lake(Path("/nowhere"), ""), url=f"{PREFIX}host=db dbname=lake password={p}") for p in ("a", "b"))
    assert one.name == other.name and "password" not in one.name


def test_a_file_that_maintenance_removes_while_equal_rows_are_landed_is_landed_by_the_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for removed_in in ("_holds", "sha256_of"):
        asked = getattr(landing, removed_in)

        def removing(path: Path, *rest: Any, asked: Any = asked) -> Any:
            path.unlink()
            return asked(path, *rest)

        landed(tmp_path, DAYS[0], "a")
        with monkeypatch.context() as patched, pytest.raises(landing.LandingGone):
            patched.setattr(landing, removed_in, removing)
            landed(tmp_path, DAYS[0], "a")
        assert landed(tmp_path, DAYS[0], "a").row_count == 1


@either
def test_a_warehouse_that_lost_everything_takes_no_landed_file_for_an_orphan(url: str, tmp_path: Path) -> None:
    age(tmp_path, landed(tmp_path, DAYS[0], "a").location, days=10)
    tidy(tmp_path, url)
    announce(tmp_path, url, DAYS[1], landed(tmp_path, DAYS[1], "b"))
    tidy(tmp_path, url)
    assert len(list((tmp_path / "landing").rglob("*.parquet"))) == 2


def land_again(home: Path, url: str, times: int) -> None:
    """Land the same few contents again and again, each by a run that is killed before it publishes, or publishes in the end."""
    for n in range(times):
        file = landed(home, DAYS[n % 3], "a")
        if n % 2:
            age(home, file.location, seconds=60)
            continue
        try:
            announce(home, url, DAYS[n % 3], file)
        except landing.LandingGone:
            announce(home, url, DAYS[n % 3], landed(home, DAYS[n % 3], "a"))
    (home / "landed").touch()


@either
def test_a_file_that_is_landed_again_while_it_is_removed_as_an_orphan_is_there_when_it_is_published(
    url: str, tmp_path: Path
) -> None:
    announce(tmp_path, url, DAYS[4], landed(tmp_path, DAYS[4], "first"))
    with there(tmp_path, url).write("a test", ["raw"]) as con:
        con.execute("update platform.publications set published_at = now()::timestamp - interval 1 day")
    times = 300 if LONG else 30
    asked = [PROCESSES.Process(target=land_again, args=(tmp_path, url, times)),
             PROCESSES.Process(target=keep_tidy, args=(tmp_path, url, ["landed"], timedelta(seconds=30)))]  # fmt: skip
    for process in asked:
        process.start()
    for process in asked:
        process.join(300)
    assert [process.exitcode for process in asked] == [0, 0]
    with there(tmp_path, url).read() as con:
        locations = con.execute("select distinct location from platform.publications").fetchall()
    assert locations and all((tmp_path / "landing" / location).is_file() for (location,) in locations)


def test_the_command_and_the_scheduled_job_do_the_same(workspace: Workspace) -> None:
    workspace.put_days(DAYS[0])
    assert workspace.materialize(DAYS[0], assets=("raw_orders", "stg_orders")).success
    before = workspace.current()
    orphan = workspace.home / "landing" / "raw_orders" / f"order_date={DAYS[0]}" / ".1f.part"

    def left() -> None:
        orphan.write_bytes(b"half")
        workspace.tamper("update platform.publications set published_at = published_at - interval 30 day")
        moment = (datetime.now(UTC) - timedelta(days=3)).timestamp()
        os.utime(orphan, (moment, moment))

    left()
    dry = workspace.run("orders", "maintenance", "--dry-run", "--json")
    assert dry.returncode == 0 and orphan.exists(), dry.stderr
    steps = ["expire", "clean up", "orphans", "orphans"] if lakes.chosen() else ["checkpoint", "orphans"]
    assert [item["step"] for item in json.loads(dry.stdout)] == steps
    done = workspace.run("orders", "maintenance")
    assert done.returncode == 0 and not orphan.exists() and ".1f.part" in done.stdout, done.stderr
    left()
    assert defs.get_job_def("maintenance").execute_in_process(instance=workspace.instance).success
    assert not orphan.exists()
    assert defs.get_schedule_def("maintenance_schedule").job_name == "maintenance"
    assert {p: replace(v, published_at=before[p].published_at) for p, v in workspace.current().items()} == before
    assert Ages.from_settings(settings()) == Ages(timedelta(days=7), timedelta(days=2))
