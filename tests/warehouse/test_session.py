"""Sessions: short, exclusive to write, shared to read, waited for in turn, never nested, and freed however they end."""

import fcntl
import hashlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from pathlib import Path

import duckdb
import pytest

from orders_platform.calendar import Calendar
from orders_platform.errors import OrdersError, SettingsError
from orders_platform.settings import Settings
from orders_platform.warehouse import publications
from orders_platform.warehouse.publications import CalendarMismatch
from orders_platform.warehouse.session import NestedSession, Warehouse, WarehouseBusy
from tests.warehouse.kit import CALENDAR, PROCESSES, children, store


def count_up(home: Path, threads: int, times: int) -> None:
    """Add 1 in many short sessions, each of which would lose an addition if another could write beside it."""

    def work(_: int) -> None:
        for _ in range(times):
            with store(home).write("counting") as con:
                [(n,)] = con.execute("select n from counter").fetchall()
                con.execute("update counter set n = ?", [n + 1])
            with store(home).read() as con:
                con.execute("select n from counter").fetchall()

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))


def test_writers_and_readers_of_many_processes_and_threads_lose_nothing_and_never_fail(tmp_path: Path) -> None:
    with store(tmp_path).write("a test") as con:
        con.execute("create table counter as select 0 as n")
    assert children(count_up, *[(tmp_path, 3, 5)] * 3) == [0, 0, 0]
    with store(tmp_path).read() as con:
        assert con.execute("from counter").fetchall() == [(45,)]


def read_without_end(home: Path) -> None:
    while not (home / "stop").exists():
        with store(home).read() as con:
            con.execute("select count(*) from range(3000000) where range % 7 = 3").fetchall()


def write_without_end(home: Path) -> None:
    while not (home / "stop").exists():
        with store(home).write("busy") as con:
            con.execute("create or replace table t as select * from range(1000)")


@pytest.mark.parametrize("crowd", [read_without_end, write_without_end])
def test_neither_a_writer_nor_a_reader_is_starved(tmp_path: Path, crowd: object) -> None:
    with store(tmp_path).write("a test"):
        pass
    others = [PROCESSES.Process(target=crowd, args=(tmp_path,)) for _ in range(4)]
    for other in others:
        other.start()
    try:
        time.sleep(0.5)
        waits = []
        for _ in range(3):
            began = time.monotonic()
            with store(tmp_path).write("the one"):
                waits.append(time.monotonic() - began)
            began = time.monotonic()
            with store(tmp_path).read():
                waits.append(time.monotonic() - began)
        assert max(waits) < 8, waits
    finally:
        (tmp_path / "stop").touch()
        for other in others:
            other.join(20)
    assert [other.exitcode for other in others] == [0, 0, 0, 0]


def hold(home: Path, purpose: str, seconds: float) -> None:
    warehouse = store(home)
    with warehouse.write(purpose) if purpose else warehouse.read():
        (home / "held").touch()
        time.sleep(seconds)


def holder(home: Path, purpose: str) -> "PROCESSES.Process":  # type: ignore[name-defined]
    with store(home).write("a test"):
        pass
    process = PROCESSES.Process(target=hold, args=(home, purpose, 60))
    process.start()
    while not (home / "held").exists():
        time.sleep(0.01)
    return process


@pytest.mark.file_only("a reader waits for a writer, under flock; test_lake.py has the advisory lock")
def test_whoever_waits_in_vain_is_told_who_holds_the_warehouse_and_for_what(tmp_path: Path) -> None:
    process = holder(tmp_path, "run 42 publishing fct_orders")
    try:
        for session in (store(tmp_path, wait_seconds=0.2).write("me"), store(tmp_path, wait_seconds=0.2).read()):
            with (
                pytest.raises(
                    WarehouseBusy, match=rf"process {process.pid} \(run 42 publishing fct_orders, since 20"
                ) as caught,
                session,
            ):
                pass
            assert caught.value.retryable
    finally:
        process.kill()
        process.join()


