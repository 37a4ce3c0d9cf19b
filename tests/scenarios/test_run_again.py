"""Running again: alone, in ranges, beside others, elsewhere in the world and on other machines, the tables are the same."""

import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orders_platform.settings import Settings
from orders_platform.source.sample import read_sample
from orders_platform.warehouse import publications
from orders_platform.warehouse.session import Warehouse
from tests import lakes
from tests.conftest import DAILY, Workspace

FIRST, LAST = "2026-01-05", "2026-02-01"
WEEKS = ("2026-01-05...2026-01-11", "2026-01-12...2026-01-18", "2026-01-19...2026-01-25", "2026-01-26...2026-02-01")
Digests = Mapping[tuple[str, str], str]


@pytest.fixture
def sample(workspace: Workspace) -> Workspace:
    """A workspace whose source holds the sample, with all its mess."""
    workspace.put(*read_sample(), replace=True)
    return workspace


def elsewhere(workspace: Workspace, name: str, **environ: str) -> dict[str, str]:
    """The environment of a fresh second home on the same source data."""
    home = workspace.home / name
    there = {**lakes.environ(home), **environ}
    done = workspace.run("orders", "setup", **there)
    assert done.returncode == 0, done.stderr
    shutil.copy(workspace.home / "source.db", home / "source.db")
    return there


def digests(workspace: Workspace, environ: Mapping[str, str]) -> Digests:
    with Warehouse.from_settings(Settings.read({**workspace.environ, **environ})).read() as con:
        return {
            pair: p.digest for pair, p in publications.all_current(con).items() if pair[0] in (*DAILY, "stg_orders_rejected")
        }


def materialize(workspace: Workspace, days: str, **environ: str) -> subprocess.CompletedProcess[str]:
    option = "--partition-range" if "..." in days else "--partition"
    return workspace.run("dagster", "asset", "materialize", "--select", ",".join(DAILY), option, days, timeout=300, **environ)


def together(workspace: Workspace, jobs: list[tuple[str, dict[str, str]]]) -> None:
    """Run these at the same time, as processes; none may fail."""
    with ThreadPoolExecutor(len(jobs)) as pool:
        for done in pool.map(lambda job: materialize(workspace, job[0], **job[1]), jobs):
            assert done.returncode == 0, done.stderr[-3000:]


def test_four_weeks_by_four_processes_at_once_on_a_fresh_home_equal_one_range_run(sample: Workspace) -> None:
    fresh = elsewhere(sample, "fresh")
    together(sample, [(week, fresh) for week in WEEKS])
    assert sample.materialize(FIRST, LAST).success
    assert len(digests(sample, {})) == 28 * 5
    assert digests(sample, fresh) == digests(sample, {})
    with Warehouse.from_settings(Settings.read({**sample.environ, **fresh})).read() as con:
        assert con.execute("select distinct revision from platform.publications").fetchall() == [(1,)]


def test_again_alone_in_ranges_and_beside_others_in_any_time_zone_with_any_threads(sample: Workspace) -> None:
    assert sample.materialize(FIRST, "2026-01-11").success
    first = digests(sample, {})
    jobs = [
        ("2026-01-05...2026-01-09", {"TZ": "America/New_York", "ORDERS_DUCKDB_THREADS": "1"}),
        ("2026-01-07...2026-01-11", {"TZ": "Pacific/Kiritimati", "ORDERS_DUCKDB_THREADS": "8"}),
        ("2026-01-08", {"TZ": "UTC", "ORDERS_DUCKDB_THREADS": "8", "ORDERS_SOURCE_CONNECTIONS": "1"}),
    ]
    together(sample, jobs)
    assert sample.materialize("2026-01-08").success
    assert digests(sample, {}) == first
    [(most,)] = sample.query("select max(revision) from platform.publications")
    assert most == 5


