"""closure, repair, quarantine, interventions, audit and explain, as a person or a script sees them."""

import json
from typing import Any

import dagster as dg
from click.testing import CliRunner, Result

from orders_platform.cli.main import orders
from orders_platform.errors import OrdersError
from orders_platform.recovery.closure import UnknownPair
from orders_platform.recovery.interventions import NoReason
from orders_platform.recovery.repair import AlreadyConsumed
from tests.conftest import DAILY, Workspace
from tests.copies import fixtures

DAYS = ("2026-01-05", "2026-01-06", "2026-01-07")
DAY = DAYS[1]


def call(*words: str) -> Result:
    return CliRunner().invoke(orders, list(words))


def rows(*words: str, code: int = 0) -> list[dict[str, Any]]:
    result = call(*words, "--json")
    assert result.exit_code == code, result.output + str(result.exception)
    found = json.loads(result.stdout)
    assert isinstance(found, list)
    return found


def refused(*words: str) -> OrdersError:
    error = call(*words).exception
    assert isinstance(error, OrdersError)
    return error


def fill(workspace: Workspace) -> None:
    workspace.put_days(*DAYS)
    assert workspace.materialize(DAYS[0], DAYS[-1]).success


template, built = fixtures(fill)


def test_an_incident_from_the_first_look_to_the_last(built: Workspace) -> None:
    built.sql_source("update orders set gross_amount = '11.00' where order_id = ?", f"{DAY}-1")
    assert built.materialize(DAY, assets=("raw_orders",)).success
    stale = {(r["asset"], r["interval"]) for r in rows("status") if r["state"] == "stale"}
    assert stale == {(a, DAY) for a in ("stg_orders", "stg_orders_rejected", "fct_orders", "revenue_daily")}

    reached = {(r["asset"], r["interval"]): r for r in rows("closure", "raw_orders", DAY)}
    assert reached["raw_orders", DAY]["consumed"] == "named"
    assert reached["fct_orders", DAY]["consumed"] == "untouched"  # it was made from the version before
    assert reached["customer_features", DAYS[2]]["consumed"] == "never ran"
    assert reached["finance_delivery", DAYS[0]]["action"] == "excluded"
    assert reached["fct_orders", DAY]["owners"] == ["team:data"]
    assert {r["consumed"] for r in rows("closure", "raw_orders", DAYS[0]) if r["asset"] in DAILY[1:]} == {"consumed"}

    finding = next(f for f in rows("audit", code=1) if f["finding"] == "stale")
    assert (finding["asset"], finding["interval"]) == ("stg_orders", DAY)

    plan = rows("repair", "stg_orders", DAY, "--dry-run")
    assert {(r["asset"], r["action"]) for r in plan if r["asset"] in DAILY} == {(a, "rerun") for a in DAILY[1:]}
    done = rows("repair", "stg_orders", DAY, "--reason", "corrected", "--yes")
    assert {r["asset"] for r in done if r["outcome"] == "repaired"} >= set(DAILY[1:])

    (answer,) = rows("explain", "revenue_daily", DAY)
    assert answer["window"] == {"start_at": f"{DAY}T00:00:00", "end_at": f"{DAYS[2]}T00:00:00", "timezone": "UTC"}
    assert [(i["asset"], i["revision"], i["is_current"]) for i in answer["inputs"]] == [("fct_orders", 2, True)]
    assert answer["replaced"]["measures_difference"] == {"revenue GBP": "1.00"}
    assert (answer["by"]["launched_by"], answer["by"]["reason"]) == ("repair", "corrected")
    (answer,) = rows("explain", "fct_orders", DAY)
    assert ("revenue_daily", "current", True) in {(u["asset"], u["state"], u["directly"]) for u in answer["used_by"]}

    listed = rows("interventions")
    assert [(i["kind"], i["reason"]) for i in listed] == [("repair", "corrected")] + [("launch", "no reason given")] * 2


def test_what_is_quarantined_is_gone_listed_and_comes_back(built: Workspace) -> None:
    assert isinstance(refused("quarantine", "add", "fct_orders", DAY), NoReason)
    assert call("quarantine", "add", "fct_orders", DAY, "--reason", "wrong currency", "--who", "ada").exit_code == 0
    (hold,) = rows("quarantine", "list")
    assert (hold["asset"], hold["interval"], hold["who"], hold["reason"]) == ("fct_orders", DAY, "ada", "wrong currency")
    assert built.query("select count(*) from published.fct_orders where order_date = ?::date", DAY) == [(0,)]
    assert {r["state"] for r in rows("status") if (r["asset"], r["interval"]) == ("revenue_daily", DAY)} == {"held"}
    held = [
        r for r in rows("repair", "fct_orders", f"{DAYS[0]}...{DAYS[2]}", "--reason", "try", "--yes") if r["outcome"] == "held"
    ]
    assert ("fct_orders", DAY) in {(r["asset"], r["interval"]) for r in held}
    assert call("quarantine", "release", "fct_orders", DAY, "--reason", "it was right").exit_code == 0
    assert rows("quarantine", "list") == []
    assert [i["kind"] for i in rows("interventions") if i["kind"] != "launch"] == ["release", "repair", "quarantine"]


def test_a_repair_of_one_interval_alone_is_refused_with_what_was_made_from_it(built: Workspace) -> None:
    error = refused("repair", "stg_orders", DAY, "--reason", "x", "--only", "--yes")
    assert isinstance(error, AlreadyConsumed)
    assert f"fct_orders {DAY}, revenue_daily {DAY}" in error.message
    done = rows("repair", "stg_orders", DAY, "--reason", "x", "--only", "--force", "--yes")
    assert [(r["asset"], r["outcome"]) for r in done] == [("stg_orders", "repaired")]


def test_a_mark_is_listed_and_audited(built: Workspace) -> None:
    built.instance.report_runless_asset_event(dg.AssetMaterialization("revenue_daily", partition=DAY))
    assert [(i["asset"], i["intervals"]) for i in rows("interventions", "--kind", "mark")] == [("revenue_daily", [DAY])]
    assert ("claim without data", DAY) in {(f["finding"], f["interval"]) for f in rows("audit", code=1)}


def test_bad_input_is_refused_with_what_there_is(built: Workspace) -> None:
    for words, text in (
        (("closure", "fct_order", DAY), "is not an asset"),
        (("closure", "stg_orders_rejected", DAY), "is not an asset"),
        (("closure", "fct_orders", "2027-01-01"), "has no interval 2027-01-01"),
        (("closure", "finance_export", DAY), "has no interval"),
        (("explain", "fct_orders", "tuesday"), "has no interval tuesday"),
    ):
        error = refused(*words)
        assert isinstance(error, UnknownPair) and text in error.message and error.remedy
    assert "never been published" in refused("explain", "finance_export", DAYS[0]).message
    assert isinstance(refused("repair", "fct_orders", DAY, "--yes"), NoReason)
    assert "acts on the outside world" in refused("repair", "finance_delivery", DAYS[0], "--reason", "x").message
    assert call("repair", "fct_orders", DAY, "--reason", "x").exit_code != 0  # nobody said yes


def test_the_drawings_name_every_asset_once(built: Workspace) -> None:
    drawn = call("closure", "fct_orders", DAY, "--draw", "mermaid").stdout
    assert drawn.startswith("flowchart LR") and "fct_orders --> revenue_daily" in drawn and "raw_orders" not in drawn
    assert call("closure", "fct_orders", DAY, "--draw", "dot").stdout.startswith("digraph closure {")
