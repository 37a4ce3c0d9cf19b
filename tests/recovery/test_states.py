"""States: what is true of each (asset, interval), whatever is green."""

import time

import pytest

from orders_platform.recovery import states
from orders_platform.recovery.closure import Graph, closure
from orders_platform.recovery.interventions import quarantine, release
from orders_platform.recovery.states import BY_HAND
from tests.recovery.graphs import days, platform_graph, publish, tables, warehouse

DAYS = days(14)
GRAPH = platform_graph(DAYS)
DAY = DAYS[1]


def named(found: dict, state: str) -> list:
    return [pair for pair, s in found.items() if s.name == state]


def test_nothing_published_is_missing_and_everything_published_is_current() -> None:
    con = warehouse()
    assert {s.name for s in states.compute(con, GRAPH, {}).values()} == {"missing"}
    publish(con, GRAPH, tables(GRAPH))
    assert {s.name for s in states.compute(con, GRAPH, {}).values()} == {"current"}


def test_a_replaced_input_makes_exactly_its_closure_stale_and_names_itself() -> None:
    con = warehouse()
    publish(con, GRAPH, tables(GRAPH))
    publish(con, GRAPH, [("fct_orders", DAY)], "b", "run 2")
    found = states.compute(con, GRAPH, {})
    expected = [p for p in closure(GRAPH, [("fct_orders", DAY)]) if p[0] != "finance_delivery" and p != ("fct_orders", DAY)]
    assert named(found, "stale") == expected
    assert found["revenue_daily", DAY].reason == f"fct_orders {DAY} has been replaced since"
    assert found["revenue_to_date", DAYS[3]].reason == f"its input revenue_to_date {DAYS[2]} is stale"


def test_a_rerun_with_the_same_content_leaves_everything_current() -> None:
    con = warehouse()
    publish(con, GRAPH, tables(GRAPH))
    publish(con, GRAPH, [("raw_orders", DAY)], "a", "run 2")
    assert named(states.compute(con, GRAPH, {}), "current") == tables(GRAPH)


@pytest.mark.parametrize("run_id", [BY_HAND, "a run that wrote nothing"])
def test_a_claim_without_data_is_claimed_also_over_good_data_until_it_is_really_made(run_id: str) -> None:
    con = warehouse()
    publish(con, GRAPH, [p for p in tables(GRAPH) if p[1] != DAYS[13] or p[0] == "raw_orders"])
    claims = {("raw_orders", DAY): run_id, ("stg_orders", DAYS[13]): run_id, ("fct_orders", DAY): "run"}
    found = states.compute(con, GRAPH, claims)
    assert named(found, "claimed") == [("raw_orders", DAY), ("stg_orders", DAYS[13])]
    assert found["stg_orders", DAY].reason == f"its input raw_orders {DAY} is claimed"
    publish(con, GRAPH, [("raw_orders", DAY)], "a", "run 3")
    assert states.compute(con, GRAPH, claims | {("raw_orders", DAY): "run 3"})["raw_orders", DAY].name == "current"


def test_a_failed_verdict_on_the_current_publication_is_divergent_and_one_on_an_older_is_not() -> None:
    con = warehouse()
    publish(con, GRAPH, tables(GRAPH))
    con.execute("""
        insert into platform.verdicts by name select publication_id, asset, "interval", 'reconciles' as check_name,
          1 as attempt, false as passed, true as blocking, '2 rows' as details from platform.current_publications
        where asset = 'revenue_daily' and "interval" = ?""", [DAY])  # fmt: skip
    found = states.compute(con, GRAPH, {})
    assert found["revenue_daily", DAY].name == "divergent"
    assert found["revenue_daily", DAY].reason == "failed its check reconciles (2 rows)"
    assert found["finance_export", DAYS[0]].name == "stale"
    publish(con, GRAPH, [("revenue_daily", DAY)], "a", "run 2")
    assert named(states.compute(con, GRAPH, {}), "current") == tables(GRAPH)


def test_a_quarantine_holds_everything_downstream_and_wins_over_every_other_state() -> None:
    con = warehouse()
    publish(con, GRAPH, [p for p in tables(GRAPH) if p[0] != "finance_export"])
    quarantine(con, [("stg_orders", DAY)], "ada", "wrong currency")
    found = states.compute(con, GRAPH, {("stg_orders", DAY): BY_HAND})
    expected = [p for p in closure(GRAPH, [("stg_orders", DAY)]) if p[0] != "finance_delivery"]
    assert named(found, "held") == expected
    assert found["fct_orders", DAY].reason.startswith(f"stg_orders {DAY}, which it is made from, is quarantined by ada since")


def test_a_release_makes_what_was_built_without_the_interval_stale_and_what_was_built_with_it_current() -> None:
    con = warehouse()
    publish(con, GRAPH, [p for p in tables(GRAPH) if p[0] != "finance_export"])
    publish(con, GRAPH, [("finance_export", DAYS[7])])
    quarantine(con, [("revenue_daily", DAY)], "ada", "wrong currency")
    publish(con, GRAPH, [("finance_export", DAYS[0])], without=[("revenue_daily", DAY)])
    release(con, [("revenue_daily", DAY)], "ada", "it was right")
    found = states.compute(con, GRAPH, {})
    assert named(found, "stale") == [("finance_export", DAYS[0])]
    assert found["finance_export", DAYS[0]].reason == f"it was built without revenue_daily {DAY}"


def test_a_release_makes_what_was_built_from_an_earlier_version_stale() -> None:
    con = warehouse()
    publish(con, GRAPH, tables(GRAPH))
    quarantine(con, [("fct_orders", DAY)], "ada", "known bad")
    publish(con, GRAPH, [("fct_orders", DAY)], "b", "run 2")
    release(con, [("fct_orders", DAY)], "ada", "replaced")
    found = states.compute(con, GRAPH, {})
    assert found["fct_orders", DAY].name == "current"
    assert found["revenue_daily", DAY].name == "stale"


def test_states_and_closure_over_1100_days_and_all_assets_take_less_than_a_second() -> None:
    big: Graph = platform_graph(days(1100))
    con = warehouse()
    publish(con, big, tables(big))
    claims = dict.fromkeys(tables(big), "run")
    fresh = platform_graph(days(1100))
    started = time.process_time()  # of this process: what else the machine does is no matter
    found = states.compute(con, fresh, claims)
    reached = closure(fresh, [("raw_orders", fresh.nodes["raw_orders"].intervals[0])])
    seconds = time.process_time() - started
    assert {s.name for s in found.values()} == {"current"}
    assert len(reached) == 4 + 28 + 1100 + 2
    assert seconds < 1, f"{seconds:.2f} s"
