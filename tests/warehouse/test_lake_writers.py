"""Many writers of one DuckLake, killed with -9 at random moments: no interval is lost, doubled or failed."""

import random
import signal
import time
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

from orders_platform.calendar import Calendar
from orders_platform.recovery.interventions import quarantine, release
from orders_platform.warehouse import landing, publications
from orders_platform.warehouse.claims import LakeUnavailable
from orders_platform.warehouse.lake import Lake
from orders_platform.warehouse.publications import Publication
from orders_platform.warehouse.session import Warehouse, WarehouseBusy
from tests import lakes
from tests.warehouse.kit import DAYS, PROCESSES, daily, lines, publish, sound, swap

CALENDAR = Calendar(date(2026, 1, 5), date(2026, 3, 8))
SIXTY = CALENDAR.days(datetime(2026, 3, 6, tzinfo=UTC))
TEXT = pa.schema([("line", pa.string()), ("amount", pa.string())])
PIPELINE = {
    "stg": (
        "raw",
        "select order_date, line, 'GBP' as currency, amount::decimal(30,2) as amount, null::varchar as note from raw",
    ),
    "fct": ("stg", "select * replace ((amount + amount)::decimal(38,2) as amount) from stg"),
}
pytestmark = pytest.mark.usefixtures("lake_server")


def there(home: Path, url: str = "", wait_seconds: float = 60) -> Warehouse:
    """The DuckLake, or without a URL the file."""
    if url:
        return Lake(url, CALENDAR, home / "locks", wait_seconds, 1, data_path=f"{home}/lake/")
    return Warehouse(str(home / "warehouse.duckdb"), CALENDAR, home / "locks", wait_seconds, 1)


def write(con: object, home: Path, table: str, day: str) -> None:
    """The day of the table: landed, made from its input, or from nothing."""
    if table == "raw":
        rows = pa.RecordBatch.from_pylist([{"line": f"line {n}", "amount": f"{n}.{day[-2:]}"} for n in range(20)], TEXT)
        file = landing.land(home / "landing", table, day, "order_date", [rows], TEXT)
        made = Publication(table, day, "run", "code", file.digest, file.row_count, location=file.location, sha256=file.sha256)
        publications.publish(con, made, lambda: None)
        return
    source, sql = PIPELINE.get(table, ("", lines([day], f"1.{day[-2:]}", 20)))
    reads = {source: daily([day])} if source else {}
    replace(swap(table, sql, [day], reads=reads), calendar=CALENDAR, landing_root=home / "landing").run(con)


def fill(home: Path, url: str, tables: tuple[str, ...], days: list[str]) -> None:
    """What a backfill of these days does, and does again after a kill: whatever is not published."""
    warehouse = there(home, url)
    with warehouse.read() as con:
        done = publications.all_current(con)
    for day in days:
        for table in tables:
            if (table, day) not in done:
                with warehouse.write(f"a writer of {table} {day}", [table]) as con:
                    write(con, home, table, day)


def fill_with_kills(home: Path, url: str, tables: tuple[str, ...], days: list[str], kills: int) -> None:
    """Four writers at once; so often one of them is killed and started again. None may fail."""
    jobs = [(home, url, tables, days[n::4]) for n in range(4)]
    running = [PROCESSES.Process(target=fill, args=job) for job in jobs]
    dice = random.Random(len(days))
    for process in running:
        process.start()
    for _ in range(kills):
        time.sleep(dice.uniform(0.5, 2.0))
        struck = dice.choice([n for n, process in enumerate(running) if process.is_alive()])
        running[struck].kill()
        running[struck].join()
        assert running[struck].exitcode == -signal.SIGKILL
        running[struck] = PROCESSES.Process(target=fill, args=jobs[struck])
        running[struck].start()
    for process in running:
        process.join(500)
    assert [process.exitcode for process in running] == [0, 0, 0, 0]


@pytest.mark.parametrize("tables", [("sold",), ("raw", "stg", "fct")], ids=["one table", "a pipeline"])
@pytest.mark.parametrize(("count", "kills"), [(8, 2), pytest.param(60, 10, marks=pytest.mark.proof)])
def test_four_writers_some_of_them_killed_publish_what_one_writer_of_a_file_does(
    tmp_path: Path, tables: tuple[str, ...], count: int, kills: int
) -> None:
    days, url = SIXTY[:count], lakes.url_of(tmp_path)
    began = time.monotonic()
    fill_with_kills(tmp_path, url, tables, days, kills)
    print(f"{len(tables)} tables × {count} days by 4 writers, {kills} kills: {time.monotonic() - began:.1f} s")
    fill(tmp_path / "alone", "", tables, days)
    found, expected = sound(there(tmp_path, url)), sound(there(tmp_path / "alone"))
    assert found == expected
    assert set(found) == {(table, day) for table in tables if table != "raw" for day in days}
    with there(tmp_path, url).read() as con:
        rows = con.execute(
            'select asset, count(*), count(distinct "interval"), max(revision) from platform.publications group by 1'
        )
        assert sorted(rows.fetchall()) == sorted((table, count, count, 1) for table in tables)


