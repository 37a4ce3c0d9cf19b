"""Repair: exactly what is affected, in order, held intervals left out, and a branch stops where content did not change."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from orders_platform.recovery import repair, states
from orders_platform.recovery.closure import Graph, closure
from orders_platform.recovery.interventions import quarantine
from orders_platform.recovery.repair import AlreadyConsumed, Launched, Outcome, Repair, plan
from orders_platform.warehouse import publications
from orders_platform.warehouse.publications import Pair
from tests.recovery.graphs import days, platform_graph, publish, tables, warehouse

DAYS = days(14)
GRAPH = platform_graph(DAYS)
DAY = DAYS[1]


@dataclass
class Fake:
    """A launcher whose runs publish `content(pair)`, all intervals or none; `broken` pairs fail."""

    con: Any
    graph: Graph
    content: Callable[[Pair], str] = lambda pair: "b"
    broken: set[Pair] = field(default_factory=set)
    runs: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    name: str = "repair"

    def launch(self, asset: str, runs: Sequence[Sequence[str]]) -> list[Launched]:
        made = []
        for run in runs:
            self.runs.append((asset, tuple(run)))
            run_id = f"{self.name} {len(self.runs)}"
            bad = [i for i in run if (asset, i) in self.broken]
            if not bad:
                for i in run:
                    publish(self.con, self.graph, [(asset, i)], self.content((asset, i)), run_id)
            made.append(Launched(run_id, not bad, f"{asset} {bad} broke" if bad else ""))
        return made

    def run_ids(self) -> set[str]:
        return {
            row[0]
            for row in self.con.execute("select distinct run_id from platform.publications").fetchall()
            if row[0].startswith(self.name)
        }

    def look(self) -> Any:
        facts = states.read_facts(self.con, self.graph, {})
        return facts, states.states(self.graph, facts)

    def repair(self, *seeds: Pair, only: bool = False, **options: Any) -> Outcome:
        return Repair(self.graph, plan(self.graph, *self.look(), seeds, only=only), self.look, self, **options).run()


def whole(content: Callable[[Pair], str] = lambda pair: "b") -> Fake:
    con = warehouse()
    publish(con, GRAPH, tables(GRAPH))
    return Fake(con, GRAPH, content)


def test_a_repair_touches_exactly_the_closure_once_and_leaves_everything_current() -> None:
    fake = whole()
    before = {pair: p.revision for pair, p in publications.all_current(fake.con).items()}
    outcome = fake.repair(("stg_orders", DAY))
    reached = [p for p in closure(GRAPH, [("stg_orders", DAY)]) if p[0] != "finance_delivery"]
    assert outcome.repaired == reached
    after = {pair: p.revision for pair, p in publications.all_current(fake.con).items()}
    assert {pair for pair in after if after[pair] != before[pair]} == set(reached)
    assert all(after[pair] == before[pair] + 1 for pair in reached)
    assert {s.name for s in fake.look()[1].values()} == {"current"}


def test_a_branch_stops_where_content_did_not_change() -> None:
    fake = whole(lambda pair: "a" if pair[0] == "revenue_daily" else "b")
    outcome = fake.repair(("stg_orders", DAY))
    assert {asset for asset, _ in outcome.repaired} == {"stg_orders", "fct_orders", "customer_features", "revenue_daily"}
    assert {asset for asset, _ in outcome.unchanged} == {"revenue_to_date", "finance_export"}
    assert outcome.text() == "16 repaired, 14 skipped (unchanged)"


def test_contiguous_intervals_are_one_range_split_around_what_is_held() -> None:
    fake = whole()
    quarantine(fake.con, [("raw_orders", DAYS[4])], "ada", "known bad")
    outcome = fake.repair(*[("raw_orders", d) for d in DAYS[:10]])
    assert ("raw_orders", DAYS[:4]) in fake.runs and ("raw_orders", DAYS[5:10]) in fake.runs
    raw = [p for p in outcome.repaired if p[0] == "raw_orders"], [p for p in outcome.held if p[0] == "raw_orders"]
    assert (len(raw[0]), raw[1]) == (9, [("raw_orders", DAYS[4])])
    assert {p for p in outcome.held if p[0] == "finance_export"} == {("finance_export", DAYS[0])}
    assert not [run for run in fake.runs if any((run[0], i) in outcome.held for i in run[1])]


def test_one_bad_day_of_a_range_fails_alone_and_the_others_are_repaired() -> None:
    fake = whole()
    fake.broken = {("fct_orders", DAYS[6])}
    outcome = fake.repair(*[("fct_orders", d) for d in DAYS])
    assert outcome.failed == {("fct_orders", DAYS[6]): f"fct_orders ['{DAYS[6]}'] broke"}
    assert len([p for p in outcome.repaired if p[0] == "fct_orders"]) == 13
    assert [p for p in outcome.unchanged if p[0] == "revenue_daily"] == [("revenue_daily", DAYS[6])]  # nothing new to read


def test_a_day_never_made_that_fails_leaves_its_readers_waiting() -> None:
    fake = whole()
    fake.con.execute('delete from platform.publications where "interval" = ? and asset <> ?', [DAY, "raw_orders"])
    fake.broken = {("stg_orders", DAY)}
    outcome = fake.repair(("stg_orders", DAY))
    assert set(outcome.failed) == {("stg_orders", DAY)}
    assert outcome.waiting["fct_orders", DAY] == f"stg_orders {DAY} is missing"
    assert not outcome.repaired and not outcome.is_good


def test_a_fault_that_is_not_in_the_intervals_is_not_tried_for_every_one_of_them() -> None:
    fake = whole()
    fake.broken = {("fct_orders", d) for d in DAYS}
    outcome = fake.repair(*[("fct_orders", d) for d in DAYS])
    assert len([run for run in fake.runs if run[0] == "fct_orders"]) < 10
    assert len(outcome.failed) == repair.GIVE_UP
    assert {p for p in outcome.waiting if p[0] == "fct_orders"} | set(outcome.failed) == {("fct_orders", d) for d in DAYS}


def test_an_asset_that_reads_its_own_past_runs_in_order_and_stops_at_the_first_failure() -> None:
    fake = whole()
    fake.broken = {("revenue_to_date", DAYS[5])}
    outcome = fake.repair(("revenue_daily", DAYS[3]), processes=4)
    balances = [p[1] for p in outcome.repaired if p[0] == "revenue_to_date"]
    assert balances == list(DAYS[3:5])
    assert set(outcome.failed) == {("revenue_to_date", DAYS[5])}
    assert {p[1] for p in outcome.waiting} == set(DAYS[6:])


def test_interrupted_and_run_again_it_does_not_do_again_what_it_has_done() -> None:
    fake = whole()
    real, count = fake.launch, iter(range(100))

    def dying(asset: str, runs: Sequence[Sequence[str]]) -> list[Launched]:
        if next(count) == 2:
            raise KeyboardInterrupt
        return real(asset, runs)

    fake.launch = dying
    with pytest.raises(KeyboardInterrupt):
        fake.repair(("stg_orders", DAY))
    fake.launch = real
    fake.repair(("stg_orders", DAY))
    assert len(fake.runs) == len(set(fake.runs))
    revisions = {
        p.revision for pair, p in publications.all_current(fake.con).items() if pair in closure(GRAPH, [("stg_orders", DAY)])
    }
    assert revisions == {2}


def test_several_processes_share_a_range() -> None:
    fake = whole()
    fake.repair(*[("fct_orders", d) for d in DAYS], processes=2)
    assert [run for run in fake.runs if run[0] == "fct_orders"] == [("fct_orders", DAYS[:7]), ("fct_orders", DAYS[7:])]


def test_only_leaves_the_consumers_stale_and_is_refused_with_their_names() -> None:
    fake = whole()
    with pytest.raises(AlreadyConsumed, match=f"customer_features {DAY}"):
        repair.require_unconsumed([("fct_orders", DAY)], states.consumers(fake.con, GRAPH, [("fct_orders", DAY)]))
    fake.repair(("fct_orders", DAY), only=True)
    assert fake.runs == [("fct_orders", (DAY,))]
    assert fake.look()[1]["revenue_daily", DAY].name == "stale"
    assert states.consumers(fake.con, GRAPH, [("fct_orders", DAY)]) == []


def test_the_plan_says_what_it_would_do_with_each_pair() -> None:
    fake = whole()
    fake.con.execute("delete from platform.publications where asset = 'finance_export'")
    quarantine(fake.con, [("customer_features", DAYS[4])], "ada", "known bad")
    fake.con.execute('delete from platform.publications where asset = ? and "interval" = ?', ["revenue_daily", DAYS[2]])
    made = plan(GRAPH, *fake.look(), [("fct_orders", DAY)])
    actions = {line.pair: line.action for line in made.lines}
    assert actions["fct_orders", DAY] == "rerun"
    assert actions["revenue_daily", DAY] == "if changed"
    assert actions["customer_features", DAYS[4]] == "hold"
    assert actions["finance_export", DAYS[0]] == "wait"
    assert actions["finance_delivery", DAYS[0]] == "excluded"
    assert {line.pair for line in made.lines} == set(closure(GRAPH, [("fct_orders", DAY)]))
    assert made.rows == len(made.acting("rerun", "if changed"))
