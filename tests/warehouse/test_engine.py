"""One engine a process: what is attached is let go, what failed is not used again, and nothing lives through a fork."""

import multiprocessing
import os
import signal
import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest

from orders_platform.warehouse import engine
from orders_platform.warehouse.engine import Means
from tests.warehouse.kit import PROCESSES, children, store

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every engine started during the test."""
    engine.forget()
    made: list[Any] = []
    start = engine.start
    monkeypatch.setattr(engine, "start", lambda means: made.append(start(means)) or made[-1])
    return made


@pytest.mark.file_only("its lock, seen by another process")
def test_sessions_one_after_the_other_use_one_engine_and_leave_the_file_to_others(tmp_path: Path, started: list[Any]) -> None:
    for _ in range(3):
        with store(tmp_path).write("a test") as con:
            con.execute("create or replace table t as select 1")
        with store(tmp_path).read() as con:
            assert con.execute("from t").fetchall() == [(1,)]
        assert children(holds_it, (store(tmp_path).url,)) == [0]
    assert len(started) == 1


def holds_it(path: str) -> None:
    duckdb.connect(path).close()


@pytest.mark.file_only("its lock, seen by another process")
def test_readers_of_one_process_share_an_attachment_which_stays_until_the_last_has_read(tmp_path: Path) -> None:
    with store(tmp_path).write("a test"):
        pass
    inside, enough = threading.Event(), threading.Event()

    def slow() -> None:
        with store(tmp_path).read() as con:
            inside.set()
            enough.wait(10)
            con.execute("from published.coverage").fetchall()

    reader = threading.Thread(target=slow)
    reader.start()
    assert inside.wait(10)
    with store(tmp_path).read() as con:
        con.execute("from published.coverage").fetchall()
    writer = PROCESSES.Process(target=holds_it, args=(store(tmp_path).url,))
    writer.start()
    writer.join()
    assert writer.exitcode == 1  # the lock of the one still reading was not freed by the one that ended
    enough.set()
    reader.join()
    assert children(holds_it, (store(tmp_path).url,)) == [0]


def test_temporary_tables_and_settings_of_a_session_are_gone_in_the_next(tmp_path: Path) -> None:
    with store(tmp_path).read() as con:
        con.execute("create temp table mine as select 1; set TimeZone = 'Asia/Tokyo'")
    with store(tmp_path).read() as con:
        assert con.execute("select current_setting('TimeZone')").fetchall() == [("UTC",)]
        with pytest.raises(duckdb.CatalogException):
            con.execute("from mine")


@pytest.mark.file_only("finding that there is no lake yet takes an engine")
def test_an_engine_in_which_something_failed_is_not_used_again(tmp_path: Path, started: list[Any]) -> None:
    with pytest.raises(duckdb.Error), store(tmp_path).write("a test") as con:
        con.execute("from nowhere")
    with store(tmp_path).read():
        pass
    assert len(started) == 2


def test_an_engine_that_may_use_something_else_is_another_one(tmp_path: Path) -> None:
    for threads in (1, 3):
        con = engine.attach(
            "mine", Means(str(tmp_path), threads, "1GB"), lambda con: con.execute("attach ':memory:' as warehouse")
        )
        assert con.execute("select current_setting('threads'), current_setting('memory_limit')").fetchall() == [
            (threads, "953.6 MiB")
        ]
        engine.release("mine", con, is_sound=True)


def test_a_forked_process_has_an_engine_of_its_own(tmp_path: Path) -> None:
    with store(tmp_path).write("a test") as con:
        con.execute("create table t as select 1")
    child = FORK.Process(target=read_and_write, args=(tmp_path,))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    with store(tmp_path).read() as con:
        assert con.execute("select count(*) from t").fetchall() == [(2,)]


def read_and_write(home: Path) -> None:
    with store(home).write("a forked writer") as con:
        con.execute("insert into t values (2)")


def spilling(home: Path, seed: int) -> None:
    """More rows than fit into memory, each knowing what it has to hold; read twice."""
    with store(home, threads=1, memory_limit="30MB").read() as con:
        con.execute(f"create temp table mine as select {seed} as p, i, md5((i + {seed})::varchar) as m from range(600000) r(i)")
        for _ in range(2):
            found = con.execute(
                "select count(*), min(p), max(p), count(*) filter (m = md5((i + p)::varchar)) from mine"
            ).fetchall()
            assert found == [(600_000, seed, seed, 600_000)]


def test_processes_that_spill_to_disk_at_the_same_time_read_their_own_rows(tmp_path: Path) -> None:
    with store(tmp_path).write("a test"):
        pass
    engine.forget()
    asked = [PROCESSES.Process(target=spilling, args=(tmp_path, seed)) for seed in (1, 2, 3)]
    for process in asked:
        process.start()
    for process in asked:
        process.join(60)
    assert [process.exitcode for process in asked] == [0, 0, 0]


def killed_spilling(home: Path) -> None:
    con = engine.start(Means(str(home), 1, "20MB"))
    con.execute("create table t as select i, md5(i::varchar) as m from range(600000) r(i)")
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_killed_process_has_spilled_is_removed_by_the_next_engine(tmp_path: Path) -> None:
    (tmp_path / "a person's").mkdir()
    assert children(killed_spilling, (tmp_path,)) == [-signal.SIGKILL]
    assert list(tmp_path.glob("*/rows/*.tmp"))
    first, second = engine.start(Means(str(tmp_path))), engine.start(Means(str(tmp_path)))
    folders = [con.execute("select current_setting('temp_directory')").fetchall()[0][0] for con in (first, second)]
    assert {str(path / "rows") for path in tmp_path.glob("duckdb_spill_*") if path.is_dir()} == set(folders)
    assert len(set(folders)) == 2 and (tmp_path / "a person's").is_dir()
