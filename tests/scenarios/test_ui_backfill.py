"""A backfill as the UI launches it: a real `dagster dev`, its daemon, and the call its Materialize button makes."""

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DAILY, PROJECT, Workspace

DAYS = ["2026-01-05", "2026-01-06", "2026-01-09"]
BACKFILL = """
mutation ($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
  }
}
"""
STATUS = "query ($id: String!) { partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill { status } } }"


def interruptible() -> None:
    """Dagster gives SIGTERM what SIGINT does, which a shell's background job inherits as ignored: it would never stop."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def dagster_dev(workspace: Workspace, **environ: str) -> Iterator[str]:
    """`dagster dev` on a free loopback port; yields its GraphQL address and stops it with its children."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(Path(sys.executable).with_name("dagster")), "dev", "--host", "127.0.0.1", "--port", str(port)]
    with (workspace.home / "dev.log").open("w") as log:
        server = subprocess.Popen(
            command, cwd=PROJECT, env={**workspace.environ, **environ}, stdout=log, stderr=log, start_new_session=True,
            preexec_fn=interruptible,
        )  # fmt: skip
        try:
            yield f"http://127.0.0.1:{port}/graphql"
        finally:
            server.terminate()
            server.wait(60)


def ask(url: str, query: str, **variables: Any) -> dict[str, Any]:
    body = json.dumps({"query": query, "variables": variables}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["data"]


def until(check: Any, seconds: float = 90) -> Any:
    deadline = time.monotonic() + seconds
    while True:
        try:
            if found := check():
                return found
        except OSError:
            pass
        assert time.monotonic() < deadline, "nothing happened in time"
        time.sleep(0.3)


@pytest.mark.parametrize(("per_run", "runs"), [("", 2), pytest.param("1", 3, marks=pytest.mark.proof)])
def test_a_backfill_from_the_ui_is_one_run_a_contiguous_range_or_as_set(workspace: Workspace, per_run: str, runs: int) -> None:
    workspace.put_days(*DAYS)
    with dagster_dev(workspace, ORDERS_INTERVALS_PER_RUN=per_run) as url:
        until(lambda: ask(url, "{ version }"))
        params = {
            "partitionNames": DAYS,
            "assetSelection": [{"path": [name]} for name in DAILY],
            "allPartitions": False,
            "fromFailure": False,
        }
        answer = until(lambda: ask(url, BACKFILL, params=params)["launchPartitionBackfill"])
        assert answer["__typename"] == "LaunchBackfillSuccess", answer
        ended = ("COMPLETED_SUCCESS", "COMPLETED_FAILED", "COMPLETED", "FAILED")
        until(lambda: ask(url, STATUS, id=answer["backfillId"])["partitionBackfillOrError"]["status"] in ended)
        found = workspace.instance.get_runs()
        assert [run.status.value for run in found] == ["SUCCESS"] * runs
    assert {pair for pair in workspace.digests() if pair[0] == "revenue_daily"} == {("revenue_daily", day) for day in DAYS}
