"""kill -9 at every step: afterwards the interval is wholly old or wholly new, and running again succeeds at once."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orders_platform.warehouse.landing import create_view
from tests import lakes
from tests.conftest import PROJECT
from tests.warehouse.killing import land_until, priced, write_much, write_until
from tests.warehouse.kit import DAYS, PROCESSES, children, lines, publish, sound, store, swap

ROUNDS = 5 if os.environ.get("ORDERS_PROOF") else 1
OTHERS, STRUCK = list(DAYS[:2]), list(DAYS[2:4])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Four days published; two of them are about to be replaced."""
    home = tmp_path / "home"
    warehouse = store(home)
    publish(warehouse, swap("bought", lines(DAYS), DAYS))
    publish(warehouse, priced(list(DAYS[:4]), "0"))
    return home


def copy_of(home: Path, name: str) -> Path:
    return lakes.copy(home, home.with_name(name))


def replaced(home: Path) -> dict[tuple[str, str], str]:
    """What an undisturbed run makes of it."""
    calm = copy_of(home, "calm")
    publish(store(calm), priced(STRUCK, "5"))
    return sound(store(calm))


def verify_survived(home: Path, old: dict[tuple[str, str], str], new: dict[tuple[str, str], str], step: str) -> bool:
    """Whether the new version stands; whole in every table and day, or the old one is."""
    found = sound(store(home, wait_seconds=1.0))
    assert found in (old, new), step
    publish(store(home, wait_seconds=1.0), priced(STRUCK, "5"))
    assert sound(store(home)) == new, step
    return found == new


def test_killed_at_any_step_the_days_are_wholly_old_or_wholly_new_and_run_again_at_once(home: Path) -> None:
    old, new = sound(store(home)), replaced(home)
    assert {pair for pair in old if old[pair] != new[pair]} == {(t, d) for t in ("sold", "sold_aside") for d in STRUCK}
    steps = write_until(copy_of(home, "counted"), -1, STRUCK, "5").seen
    assert [name for name in steps if "delete from orders.sold " in name and "before" in name]
    outcomes = []
    for _ in range(ROUNDS):
        for fatal, step in enumerate(steps):
            struck = copy_of(home, "struck")
            assert children(write_until, (struck, fatal, STRUCK, "5")) == [-9], step
            outcomes.append((step, verify_survived(struck, old, new, step)))
            shutil.rmtree(struck)
    stood = [step for step, is_new in outcomes if is_new]
    assert [step for step, is_new in outcomes if step == "before commit" and is_new] == []
    assert len([name for name in steps if name == "after commit"]) == 1
    assert stood.count("after commit") == ROUNDS
    assert not any(name.startswith(("after delete", "before insert into platform")) for name in stood)


def test_killed_at_random_moments_of_a_large_swap_nothing_is_half(home: Path, tmp_path: Path) -> None:
    publish(store(home), swap("sold", lines(STRUCK, "1.00", 200_000), STRUCK))
    old = sound(store(home))
    calm = copy_of(home, "calm")
    began = time.monotonic()
    assert children(write_much, (calm, STRUCK, 200_000)) == [0]
    whole = time.monotonic() - began
    new = sound(store(calm))
    dice = random.Random(7)
    stood = 0
    for _ in range(6 * ROUNDS):
        struck = copy_of(home, "struck")
        process = PROCESSES.Process(target=write_much, args=(struck, STRUCK, 200_000))
        process.start()
        process.join(dice.uniform(0.2, 1.0) * whole)
        process.kill()
        process.join()
        found = sound(store(struck, wait_seconds=1.0))
        assert found in (old, new)
        stood += found == new
        publish(store(struck, wait_seconds=1.0), swap("sold", lines(STRUCK, "2.00", 200_000), STRUCK))
        assert sound(store(struck)) == new
        shutil.rmtree(struck)


@pytest.mark.file_only("the system calls on it")
@pytest.mark.proof
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize("call", ["write", "pwrite64", "fsync,fdatasync", "unlink", "close"])
def test_killed_at_any_system_call_that_touches_the_file_nothing_is_half(home: Path, call: str) -> None:
    old, new = sound(store(home)), replaced(home)
    program = f"import pathlib, tests.warehouse.killing as k; k.write_until(pathlib.Path('struck'), -1, {STRUCK}, '5')"
    path = os.pathsep.join([str(PROJECT), *sys.path])
    for number in range(1, 200):
        struck = copy_of(home, "struck")
        watched = [f"-P{struck}/warehouse.duckdb", f"-P{struck}/warehouse.duckdb.wal"]
        command = [
            "strace",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            *watched,
            "-e",
            f"inject={call}:signal=KILL:when={number}",
            sys.executable,
            "-c",
            program,
        ]
        done = subprocess.run(command, cwd=home.parent, env={**os.environ, "PYTHONPATH": path}, check=False)
        assert done.returncode in (0, -signal.SIGKILL)
        verify_survived(struck, old, new, f"{call} {number}")
        shutil.rmtree(struck)
        if done.returncode == 0:
            break
    assert number > 1, f"{call} was never struck"


def test_killed_at_any_step_of_landing_the_old_file_stays_published_and_running_again_lands_the_new_one(tmp_path: Path) -> None:
    home = tmp_path / "home"
    day = DAYS[0]
    land_until(home, -1, day, "old")
    steps = land_until(copy_of(home, "counted"), -1, day, "new").seen
    assert {"before link", "after link", "batch 1", "landed"} <= set(steps)
    for _ in range(ROUNDS):
        for fatal, step in enumerate(steps):
            struck = copy_of(home, "struck")
            before = {path.name: path.read_bytes() for path in (struck / "landing").rglob("*.parquet")}
            assert children(land_until, (struck, fatal, day, "new")) == [-9], step
            assert read_back(struck, day) in ("old", "new"), step
            assert (read_back(struck, day) == "new") == (fatal > steps.index("before commit")), step
            assert children(land_until, (struck, -1, day, "new")) == [0], step
            assert read_back(struck, day) == "new", step
            after = {path.name: path.read_bytes() for path in (struck / "landing").rglob("*.parquet")}
            assert len(after) == 2, step
            assert before.items() <= after.items(), step
            shutil.rmtree(struck)


def read_back(home: Path, day: str) -> str:
    """The text of the day's landed rows, of which there must be exactly 30, verified against the publication."""
    with store(home, wait_seconds=1.0).read() as con:
        location, sha256 = con.execute(
            "select arg_max(location, revision), arg_max(sha256, revision) from platform.publications where asset = 'raw'"
        ).fetchall()[0]
        create_view(con, "raw", "order_date", home / "landing", {day: (location, sha256)}, "raw")
        [(text, rows, landed)] = con.execute("select text, count(*), min(order_date)::varchar from raw group by all").fetchall()
    assert (rows, landed) == (30, day)
    return str(text)