@pytest.mark.file_only("a reader waits for a writer, under flock; test_lake.py has the advisory lock")
def test_a_killed_holder_leaves_nothing_behind_and_is_not_named_any_more(tmp_path: Path) -> None:
    process = holder(tmp_path, "a run that dies")
    process.kill()
    process.join()
    with store(tmp_path, wait_seconds=0.5).write("next"):
        pass
    (tmp_path / "held").unlink()
    process = holder(tmp_path, "another that dies")
    process.kill()
    process.join()
    (tmp_path / "held").unlink()
    reader = PROCESSES.Process(target=hold, args=(tmp_path, "", 60))
    reader.start()
    while not (tmp_path / "held").exists():
        time.sleep(0.01)
    try:
        with (
            pytest.raises(WarehouseBusy, match=r"held for longer than 0\.2 s, by readers"),
            store(tmp_path, wait_seconds=0.2).write("me"),
        ):
            pass
    finally:
        reader.kill()
        reader.join()


def test_a_session_inside_another_of_the_same_thread_is_refused_at_once(tmp_path: Path) -> None:
    outer = store(tmp_path)
    link = tmp_path / "by another name"
    link.symlink_to(tmp_path)
    for inner in (store(tmp_path).read(), store(tmp_path).write("me")):
        with pytest.raises(NestedSession), outer.write("outer"), inner:
            pass
    with outer.write("free again"):
        pass


def test_another_thread_waits_for_its_turn(tmp_path: Path) -> None:
    order: list[str] = []

    def second() -> None:
        with store(tmp_path).write("second"):
            order.append("second")

    with store(tmp_path).write("first"):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def foreign(path: str, seconds: float, read_only: bool) -> None:
    con = duckdb.connect(path, read_only=read_only)
    Path(path).with_name("held").touch()
    time.sleep(seconds)
    con.close()


@pytest.mark.file_only("DuckDB's own lock on it")
@pytest.mark.parametrize("read_only", [True, False])
def test_a_program_that_knows_no_locks_is_waited_for_and_named(tmp_path: Path, read_only: bool) -> None:
    with store(tmp_path).write("a test"):
        pass
    process = PROCESSES.Process(target=foreign, args=(store(tmp_path).url, 1.0, read_only))
    process.start()
    while not (tmp_path / "held").exists():
        time.sleep(0.01)
    named = pytest.raises(WarehouseBusy, match=rf"Another program holds warehouse.duckdb: .*PID {process.pid}")
    with named, store(tmp_path, wait_seconds=0.2).write("me"):
        pass
    with store(tmp_path).write("me"):
        pass
    process.join()


@pytest.mark.file_only("DuckDB's own lock on it")
def test_another_connection_of_this_process_is_waited_for_and_named(tmp_path: Path) -> None:
    with store(tmp_path).write("a test"):
        pass
    con = duckdb.connect(store(tmp_path).url)
    try:
        with (
            pytest.raises(WarehouseBusy, match=r"Another program holds warehouse\.duckdb"),
            store(tmp_path, wait_seconds=0.2).read(),
        ):
            pass
    finally:
        con.close()
    with store(tmp_path).read():
        pass


def test_an_exception_closes_the_connection_and_frees_the_warehouse(tmp_path: Path) -> None:
    for session in (lambda: store(tmp_path).write("failing"), lambda: store(tmp_path).read()):
        with pytest.raises(RuntimeError), session() as con:
            raise RuntimeError
        with pytest.raises(duckdb.ConnectionException):
            con.execute("select 1")
    with store(tmp_path, wait_seconds=0.2).write("next"):
        pass


def test_an_uncommitted_transaction_is_gone_with_its_session(tmp_path: Path) -> None:
    with store(tmp_path).write("half") as con:
        con.execute("begin; create table half as select 1")
    with store(tmp_path).read() as con:
        assert con.execute("select count(*) from duckdb_tables() where table_name = 'half'").fetchall() == [(0,)]


