"""The sensors of recovery in a real `dagster dev` with its daemon, and a real receiver of alarms on loopback."""

import json
from typing import Any

import pytest

from orders_platform.recovery import interventions
from tests.conftest import DAILY, Workspace
from tests.scenarios.test_alarms import DAYS, messages, raised
from tests.scenarios.test_ui_backfill import BACKFILL, ask, dagster_dev, until

__all__ = ["messages"]


def ticks(workspace: Workspace, sensor: str) -> list[Any]:
    """What the daemon has recorded of the sensor, newest first."""
    found = [s for s in workspace.instance.all_instigator_state() if s.name == sensor]
    return [t for s in found for t in workspace.instance.get_ticks(s.instigator_origin_id, s.selector_id) if t.end_timestamp]


def told(messages: list[bytes]) -> list[tuple[str, str, tuple[str, ...]]]:
    found = [json.loads(message) for message in messages]
    return sorted((m["kind"], m["asset"], tuple(m["intervals"])) for m in found)


@pytest.mark.proof
def test_the_daemon_says_once_what_failed_and_what_that_blocked_and_repairs_a_day_whose_source_moved(
    workspace: Workspace, messages: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORDERS_CORRECTIONS", "repair")
    workspace.put_days(*DAYS)
    assert workspace.materialize(DAYS[0], DAYS[1], assets=DAILY).success
    workspace.sql_source("update orders set gross_amount = '11.00' where order_id = ?", f"{DAYS[1]}-1")
    with dagster_dev(workspace) as url:
        until(lambda: ticks(workspace, "failure_alarm"), 240)  # from its first look on it hears of failures
        params = {
            "partitionNames": [DAYS[2]],  # which was never captured
            "assetSelection": [{"path": [name]} for name in DAILY[1:]],
            "allPartitions": False,
            "fromFailure": False,
        }
        answer = until(lambda: ask(url, BACKFILL, params=params)["launchPartitionBackfill"])
        assert answer["__typename"] == "LaunchBackfillSuccess", answer
        expected = [
            ("blocked", "fct_orders", (DAYS[2],)),
            ("blocked", "revenue_daily", (DAYS[2],)),
            ("correction", "raw_orders", (DAYS[1],)),
            ("failed", "stg_orders", (DAYS[2],)),
        ]
        until(lambda: len(messages) >= len(expected), 300)
        prices = "select distinct gross_amount::varchar from published.fct_orders where order_id = ?"
        until(lambda: workspace.query(prices, f"{DAYS[1]}-1") == [("11.00",)], 120)
        until(lambda: all(run.is_finished for run in workspace.instance.get_runs()), 120)
        seen = {sensor: len(ticks(workspace, sensor)) for sensor in ("failure_alarm", "recovery_watch")}
        until(lambda: all(len(ticks(workspace, s)) > n for s, n in seen.items()), 240)  # everybody looks once more
    assert told(messages) == expected
    assert sorted((a.kind, a.asset, a.intervals) for a in raised(workspace)) == expected
    failed = next(json.loads(m) for m in messages if json.loads(m)["kind"] == "failed")
    assert "raw_orders" in failed["error"] and failed["command"].startswith("orders repair stg_orders")
    with workspace.warehouse.read() as con:
        (made,) = interventions.recorded(con, "repair")
    assert (made.who, made.asset, list(made.intervals)) == ("corrections_sensor", "raw_orders", [DAYS[1]])
    assert "gross GBP +1.00" in made.reason
