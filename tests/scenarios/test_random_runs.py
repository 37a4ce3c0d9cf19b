"""Random histories through real Dagster runs; however they went, one repair ends where a run that never failed ends."""

import os
import random

import dagster as dg
import pytest

from orders_platform.recovery import interventions
from tests.conftest import DAILY, Workspace
from tests.scenarios.test_repair import broken, repair, states

DAYS = ("2026-01-05", "2026-01-06", "2026-01-07")


def act(workspace: Workspace, chance: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thing that happens."""
    day, asset = chance.choice(DAYS), chance.choice(DAILY[1:])
    what = chance.choice(("correct", "run", "fail", "backfill", "mark", "hold", "repair"))
    if what == "correct":
        workspace.sql_source("update orders set gross_amount = ? where order_id = ?", f"{chance.randint(2, 99)}.00", f"{day}-1")
        workspace.materialize(day, assets=("raw_orders",))
    elif what == "run":
        workspace.materialize(day, assets=(asset,))
    elif what == "fail":
        with broken(monkeypatch, asset, day):
            workspace.materialize(day)
    elif what == "backfill":
        workspace.materialize(DAYS[0], DAYS[-1], assets=DAILY[1:])
    elif what == "mark":
        workspace.instance.report_runless_asset_event(dg.AssetMaterialization(asset, partition=day))
    elif what == "hold":
        with workspace.warehouse.write("a test") as con:
            if (asset, day) not in interventions.holds(con):
                interventions.quarantine(con, [(asset, day)], "ada", "a test")
    else:
        repair(workspace, asset, day)


@pytest.mark.parametrize("number", [pytest.param(n, marks=() if n < 1 else pytest.mark.proof) for n in range(20)])
def test_whatever_happened_one_repair_mends_it(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    seed = int(os.environ.get("HISTORY_SEED") or random.randrange(2**32)) + number
    print(f"HISTORY_SEED={seed - number}")
    chance = random.Random(seed)
    workspace.put_days(*DAYS)
    if chance.random() < 0.7:
        workspace.materialize(DAYS[0], DAYS[-1])
    for _ in range(6):
        act(workspace, chance, monkeypatch)
    with workspace.warehouse.write("a test") as con:
        for pair in interventions.holds(con):
            interventions.release(con, [pair], "ada", "a test")
    outcome = repair(workspace, "raw_orders", f"{DAYS[0]}...{DAYS[-1]}")
    assert not outcome.failed and not outcome.divergent
    now = states(workspace)
    assert {now[asset, day] for asset in DAILY for day in DAYS} == {"current"}
    digests = {pair: digest for pair, digest in workspace.digests().items() if pair[0] in DAILY}
    workspace.tamper("delete from platform.publications")
    assert workspace.materialize(DAYS[0], DAYS[-1]).success
    assert {pair: digest for pair, digest in workspace.digests().items() if pair[0] in DAILY} == digests
