"""DuckLake with its catalog in a real Postgres: many writers at once, and nothing else changes."""

import json
import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orders_platform.warehouse.claims import LakeUnavailable
from orders_platform.warehouse.lake import PREFIX, Lake
from orders_platform.warehouse.session import WarehouseBusy
from tests.conftest import DAILY, Workspace
from tests.servers import new_database
from tests.warehouse.kit import CALENDAR, DAYS, PROCESSES, children, lines, publish, sound, store, swap

pytest.importorskip("duckdb_extensions", reason="DuckDB's extension wheels are not installed: pip install -e '.[scale]'")

WEEKS = CALENDAR.days(datetime(2026, 3, 1, tzinfo=UTC))


@pytest.fixture
def url(postgres: str) -> str:
    """An empty catalog."""
    made = new_database(postgres)
    return f"{PREFIX}host={made.host} port={made.port} user={made.username} dbname={made.database}"


def lake(home: Path, url: str, wait_seconds: float = 60) -> Lake:
    return Lake(url, CALENDAR, home / "locks", wait_seconds, 2, data_path=f"{home}/lake/")


def write_days(home: Path, url: str, table: str, days: list[str]) -> None:
    for day in days:
        made = swap(table, lines([day]), [day])
        with lake(home, url).write(f"a writer of {table}", [table]) as con:
            made.run(con)


def die_writing(home: Path, url: str, statements: int) -> None:
    """Kill this process with -9 at its n-th statement inside the swap of a day that is there already."""
    made = swap("sold", lines(["2026-01-05"], "9.90"), ["2026-01-05"])
    with lake(home, url).write("a writer that dies", ["sold"]) as con:

        class Counted:
            left = statements

            def execute(self, *args: object) -> object:
                if self.left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                self.left -= 1
                return con.execute(*args)

            def __getattr__(self, name: str) -> object:
                return getattr(con, name)

        made.run(Counted())


def test_the_same_rows_have_the_same_digests_on_both_engines(url: str, tmp_path: Path) -> None:
    for warehouse in (store(tmp_path), lake(tmp_path, url)):
        publish(warehouse, swap("sold", lines(DAYS[:3]), DAYS[:3]))
        publish(warehouse, swap("sold", lines(DAYS[1:2], "7.70"), DAYS[1:2]))
    assert sound(lake(tmp_path, url)) == sound(store(tmp_path))


def test_four_writers_of_one_table_and_two_first_loads_of_each_day_lose_and_double_nothing(url: str, tmp_path: Path) -> None:
    days = WEEKS if os.environ.get("ORDERS_PROOF") else WEEKS[:8]
    shares = [days[n::4] for n in range(4)]
    asked = [(tmp_path, url, "sold", [*share, shares[(n + 1) % 4][0]]) for n, share in enumerate(shares)]
    assert children(write_days, *asked, seconds=300) == [0, 0, 0, 0]
    assert {day for _, day in sound(lake(tmp_path, url))} == set(days)
    with lake(tmp_path, url).read() as con:
        assert con.execute("select count(*) from orders.sold").fetchall() == [(3 * len(days),)]
        assert con.execute("select count(*) from platform.publications where revision = 2").fetchall() == [(4,)]


@pytest.mark.parametrize("statements", [1, 6, 10, 14])
def test_a_killed_writer_leaves_the_day_as_it_was_and_its_claim_free(url: str, tmp_path: Path, statements: int) -> None:
    publish(lake(tmp_path, url), swap("sold", lines(DAYS), DAYS))
    before = sound(lake(tmp_path, url))
    assert children(die_writing, (tmp_path, url, statements)) == [-signal.SIGKILL]
    assert sound(lake(tmp_path, url)) == before
    started = time.monotonic()
    publish(lake(tmp_path, url), swap("sold", lines(DAYS[:1], "9.90"), DAYS[:1]))
    assert time.monotonic() - started < 10
    assert sound(lake(tmp_path, url)) != before


def test_readers_do_not_wait_for_a_writer_and_see_one_snapshot(url: str, tmp_path: Path) -> None:
    warehouse = lake(tmp_path, url)
    publish(warehouse, swap("sold", lines(DAYS[:1]), DAYS[:1]))
    with warehouse.read() as con:
        count = con.execute("select count(*) from orders.sold").fetchall()
        assert children(write_days, (tmp_path, url, "sold", ["2026-01-06"])) == [0]
        assert con.execute("select count(*) from orders.sold").fetchall() == count
    with warehouse.read() as con:
        assert con.execute("select count(*) from orders.sold").fetchall() == [(6,)]


def hold(home: Path, url: str) -> None:
    with lake(home, url).write("a slow swap", ["sold"]):
        (home / "held").touch()
        while not (home / "enough").exists():
            time.sleep(0.05)


def test_a_table_that_stays_claimed_is_given_up_naming_who_has_it_and_others_go_on(url: str, tmp_path: Path) -> None:
    holder = PROCESSES.Process(target=hold, args=(tmp_path, url))
    holder.start()
    while not (tmp_path / "held").exists():
        time.sleep(0.05)
    publish(lake(tmp_path, url), swap("bought", lines(DAYS[:1]), DAYS[:1]), ["bought"])
    with pytest.raises(WarehouseBusy, match="a slow swap"), lake(tmp_path, url, 0.5).write("me", ["sold"]):
        pass
    (tmp_path / "enough").touch()
    holder.join(30)
    assert holder.exitcode == 0


def test_a_catalog_out_of_reach_is_said_without_its_connection_string(tmp_path: Path) -> None:
    nowhere = f"{PREFIX}host=127.0.0.1 port=1 user=ann password=hunter2 dbname=x connect_timeout=1"
    for session in (lake(tmp_path, nowhere).read(), lake(tmp_path, nowhere).write("me")):
        with pytest.raises(LakeUnavailable) as caught, session:
            pass
        assert "hunter2" not in repr(caught.value) + str(caught.value) + str(caught.value.__cause__)


def test_the_whole_pipeline_runs_on_it_and_publishes_what_the_file_would(
    url: str, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.put_days(*DAYS[:3])
    assert workspace.materialize(DAYS[0], DAYS[2]).success
    expected = workspace.digests()
    monkeypatch.setenv("ORDERS_WAREHOUSE_URL", url)
    run = workspace.run(
        "dagster", "asset", "materialize", "--select", ",".join(DAILY), "--partition-range", f"{DAYS[0]}...{DAYS[2]}"
    )
    assert run.returncode == 0, run.stderr[-2000:]
    status = workspace.run("orders", "status", "--to", DAYS[2], "--json")
    found = {(row["asset"], row["interval"]): row["digest"] for row in json.loads(status.stdout) if row["digest"]}
    assert found == expected
