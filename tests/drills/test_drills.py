"""Every drill: the usual build breaks, this platform does not; business days of UTC, and thirteen hours ahead of it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from orders_platform.drills import CATALOGUE
from orders_platform.drills.drill import RULES, Result, Side
from orders_platform.drills.faults import NeverStruck, at_statement, broken_disk, killed_at
from orders_platform.drills.runner import drill_of
from orders_platform.settings import PROJECT
from tests import lakes
from tests.conftest import Workspace

ZONES = ("UTC", "Pacific/Auckland")
NAMES = tuple(CATALOGUE)


ON_LAKE = """
import json, os, sys
from pathlib import Path
from orders_platform.drills.runner import at_home, drill_of, isolate
name, home, url = sys.argv[1:]
isolate("UTC", f"{home}/log")
os.environ["ORDERS_WAREHOUSE_URL"] = url
from orders_platform.drills.workspace import QUIET, opened
with opened(at_home(Path(home)), QUIET) as workspace:
    lines = [(line.what, line.should_be, line.found) for line in drill_of(name).ours(workspace)]
    lines.append(("engine", "Lake", type(workspace.warehouse).__name__))
Path(home, "side.json").write_text(json.dumps(lines))
"""


def replayed(workspace: Workspace, zone: str, *names: str) -> dict[str, dict[str, object]]:
    done = workspace.run("orders", "drill", *names, "--json", timeout=600, ORDERS_BUSINESS_TIMEZONE=zone)
    rows = {row["drill"]: row for row in json.loads(done.stdout)}
    assert done.returncode == 0, {name: row for name, row in rows.items() if not row["passed"]}
    return rows


@pytest.mark.parametrize(
    ("zone", "names"),
    [
        (ZONES[0], NAMES[::2]),
        (ZONES[1], NAMES[1::2]),
        pytest.param(ZONES[0], NAMES[1::2], marks=pytest.mark.proof),
        pytest.param(ZONES[1], NAMES[::2], marks=pytest.mark.proof),
    ],
    ids=["UTC", "Auckland", "UTC-the-others", "Auckland-the-others"],
)
def test_every_drill_breaks_the_usual_build_and_not_this_platform(
    workspace: Workspace, zone: str, names: tuple[str, ...]
) -> None:
    rows = replayed(workspace, zone, *names)
    assert tuple(rows) == names
    for row in rows.values():
        assert any(line["should_be"] != line["found"] for line in row["naive"])
        assert all(line["should_be"] == line["found"] for line in row["ours"])
        assert [(line["what"], line["should_be"]) for line in row["naive"]] == [
            (line["what"], line["should_be"]) for line in row["ours"]
        ]


@pytest.mark.proof
@pytest.mark.parametrize("name", NAMES)
def test_on_ducklake_this_platform_does_as_well(name: str, tmp_path: Path, lake_server: None) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ON_LAKE, name, str(tmp_path), lakes.url_of(tmp_path)], cwd=PROJECT, check=False, timeout=300
    )
    assert done.returncode == 0, (tmp_path / "log").read_text()[-3000:]
    lines = json.loads((tmp_path / "side.json").read_text())
    assert len(lines) > 1
    assert [line for line in lines if line[1] != line[2]] == []


def test_a_drill_touches_nothing_of_the_real_workspace_and_uses_none_of_its_settings(workspace: Workspace) -> None:
    before = {path: path.stat().st_mtime_ns for path in workspace.home.rglob("*")}
    poisoned = {
        "ORDERS_SOURCE_URL": "postgresql://nowhere/shop",
        "ORDERS_SOURCE_QUERY": "select 1",
        "ORDERS_CLOSED_DAYS": "tue",
    }
    done = workspace.run("orders", "drill", "two-writers", **poisoned)
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("the usual build", "this platform", "12", "38.00", "rule", "warehouse/swap.py"):
        assert words in done.stdout
    assert {path: path.stat().st_mtime_ns for path in workspace.home.rglob("*")} == before


def test_keep_leaves_both_sides_to_look_at(workspace: Workspace) -> None:
    (row,) = replayed(workspace, "UTC", "green-but-empty", "--keep").values()
    kept = Path(str(row["kept"]))
    assert (kept / "usual" / "usual.duckdb").is_file() and (kept / "platform" / "warehouse.duckdb").is_file()
    shutil.rmtree(kept.parent)


def test_a_drill_passes_only_when_one_side_breaks_and_the_other_does_not() -> None:
    right, wrong = Side.of(("orders", 6, 6)), Side.of(("orders", 6, 12))
    assert right.is_right and not wrong.is_right and not Side().is_right
    assert Result("x", is_broken=True, is_right=True).passed
    assert not Result("x", is_broken=False, is_right=True).passed
    assert not Result("x", is_broken=True, is_right=False).passed
    assert not Result("x", is_broken=True, is_right=True, error="it ended with an error").passed


def test_without_a_name_the_drills_are_listed_and_an_unknown_one_is_refused(workspace: Workspace) -> None:
    listed = workspace.run("orders", "drill", "--json")
    assert [row["drill"] for row in json.loads(listed.stdout)] == list(CATALOGUE)
    assert workspace.run("orders", "drill", "no-such-drill").returncode == 2
    assert workspace.run("orders", "drill", "two-writers", "--all").returncode == 2


@pytest.mark.parametrize("name", NAMES)
def test_each_drill_names_a_rule_and_a_file_that_are_there(name: str) -> None:
    drill = drill_of(name)
    assert drill.rule in RULES
    assert (PROJECT / "orders_platform" / drill.file).is_file()
    assert drill.why.endswith(".")


def test_a_fault_that_never_strikes_fails_the_drill_instead_of_showing_nothing() -> None:
    with pytest.raises(NeverStruck), at_statement("insert into nothing", broken_disk):
        duckdb.connect().execute("select 1")
    with pytest.raises(NeverStruck, match="it ended with 1"):
        killed_at("insert into nothing", lambda: duckdb.connect().execute("select 1"))
    with pytest.raises(duckdb.IOException), at_statement("select 2", broken_disk):
        duckdb.connect().execute("  select   2")
    killed_at("select 2", lambda: duckdb.connect().execute("select 2"))
