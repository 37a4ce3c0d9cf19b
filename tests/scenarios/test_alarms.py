"""The sensors of recovery, on real runs: what they notice, say once and start."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.reconstruct import ReconstructableRepository

from orders_platform.automation.alarms import corrections_sensor, failure_alarm, recovery_watch
from orders_platform.definitions import defs
from orders_platform.recovery import alarms
from orders_platform.recovery.dagster_facts import DEFINITIONS
from orders_platform.settings import settings
from tests.conftest import DAILY, Workspace

DAYS = ("2026-01-30", "2026-01-31", "2026-02-01")


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch, workspace: Workspace) -> Iterator[list[bytes]]:
    got: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("ORDERS_ALERT_URL", f"http://127.0.0.1:{server.server_port}/hook")
    settings.cache_clear()
    yield got
    server.shutdown()


def look(workspace: Workspace, sensor: dg.SensorDefinition, cursor: str | None = None) -> Any:
    context = dg.build_sensor_context(workspace.instance, cursor=cursor, repository_def=defs.get_repository_def())
    return sensor(context)


def notice(workspace: Workspace, run_id: str) -> None:
    """What the daemon does for a run that failed."""
    run = workspace.instance.get_run_by_id(run_id)
    assert run
    event = next(
        e.dagster_event for e in workspace.instance.all_logs(run_id, of_type=dg.DagsterEventType.RUN_FAILURE) if e.dagster_event
    )
    context = dg.build_run_status_sensor_context(
        "failure_alarm", event, workspace.instance, run, repository_def=defs.get_repository_def()
    )
    failure_alarm(context.for_run_failure())


def raised(workspace: Workspace) -> list[alarms.Alarm]:
    with workspace.warehouse.read() as con:
        return alarms.recorded(con)


def test_a_failed_run_is_said_once_and_what_it_blocked_has_its_own_alarm(workspace: Workspace, messages: list[bytes]) -> None:
    workspace.put_days(*DAYS)
    workspace.put(("o", "c", f"{DAYS[1]} 10:00:00", f"{DAYS[1]} 10:00:00", "GB", "GBP", "paid", "1.00", "0.00"))
    assert workspace.materialize(DAYS[1], assets=("raw_orders",)).success
    workspace.tamper("delete from platform.publications where asset = 'raw_orders'")
    result = workspace.materialize(DAYS[1], assets=DAILY[1:])
    assert not result.success
    notice(workspace, result.run_id)
    notice(workspace, result.run_id)
    (found,) = raised(workspace)
    assert (found.kind, found.asset, found.intervals) == ("failed", "stg_orders", (DAYS[1],))
    assert "needs raw_orders 2026-01-31, which has not been published" in found.detail
    assert ("fct_orders", DAYS[1], "missing") in found.closure
    assert len(messages) == 1
    look(workspace, recovery_watch)
    look(workspace, recovery_watch)
    blocked = [a for a in raised(workspace) if a.kind == "blocked"]
    assert {(a.asset, a.intervals) for a in blocked} == {("fct_orders", (DAYS[1],)), ("revenue_daily", (DAYS[1],))}
    assert len(messages) == 3


def test_the_states_of_an_asset_are_its_metadata_and_told_again_only_when_they_change(workspace: Workspace) -> None:
    workspace.put_days(*DAYS)
    assert workspace.materialize(DAYS[0], DAYS[2], assets=("raw_orders", "stg_orders")).success
    first = look(workspace, recovery_watch)
    seen = {e.asset_key.path[-1]: e.metadata for e in first.asset_events}
    assert seen["stg_orders"]["intervals current"].value == 3
    assert seen["stg_orders"]["intervals missing"].value == 25
    assert isinstance(look(workspace, recovery_watch, first.cursor), dg.SkipReason)


def test_a_corrected_day_is_reported_once_a_fingerprint(workspace: Workspace) -> None:
    workspace.put_days(*DAYS)
    assert workspace.materialize(DAYS[0], DAYS[2], assets=("raw_orders",)).success
    assert look(workspace, corrections_sensor).skip_message == "No day has moved."
    workspace.sql_source("update orders set gross_amount = '11.00' where order_id = ?", f"{DAYS[1]}-1")
    assert look(workspace, corrections_sensor).run_requests == []
    assert look(workspace, corrections_sensor).skip_message == "1 days have moved, and were said before."
    (found,) = raised(workspace)
    assert (found.kind, found.intervals, found.detail) == ("correction", (DAYS[1],), "gross GBP +1.00.")
    workspace.sql_source("update orders set gross_amount = '12.00' where order_id = ?", f"{DAYS[1]}-1")
    look(workspace, corrections_sensor)
    assert len(raised(workspace)) == 2


def test_by_setting_a_corrected_day_is_captured_again_and_what_it_reaches_repaired(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORDERS_CORRECTIONS", "repair")
    monkeypatch.setenv("ORDERS_CORRECTIONS_PER_TICK", "1")
    settings.cache_clear()
    workspace.put_days(*DAYS)
    assert workspace.materialize(DAYS[0], DAYS[2], assets=DAILY).success
    workspace.sql_source("update orders set gross_amount = '11.00'")
    (first,) = look(workspace, corrections_sensor).run_requests
    (second,) = look(workspace, corrections_sensor).run_requests
    configs = [r.run_config["ops"]["repair_closure"]["config"] for r in (first, second)]
    assert [c["intervals"] for c in configs] == [[DAYS[0]], [DAYS[1]]]
    assert configs[0]["reason"].startswith(f"the source moved: {DAYS[0]} gross")
    job = ReconstructableRepository.for_module(*DEFINITIONS).get_reconstructable_job("repair")
    assert dg.execute_job(job, workspace.instance, first.run_config).success
    now = workspace.query(
        "select order_date::varchar, max(gross_amount)::varchar from published.fct_orders group by all order by 1"
    )
    assert now == [(DAYS[0], "11.00"), (DAYS[1], "10.00"), (DAYS[2], "10.00")]


def test_a_source_that_is_away_is_said_and_nothing_else(workspace: Workspace) -> None:
    workspace.put_days(*DAYS)
    assert workspace.materialize(DAYS[0], DAYS[2], assets=("raw_orders",)).success
    (workspace.home / "source.db").rename(workspace.home / "away.db")
    assert look(workspace, corrections_sensor).skip_message.startswith("The source could not be compared")
    assert raised(workspace) == []
