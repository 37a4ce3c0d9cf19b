"""The event log: the stock one's files, with connections kept open."""

import contextlib
import multiprocessing
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.runs import SqliteRunStorage

from orders_platform.automation import event_log
from orders_platform.automation.event_log import KEPT, WorkspaceEventLog, WorkspaceRuns
from tests.conftest import PROJECT, Workspace

WRITER = """
import os, sys, dagster as dg
with dg.DagsterInstance.from_config(os.environ["DAGSTER_HOME"]) as instance:
    for number in range(10_000):
        instance.report_engine_event(f"event {number}", job_name="job", run_id=sys.argv[1])
        print(number, flush=True)
"""


def stored(workspace: Workspace, run_id: str) -> list[str]:
    """Messages as the stock storage reads them."""
    storage = SqliteEventLogStorage(str(workspace.home / "dagster" / "history" / "runs"))
    return [entry.message for entry in storage.get_logs_for_run(run_id)]


def say(instance: dg.DagsterInstance, run_id: str, *texts: str) -> None:
    for text in texts:
        instance.report_engine_event(text, job_name="job", run_id=run_id)


def test_the_workspace_uses_it_and_the_stock_storage_reads_what_it_stored(workspace: Workspace) -> None:
    assert isinstance(workspace.instance.event_log_storage, WorkspaceEventLog)
    workspace.put_days("2026-01-05")
    result = workspace.materialize("2026-01-05")
    assert result.success
    mine = [entry.message for entry in workspace.instance.all_logs(result.run_id)]
    assert stored(workspace, result.run_id) == mine
    assert len(mine) > 20