@pytest.mark.file_only("its descriptors")
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
def test_no_descriptor_of_a_session_is_inherited_by_a_program_started_meanwhile(tmp_path: Path) -> None:
    with store(tmp_path).write("a test"):
        links = [path for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
        ours = {int(path.name): path.readlink() for path in links if path.readlink().is_relative_to(tmp_path)}
        assert len(ours) >= 2
        assert [path for fd, path in ours.items() if not fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC] == []


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    with store(tmp_path).read() as con, pytest.raises(duckdb.InvalidInputException, match="read-only"):
        con.execute("create table t (i int)")


def test_a_reader_of_no_warehouse_finds_an_empty_one_whose_views_answer(tmp_path: Path) -> None:
    with store(tmp_path / "new").read() as con:
        assert con.execute("from published.coverage").fetchall() == []


def test_processes_that_all_come_first_make_one_warehouse(tmp_path: Path) -> None:
    assert children(hold, *[(tmp_path / "new", purpose, 0.0) for purpose in ("", "w", "", "w")]) == [0] * 4


@pytest.mark.file_only("what it looks like half made")
@pytest.mark.parametrize("moment", [0, 1, 3])
def test_a_warehouse_whose_making_was_interrupted_is_completed(tmp_path: Path, moment: int) -> None:
    """0: an empty file, 1: a database without schema, 3: a schema without the last view."""
    path = Path(store(tmp_path).url)
    path.parent.mkdir(exist_ok=True)
    if moment == 0:
        path.touch()
    else:
        con = duckdb.connect(str(path))
        con.execute("create schema platform; create schema orders" if moment == 3 else "select 1")
        con.close()
    with store(tmp_path).read() as con:
        assert con.execute("from published.coverage").fetchall() == []


@pytest.mark.parametrize(("version", "rows"), [(None, 0), (publications.VERSION - 1, 0), (publications.VERSION + 1, 1)])
def test_a_warehouse_of_an_earlier_version_gets_the_views_of_this_one_and_a_later_one_keeps_its_own(
    tmp_path: Path, version: int | None, rows: int
) -> None:
    with store(tmp_path).write("another version") as con:
        con.execute("create or replace view published.coverage as select 'theirs' as asset")
        if version:
            con.execute(f"comment on view published.coverage is '{version}'")
    with store(tmp_path).read() as con:
        assert len(con.execute("from published.coverage").fetchall()) == rows


def test_a_warehouse_of_an_earlier_version_and_another_calendar_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    with store(tmp_path).write("an earlier version") as con:
        con.execute("comment on view published.coverage is null")
        recorded = con.execute("from platform.calendar").fetchall()
    other = replace(store(tmp_path), calendar=Calendar(CALENDAR.start, date(2030, 1, 6), "Pacific/Auckland"))
    for opened in (other.read, lambda: other.write("a writer")):
        with pytest.raises(CalendarMismatch), opened():
            pass
    with store(tmp_path).read() as con:
        assert con.execute("from platform.calendar").fetchall() == recorded


def test_the_version_of_the_platform_schema_is_raised_with_it() -> None:
    """Where this fails: raise VERSION, so that warehouses made before get the change, and write both down here."""
    found = hashlib.sha256(publications.SCHEMA.encode()).hexdigest()[:16]
    assert (publications.VERSION, found) == (2, "093a83ba1db16035")


def make(home: Path) -> None:
    with store(home).write("setting up"):
        pass


def test_killed_at_any_moment_of_its_making_a_warehouse_is_made_at_once_by_the_next(tmp_path: Path) -> None:
    began = time.monotonic()
    assert children(make, (tmp_path / "calm",)) == [0]
    whole = time.monotonic() - began
    for number in range(12):
        home = tmp_path / str(number)
        process = PROCESSES.Process(target=make, args=(home,))
        process.start()
        process.join(whole * (number + 2) / 12)
        process.kill()
        process.join()
        with store(home, wait_seconds=0.5).read() as con:
            assert con.execute("from published.coverage").fetchall() == []


@pytest.mark.file_only("what it looks like half made")
def test_a_file_that_is_no_warehouse_is_named(tmp_path: Path) -> None:
    Path(store(tmp_path).url).write_text("not a database, but long enough to be taken for one. " * 300)
    with pytest.raises(OrdersError, match=r"warehouse\.duckdb cannot be opened"), store(tmp_path).read():
        pass


@pytest.mark.parametrize(
    ("url", "said"),
    [(":memory:", "in memory"), ("/data/why?.duckdb", "question mark"), ("postgres://me:hush@db/lake?a=b", "^(?!.*hush)")],
)
def test_a_warehouse_that_could_not_be_found_again_is_refused(url: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Warehouse.from_settings(Settings.read({"ORDERS_WAREHOUSE_URL": url}))


def test_everybody_who_names_a_file_takes_the_same_locks(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    found = [
        Warehouse.from_settings(Settings.read({"ORDERS_HOME": str(tmp_path / "real")})),
        Warehouse.from_settings(Settings.read({"ORDERS_HOME": str(tmp_path / "link")})),
        Warehouse.from_settings(
            Settings.read({"ORDERS_HOME": str(tmp_path), "ORDERS_WAREHOUSE_URL": f"{tmp_path}/link/warehouse.duckdb"})
        ),
        Warehouse.from_settings(Settings.read({"ORDERS_HOME": str(tmp_path)}), f"{tmp_path}/link/warehouse.duckdb"),
    ]
    assert {(w.url, w.locks) for w in found} == {(str(tmp_path / "real" / "warehouse.duckdb"), tmp_path / "real" / "locks")}


@pytest.mark.parametrize("name", ["with space", "it's", 'dou"ble', "br[a]cket", "st*r", "sl;drop", "ünï", "x=y"])
def test_any_folder_name_will_do(tmp_path: Path, name: str) -> None:
    home = tmp_path / name
    with store(home, memory_limit="1GB", threads=1).write("a test") as con:
        con.execute("create table t as select 1 as i")
    with store(home).read() as con:
        assert con.execute("from t").fetchall() == [(1,)]


def test_settings_of_the_session_are_applied(tmp_path: Path) -> None:
    with store(tmp_path, memory_limit="1GB", threads=1).read() as con:
        found = con.execute(
            "select current_setting('TimeZone'), current_setting('threads'), current_setting('memory_limit')"
        ).fetchall()
        assert found == [("UTC", 1, "953.6 MiB")]


@pytest.mark.parametrize(
    "other", [Calendar(date(2026, 1, 12), date(2026, 2, 1)), Calendar(date(2026, 1, 5), date(2026, 2, 1), "Europe/London")]
)
def test_a_warehouse_refuses_another_calendar_and_says_which_it_has(tmp_path: Path, other: Calendar) -> None:
    with store(tmp_path).write("a test"):
        pass
    foreign = replace(store(tmp_path), calendar=other, wait_seconds=1.0)
    for session in (foreign.read(), foreign.write("me")):
        with pytest.raises(CalendarMismatch, match="ORDERS_START_DATE=2026-01-05 and ORDERS_BUSINESS_TIMEZONE=UTC"), session:
            pass
    with store(tmp_path, wait_seconds=0.2).write("still free"):
        pass


def test_the_end_of_the_calendar_may_move(tmp_path: Path) -> None:
    with store(tmp_path).write("a test"):
        pass
    for end in (date(2026, 3, 1), None, CALENDAR.end):
        with replace(store(tmp_path), calendar=Calendar(CALENDAR.start, end)).read() as con:
            assert con.execute("select end_date from platform.calendar").fetchall() == [(end,)]