def commit_slowly(url: str, seconds: float) -> None:
    """From now on Postgres needs so long to end a COMMIT of the lake."""
    with psycopg.connect(url.removeprefix("ducklake:postgres:"), autocommit=True) as con:
        con.execute(
            f"create function slow() returns trigger language plpgsql as 'begin perform pg_sleep({seconds}); return null; end'"
        )
        con.execute(
            "create constraint trigger slow after insert on ducklake_snapshot deferrable initially deferred "
            "for each row execute function slow()"
        )


def in_commit(url: str) -> bool:
    """Whether Postgres is ending one."""
    with psycopg.connect(url.removeprefix("ducklake:postgres:"), autocommit=True) as con:
        found = con.execute(
            "select 1 from pg_stat_activity where datname = current_database() and query = 'COMMIT' and wait_event = 'PgSleep'"
        )
        return bool(found.fetchall())


def test_a_writer_killed_while_postgres_ends_its_commit_is_waited_for_and_its_day_not_doubled(tmp_path: Path) -> None:
    url = lakes.url_of(tmp_path)
    fill(tmp_path, url, ("sold",), SIXTY[:1])
    commit_slowly(url, 1)
    process = PROCESSES.Process(target=fill, args=(tmp_path, url, ("sold",), SIXTY[1:2]))
    process.start()
    while not in_commit(url):
        assert process.is_alive()
        time.sleep(0.01)
    process.kill()
    with pytest.raises(WarehouseBusy, match="did not end its transaction"), there(tmp_path, url, 0.2).write("me", ["sold"]):
        pass
    assert in_commit(url)
    with there(tmp_path, url).write("the next", ["sold"]) as con:
        write(con, tmp_path, "sold", SIXTY[1])
    assert len(sound(there(tmp_path, url))) == 2
    with there(tmp_path, url).read() as con:
        rows = con.execute('select count(*), max(revision) from platform.publications where "interval" = ?', [SIXTY[1]])
        assert rows.fetchall() == [(2, 2)]
        assert con.execute("select count(*) from orders.sold").fetchall() == [(40,)]


def test_a_writer_that_lost_its_claim_does_not_commit(tmp_path: Path) -> None:
    url = lakes.url_of(tmp_path)
    warehouse = there(tmp_path, url)
    publish(warehouse, swap("sold", lines(DAYS), DAYS))
    before = sound(warehouse)

    def lose() -> None:
        with psycopg.connect(url.removeprefix("ducklake:postgres:"), autocommit=True) as con:
            con.execute("select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'")

    with pytest.raises(LakeUnavailable):
        publish(warehouse, swap("sold", lines(DAYS, "9.90"), DAYS, fence=lose))
    assert sound(warehouse) == before


def hold_and_release(home: Path, url: str, times: int) -> None:
    """A person who holds the first day and releases it, and looks at what is published in between."""
    for _ in range(times):
        for change in (quarantine, release):
            with there(home, url).write("a person") as con:
                change(con, [("one", SIXTY[0])], "ada", "a test")
            with there(home, url).read() as con:
                con.execute("from published.coverage").fetchall()


def test_writers_of_different_tables_and_a_person_who_holds_days_come_first_together_and_none_fails(tmp_path: Path) -> None:
    url, days = lakes.url_of(tmp_path), SIXTY[:4]
    tables = ("one", "two", "three", "four")
    jobs = [PROCESSES.Process(target=fill, args=(tmp_path, url, (table,), days)) for table in tables]
    jobs.append(PROCESSES.Process(target=hold_and_release, args=(tmp_path, url, 3)))
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(200)
    assert [job.exitcode for job in jobs] == [0] * 5
    assert set(sound(there(tmp_path, url))) == {(table, day) for table in tables for day in days}
    with there(tmp_path, url).read() as con:
        assert con.execute("select count(*), max(revision) from platform.quarantines").fetchall() == [(6, 6)]