def test_killed_with_minus_nine_every_event_that_was_stored_is_there(workspace: Workspace) -> None:
    run_id = str(uuid.uuid4())
    command = [sys.executable, "-W", "ignore", "-c", WRITER, run_id]
    with subprocess.Popen(command, cwd=PROJECT, env=workspace.environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = -1
        while said < 40:
            said = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        said = max([said, *(int(line) for line in process.stdout.read().split())])
    assert process.returncode == -signal.SIGKILL
    found = stored(workspace, run_id)
    assert found[: said + 1] == [f"event {number}" for number in range(said + 1)]
    say(workspace.instance, run_id, "after")
    assert stored(workspace, run_id)[-1] == "after"


def test_threads_share_it_and_nothing_is_lost(workspace: Workspace) -> None:
    run_ids = [str(uuid.uuid4()) for _ in range(4)]

    def work(run_id: str) -> None:
        say(workspace.instance, run_id, *(f"event {number}" for number in range(25)))

    threads = [threading.Thread(target=work, args=[run_id]) for run_id in run_ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(stored(workspace, run_id)) for run_id in run_ids] == [25] * 4


def test_it_keeps_a_few_files_open_and_finds_the_others_again(workspace: Workspace) -> None:
    run_ids = [str(uuid.uuid4()) for _ in range(KEPT + 3)]
    for run_id in (*run_ids, *run_ids):
        say(workspace.instance, run_id, "said")
    assert {len(stored(workspace, run_id)) for run_id in run_ids} == {2}
    opened = {str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.exists()}
    runs = {name for name in opened if name.startswith(str(workspace.home)) and name.endswith(".db") and "history/runs" in name}
    assert 1 <= len(runs) <= KEPT


def test_a_run_whose_file_was_deleted_is_started_anew(workspace: Workspace) -> None:
    run_id = str(uuid.uuid4())
    say(workspace.instance, run_id, "before")
    for file in (workspace.home / "dagster" / "history" / "runs").glob(f"{run_id}.db*"):
        file.unlink()
    say(workspace.instance, run_id, "after")
    assert stored(workspace, run_id) == ["after"]


def test_a_new_runs_file_is_the_stock_ones_schema_and_two_processes_may_start_it_at_once(workspace: Workspace) -> None:
    run_id = str(uuid.uuid4())
    command = [sys.executable, "-W", "ignore", "-c", WRITER.replace("10_000", "20"), run_id]
    writers = [subprocess.Popen(command, cwd=PROJECT, env=workspace.environ, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert sorted(stored(workspace, run_id)) == sorted(2 * [f"event {number}" for number in range(20)])
    runs = workspace.home / "dagster" / "history" / "runs"
    assert [path.name for path in runs.iterdir() if path.name.startswith(".")] == []

    def schema(path: Path) -> set[tuple[str]]:  # indexes come in any order
        with contextlib.closing(sqlite3.connect(path)) as con:
            return set(con.execute("select sql from sqlite_master union all select version_num from alembic_version"))

    stock = SqliteEventLogStorage(str(workspace.home / "stock"))
    stock.get_logs_for_run("made by stock")
    assert schema(runs / f"{run_id}.db") == schema(workspace.home / "stock" / "made by stock.db")


def test_the_workspaces_runs_are_stored_as_stock_stores_them_by_many_threads_at_once(workspace: Workspace) -> None:
    assert isinstance(workspace.instance.run_storage, WorkspaceRuns)
    made = [str(uuid.uuid4()) for _ in range(8)]

    def add(run_id: str) -> None:
        workspace.instance.add_run(dg.DagsterRun("job", run_id))

    threads = [threading.Thread(target=add, args=(run_id,)) for run_id in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stock = SqliteRunStorage.from_local(str(workspace.home / "dagster" / "history"))
    assert {run.run_id for run in stock.get_runs()} >= set(made)


def test_a_workspace_that_was_deleted_and_made_anew_gets_the_events_and_runs_that_are_stored_afterwards(
    workspace: Workspace,
) -> None:
    first, second, run_id = workspace.instance, str(uuid.uuid4()), str(uuid.uuid4())
    say(first, run_id, "before")
    first.add_run(dg.DagsterRun("job", run_id))
    home = workspace.home / "dagster"
    configured = (home / "dagster.yaml").read_text()
    shutil.rmtree(home)
    home.mkdir()
    (home / "dagster.yaml").write_text(configured)
    with dg.DagsterInstance.from_config(str(home)) as other:
        say(other, run_id, "another process")
    say(first, run_id, "after")
    first.add_run(dg.DagsterRun("job", second))
    assert stored(workspace, run_id) == ["another process", "after"]
    assert [run.run_id for run in SqliteRunStorage.from_local(str(home / "history")).get_runs()] == [second]


def test_what_a_forked_process_stores_is_there_when_its_parent_has_ended_first(workspace: Workspace) -> None:
    run_id = str(uuid.uuid4())
    say(workspace.instance, run_id, "parent 1")
    read, write = os.pipe()

    def forked() -> None:
        say(workspace.instance, run_id, "child 1")
        os.read(read, 1)
        say(workspace.instance, run_id, "child 2")
        workspace.instance.add_run(dg.DagsterRun("job", run_id))

    child = multiprocessing.get_context("fork").Process(target=forked)
    child.start()
    while len(stored(workspace, run_id)) < 2:
        assert child.is_alive()
    say(workspace.instance, run_id, "parent 2")
    workspace.instance.event_log_storage.dispose()
    workspace.instance.run_storage.dispose()
    os.write(write, b"x")
    child.join(30)
    assert child.exitcode == 0
    assert stored(workspace, run_id) == ["parent 1", "child 1", "parent 2", "child 2"]
    assert workspace.instance.get_run_by_id(run_id)


def test_two_storages_of_one_process_may_start_a_run_at_once(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id, both = str(uuid.uuid4()), threading.Barrier(2, timeout=10)
    copy = shutil.copyfile
    monkeypatch.setattr(event_log.shutil, "copyfile", lambda *paths: (copy(*paths), both.wait()))
    failed: list[BaseException] = []

    def start() -> None:
        try:
            WorkspaceEventLog(str(workspace.home / "dagster" / "history" / "runs")).get_logs_for_run(run_id)
        except OSError as error:
            failed.append(error)

    threads = [threading.Thread(target=start) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
