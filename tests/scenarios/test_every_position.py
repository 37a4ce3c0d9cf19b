"""Four weeks of every asset of the real graph; one (asset, day) fails, and exactly its closure is repaired. Real Dagster runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from orders_platform.dashboard import page
from orders_platform.definitions import ASSETS, defs
from orders_platform.drills.workspace import execute
from orders_platform.errors import OrdersError
from orders_platform.recovery.closure import closure
from orders_platform.warehouse import publications
from orders_platform.warehouse.publications import Pair
from tests.conftest import DAILY, Workspace, failure_of
from tests.copies import copy_of, made, workspace_at
from tests.scenarios.test_repair import CHAIN, repair, revisions, states, world

FIRST = date(2026, 1, 5)
DAYS = tuple((FIRST + timedelta(n)).isoformat() for n in range(28))
MIDDLE = DAYS[9]
POSITIONS = (*(asset.key.path[-1] for asset in ASSETS), "executive_dashboard")
TRIED = [(asset, day) for asset in POSITIONS for day in (DAYS[0], MIDDLE, DAYS[13], DAYS[27])]
SHORT = [("fct_orders", MIDDLE)]


def fill(workspace: Workspace) -> None:
    workspace.put_days(*DAYS)
    build(workspace)


def build(workspace: Workspace) -> None:
    assert workspace.materialize(DAYS[0], DAYS[-1], assets=CHAIN).success
    assert workspace.materialize(DAYS[0], DAYS[-7], assets=("finance_export",)).success
    assert draw(workspace).success


def draw(workspace: Workspace) -> dg.ExecuteInProcessResult:
    return execute(defs, workspace.instance, [dg.AssetKey("executive_dashboard")], None)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four weeks, built once; every test works on its own copy."""
    return made(tmp_path_factory.mktemp("built"), fill)


def correct(workspace: Workspace, day: str) -> None:
    workspace.sql_source("update orders set gross_amount = '11.00' where order_id = ?", f"{day}-1")


@pytest.fixture(scope="module")
def never_failed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[Pair, str]]:
    """The digests of the same weeks where the correction of that day was there from the start."""

    @cache
    def digests(day: str) -> dict[Pair, str]:
        with workspace_at(tmp_path_factory.mktemp("corrected")) as workspace:
            workspace.put_days(*DAYS)
            correct(workspace, day)
            build(workspace)
            return workspace.digests()

    return digests


def week_of(day: str) -> str:
    found = date.fromisoformat(day)
    return (found - timedelta(found.weekday())).isoformat()


def downstream(asset: str, day: str) -> set[Pair]:
    """The seed and what lies downstream of it, by date arithmetic alone."""
    reach = DAILY[DAILY.index(asset) :] if asset in DAILY else ()
    found = {(name, day) for name in reach}
    if "fct_orders" in reach:
        last = (date.fromisoformat(day) + timedelta(27)).isoformat()
        found |= {("customer_features", d) for d in DAYS if day <= d <= last}
    if reach or asset == "revenue_to_date":
        found |= {("revenue_to_date", d) for d in DAYS if day <= d}
    if reach or asset == "finance_export":
        found |= {("finance_export", week_of(day)), ("finance_delivery", week_of(day))}
    if reach or asset == "executive_dashboard":
        found.add(("executive_dashboard", ""))
    return found | ({(asset, day)} if asset == "customer_features" else set())


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, asset: str, interval: str) -> Iterator[None]:
    """This (asset, interval) fails as its publication is about to be recorded; a page, as it is drawn."""
    real = publications.append

    def append(con: Any, made: Any) -> None:
        if any((p.asset, p.interval) == (asset, interval) for p in made):
            raise OrdersError(f"{asset} {interval} is broken.", "Mend it.")
        real(con, made)

    def render(_: Any) -> str:
        raise OrdersError("The page is broken.", "Mend it.")

    with monkeypatch.context() as patch:
        patch.setattr(publications, "append", append)
        if asset == "executive_dashboard":
            patch.setattr(page, "render", render)
        yield


def run_until(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, asset: str, seed: Pair, day: str) -> None:
    """The day's run, and the week's, as far as the failure lets them come."""
    with failing(monkeypatch, *seed):
        result = workspace.materialize(day, assets=CHAIN)
        if asset in ("finance_export", "executive_dashboard"):
            assert result.success
            result = workspace.materialize(week_of(day), assets=("finance_export",))
        if asset == "executive_dashboard":
            assert result.success
            result = draw(workspace)
    assert "is broken" in failure_of(result, asset)


@pytest.mark.parametrize(
    ("asset", "day"), [pytest.param(*pair, marks=() if pair in SHORT else pytest.mark.proof) for pair in TRIED]
)
def test_whichever_position_fails_its_closure_and_nothing_else_is_repaired_to_what_never_failed(
    template: Path, never_failed: Callable[[str], dict[Pair, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    asset: str, day: str,
) -> None:  # fmt: skip
    with copy_of(template, tmp_path) as workspace:
        correct(workspace, day)
        shown = (workspace.home / "dashboard" / "index.html").read_bytes()
        expected = downstream(asset, day)
        tables = {p for p in expected if p[0] not in ("executive_dashboard", "finance_delivery")}
        seed = (asset, {"finance_export": week_of(day), "executive_dashboard": ""}.get(asset, day))
        run_until(workspace, monkeypatch, asset, seed, day)
        graph, before = world(workspace).graph, revisions(workspace)
        assert set(closure(graph, [seed])) == expected
        if asset != "raw_orders":  # until it is captured again, nobody knows that the source has moved
            assert tables <= {p for p, state in states(workspace).items() if state == "stale"}
        if asset == "executive_dashboard":
            assert (workspace.home / "dashboard" / "index.html").read_bytes() == shown
            assert draw(workspace).success
        else:
            outcome = repair(workspace, *seed)
            assert (outcome.failed, outcome.divergent, set(outcome.repaired)) == ({}, [], tables)
        touched = {p for p, revision in revisions(workspace).items() if revision != before[p]}
        assert touched - {("stg_orders_rejected", day)} == tables
        assert (("stg_orders_rejected", day) in touched) == (("stg_orders", day) in tables)
        if "stale" in states(workspace).values():  # a branch beside the one that failed is a repair of its own
            repair(workspace, "fct_orders", day)
        assert set(states(workspace).values()) == {"current"}
        assert workspace.digests() == never_failed(day)
        if ("executive_dashboard", "") in expected:
            assert (workspace.home / "dashboard" / "index.html").read_bytes() != shown