def test_a_range_in_portions_equals_it_at_once(sample: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sample.materialize(FIRST, LAST).success
    first = digests(sample, {})
    monkeypatch.setattr("orders_platform.warehouse.inputs.PORTION_ROWS", 200)
    assert sample.materialize(FIRST, LAST, ("stg_orders", "fct_orders", "revenue_daily")).success
    assert digests(sample, {}) == first
    assert sample.query("select distinct revision from platform.current_publications where asset like 'stg_orders%'") == [(2,)]


# Clock of the process shifted by three years, for everything in it, DuckDB included.
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <sys/time.h>
static const long ahead = 3L * 365 * 86400;
int clock_gettime(clockid_t id, struct timespec *ts) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(id, ts);
  if (id == CLOCK_REALTIME) ts->tv_sec += ahead;
  return result;
}
int gettimeofday(struct timeval *tv, void *tz) {
  struct timespec ts;
  clock_gettime(CLOCK_REALTIME, &ts);
  tv->tv_sec = ts.tv_sec;
  tv->tv_usec = ts.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *out) {
  struct timespec ts;
  clock_gettime(CLOCK_REALTIME, &ts);
  if (out) *out = ts.tv_sec;
  return ts.tv_sec;
}
"""


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler")
def test_under_another_clock_and_in_the_other_order_the_same_days_come_out(sample: Workspace, tmp_path: Path) -> None:
    (tmp_path / "clock.c").write_text(SHIM)
    library = str(tmp_path / "clock.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, str(tmp_path / "clock.c"), "-ldl"], check=True)
    shifted = {"LD_PRELOAD": library, "TZ": "Asia/Tokyo"}
    seen = sample.run("python", "-c", "import duckdb; print(duckdb.sql('select year(now())').fetchall()[0][0])", **shifted)
    assert int(seen.stdout) >= time.gmtime().tm_year + 2
    assert sample.materialize(FIRST, "2026-01-07").success
    here = digests(sample, {})
    there = elsewhere(sample, "other clock")
    for days in ("2026-01-07", "2026-01-05...2026-01-06"):
        together(sample, [(days, {**there, **shifted})])
    assert digests(sample, there) == here


# 2025-03-09 has 23 hours in New York, 05:00 to 04:00 UTC; 2025-11-02 has 25, 04:00 to 05:00 UTC.
NEW_YORK = {
    "2025-03-09 04:59:59": "2025-03-08",
    "2025-03-09 05:00:00": "2025-03-09",
    "2025-03-10 03:59:59": "2025-03-09",
    "2025-03-10 04:00:00": "2025-03-10",
    "2025-11-02 03:59:59": "2025-11-01",
    "2025-11-02 04:00:00": "2025-11-02",
    "2025-11-03 04:59:59": "2025-11-02",
    "2025-11-03 05:00:00": "2025-11-03",
}


def test_orders_land_in_the_day_of_the_business_where_the_clocks_change(workspace: Workspace) -> None:
    workspace.put(*((at, "c", at, at, "US", "USD", "paid", "1.00", "0.00") for at in NEW_YORK))
    zone = {"ORDERS_BUSINESS_TIMEZONE": "America/New_York", "ORDERS_START_DATE": "2025-03-03", "ORDERS_END_DATE": "2026-01-04"}
    there = elsewhere(workspace, "new york", **zone)
    together(workspace, [(days, there) for days in ("2025-03-08...2025-03-10", "2025-11-01...2025-11-03")])
    with Warehouse.from_settings(Settings.read({**workspace.environ, **there})).read() as con:
        found = con.execute("select order_id, order_date::varchar from published.fct_orders").fetchall()
        assert con.execute("select count(*) from published.stg_orders_rejected").fetchall() == [(0,)]
    assert dict(found) == NEW_YORK


def test_a_workspace_works_in_a_folder_of_any_name(workspace: Workspace) -> None:
    workspace.put_days(FIRST)
    there = elsewhere(workspace, "it's a [home] for order_date=1999-01-01, status=lost")
    together(workspace, [(FIRST, there)])
    shown = workspace.run("orders", "query", "select count(*) as n from published.fct_orders", "--json", **there)
    assert '"n": 5' in shown.stdout, shown.stderr
