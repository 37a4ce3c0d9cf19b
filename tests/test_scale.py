"""Many workers: a real cluster of local processes, one worker of which is killed with -9."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from orders_platform.settings import PROJECT
from tests.servers import POSTGRES

pytest.importorskip("dagster_celery", reason="the extra scale is not installed: pip install -e '.[scale]'")
if POSTGRES is None:
    pytest.skip("Postgres is not installed: apt-get install postgresql", allow_module_level=True)
if not shutil.which("redis-server"):
    pytest.skip("Redis is not installed: apt-get install redis-server", allow_module_level=True)

from scripts.scale_report import Outcome, problems

PASSWORD = "hunter2-of-the-cluster"
SHORT = "--days 2 --orders 20 --per-run 1 --assets raw_orders --strike-after 0 --no-backfill-end --patience 120"


def demo(home: Path, *arguments: str) -> Outcome:
    command = [sys.executable, str(PROJECT / "scripts" / "scale_demo.py"), "--home", str(home), *arguments]
    environ = {**os.environ, "PGPASSWORD": PASSWORD}
    done = subprocess.run(command, cwd=PROJECT, env=environ, capture_output=True, text=True, check=False)
    sys.stdout.write(done.stderr)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found.pop("problems") == []
    return Outcome(**found)


@pytest.mark.proof
def test_when_a_worker_is_killed_its_run_is_retried_and_each_interval_is_there_and_nobody_read_a_password(
    tmp_path: Path,
) -> None:
    found = demo(tmp_path, *SHORT.split())
    assert {table: sum(counts.values()) for table, counts in found.tables.items()} == {"raw_orders": 2}
    assert found.runs["SUCCESS"] == 2 and found.runs["FAILURE"] == found.retried == found.killed
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert [path for path in files if PASSWORD.encode() in path.read_bytes()] == []


@pytest.mark.proof
def test_sixty_days_with_a_worker_killed_midway_are_published_and_the_source_has_no_more_readers_than_allowed(
    tmp_path: Path,
) -> None:
    found = demo(tmp_path)
    assert found.backfill == "COMPLETED_SUCCESS"
    assert {sum(counts.values()) for counts in found.tables.values()} == {60}
    assert found.waited >= 1, "no capture ever waited, so nothing was shown about the budget"
    assert found.connections == found.limit


def test_the_demo_says_what_is_wrong() -> None:
    fine = {"once": 2, "again": 1, "differently": 0, "missing": 0}
    good = Outcome({"fct_orders": fine}, {"SUCCESS": 3, "FAILURE": 1}, 1, 1, "COMPLETED_SUCCESS", 2, 1, 2, 0, {"current": 3}, 0)
    assert problems(good) == []
    bad = Outcome(
        {"fct_orders": {**fine, "differently": 1, "missing": 2}},
        {"STARTED": 1, "FAILURE": 2},
        1,
        0,
        "FAILED",
        3,
        1,
        2,
        1,
        {"stale": 1},
        4,
    )
    assert [said.split(":")[-1].strip() for said in problems(bad)] == [
        "1 intervals differently",
        "2 intervals missing",
        "1 runs are STARTED",
        "2 runs failed and 1 of them were retried with success",
        "the worker was killed while it had no run",
        "the backfill is FAILED",
        "the source had 3 readers at once, 2 are allowed",
        "1 places of the source's pool are still taken",
        "`orders status` has 1 intervals as stale",
        "4 ticks of sensors or schedules failed",
    ]
