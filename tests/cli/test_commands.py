"""What a person types: tables for people, JSON for scripts, one sentence for an error."""

import json
import subprocess
import time
from datetime import date, timedelta
from pathlib import Path

import pytest

from orders_platform.cli.status import print_grid
from orders_platform.dagster_module import name_module
from tests.conftest import PROJECT, Workspace
from tests.copies import fixtures

DAYS = ("2026-01-05", "2026-01-06")


def fill(workspace: Workspace) -> None:
    workspace.put_days(*DAYS)
    assert workspace.materialize(*DAYS).success


template, filled = fixtures(fill)


def test_status_as_json_says_who_published_what_and_when(filled: Workspace) -> None:
    run = filled.run("orders", "status", "--from", DAYS[0], "--to", DAYS[0], "--json")
    assert run.returncode == 0, run.stderr
    found = {row["asset"]: row for row in json.loads(run.stdout) if row["interval"] == DAYS[0]}
    fact, publication = found["fct_orders"], filled.current()["fct_orders", DAYS[0]]
    assert fact["state"] == "current"
    assert fact["rows"] == 5
    assert fact["digest"] == publication.digest
    assert fact["run_id"] == publication.run_id
    assert fact["code_version"] == publication.code_version
    assert fact["publication_id"] == publication.publication_id
    assert fact["measures"]["gross_amount EUR"] == "30.00"


def test_status_draws_days_without_a_publication_as_missing(filled: Workspace) -> None:
    run = filled.run("orders", "status", "--json")
    states = {row["interval"]: row["state"] for row in json.loads(run.stdout) if row["asset"] == "fct_orders"}
    assert len(states) == 28
    assert [day for day, state in states.items() if state == "current"] == list(DAYS)
    assert {state for day, state in states.items() if day not in DAYS} == {"missing"}


def test_status_asked_again_answers_without_importing_dagster(filled: Workspace) -> None:
    seen = "import sys, atexit; atexit.register(lambda: print('dagster' in sys.modules)); from orders_platform.cli.main import main"
    told = [filled.run("python", "-c", f"{seen}; sys.argv[1:] = ['status']; main()") for _ in range(2)]
    assert [run.returncode for run in told] == [0, 0], told[1].stderr
    grids, imported = zip(*(run.stdout.rstrip().rsplit("\n", 1) for run in told), strict=True)
    assert imported == ("True", "False")
    assert grids[0].splitlines()[:-1] == grids[1].splitlines()[:-1]


def test_a_date_in_the_head_of_the_grid_stands_over_its_day(capsys: pytest.CaptureFixture[str]) -> None:
    days = [(date(2025, 12, 22) + timedelta(n)).isoformat() for n in range(77)]
    states = {"2025-12-29": "stale", "2026-03-02": "held"}
    print_grid(
        [{"asset": "a", "interval": day, "state": states.get(day, "current"), "rows": 1, "published_at": None} for day in days]
    )
    lines = capsys.readouterr().out.splitlines()
    for day, mark in (("2025-12-29", "◐"), ("2026-03-02", "■")):
        (head,) = (n for n, line in enumerate(lines) if day in line)
        assert lines[head + 1][lines[head].index(day)] == mark


def test_query_prints_decimals_to_the_digit_and_refuses_to_write(filled: Workspace) -> None:
    run = filled.run(
        "orders", "query", "--json", "select sum(revenue) as revenue from published.revenue_daily where currency = 'EUR'"
    )
    assert json.loads(run.stdout) == [{"revenue": "38.00"}]
    for statement in (
        "delete from orders.fct_orders",
        "create table orders.x (i int)",
        "copy orders.fct_orders to '/nowhere.csv'",
    ):
        refused = filled.run("orders", "query", statement)
        assert refused.returncode == 1
        assert "The query failed" in refused.stderr
        assert "Traceback" not in refused.stderr
    assert filled.query("select count(*) from orders.fct_orders") == [(10,)]


def test_query_waits_for_a_writer(filled: Workspace) -> None:
    program = str(Path(filled.run("python", "-c", "import sys; print(sys.executable)").stdout.strip()).with_name("orders"))
    with filled.warehouse.write("a slow swap"):
        waiting = subprocess.Popen(
            [program, "query", "--json", "select 1 as one"], cwd=PROJECT, env=filled.environ, stdout=subprocess.PIPE, text=True
        )
        time.sleep(1.5)
        assert waiting.poll() is None
    assert json.loads(waiting.communicate(timeout=30)[0]) == [{"one": 1}]


def test_show_lists_publications_newest_first_with_their_inputs(filled: Workspace) -> None:
    assert filled.materialize(DAYS[0]).success
    rows = json.loads(filled.run("orders", "show", "fct_orders", DAYS[0], "--json").stdout)
    assert [row["revision"] for row in rows] == [2, 1]
    assert rows[0]["inputs"][0]["asset"] == "stg_orders"
    assert rows[0]["inputs"][0]["publication_id"] == filled.current()["stg_orders", DAYS[0]].publication_id


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            ("show", "fct_orders", "2026-01-31"),
            ("fct_orders 2026-01-31", "has never been published", "dagster asset materialize"),
        ),
        (("show", "fct_orders", "yesterday"), ("'yesterday' is not an interval", "2026-01-05")),
        (("query", "select * from nowhere"), ("The query failed", "show all tables")),
    ],
)
def test_an_error_is_one_sentence_a_remedy_and_exit_code_1(
    filled: Workspace, command: tuple[str, ...], words: tuple[str, ...]
) -> None:
    run = filled.run("orders", *command)
    assert run.returncode == 1
    assert "Traceback" not in run.stderr
    for word in words:
        assert word in run.stderr
    assert "Traceback" in filled.run("orders", "--debug", *command).stderr


def test_a_mistyped_command_exits_2_and_help_names_every_command(workspace: Workspace) -> None:
    assert workspace.run("orders", "statsu").returncode == 2
    shown = workspace.run("orders", "--help").stdout
    assert all(name in shown for name in ("setup", "source", "status", "query", "show", "settings"))


def test_settings_hide_what_may_hold_a_secret(workspace: Workspace) -> None:
    run = workspace.run("orders", "settings", "--json", ORDERS_SOURCE_URL="postgresql://reader:hunter2@db/shop")
    assert "hunter2" not in run.stdout
    assert {row["name"] for row in json.loads(run.stdout)} >= {"ORDERS_HOME", "ORDERS_SOURCE_URL"}


def test_setup_can_run_again_and_keeps_what_a_person_changed(workspace: Workspace) -> None:
    file = workspace.home / "dagster" / "dagster.yaml"
    file.write_text(file.read_text() + "# mine\n")
    assert workspace.run("orders", "setup").returncode == 0
    assert file.read_text().endswith("# mine\n")


def test_dagster_asset_needs_no_module_in_the_project_folder_and_leaves_other_calls_alone() -> None:
    cases = {
        ("dagster", "asset", "materialize", "--select", "x"): True,
        ("dagster", "asset", "materialize", "-m", "other"): False,
        ("dagster", "asset", "materialize", "--python-file", "x.py"): False,
        ("dagster", "dev"): False,
        ("python", "asset"): False,
    }
    for argv, is_named in cases.items():
        environ: dict[str, str] = {}
        name_module(argv, environ, PROJECT)
        assert ("DAGSTER_MODULE_NAME" in environ) is is_named, argv
    environ = {}
    name_module(("dagster", "asset", "list"), environ, PROJECT.parent)
    assert environ == {}
