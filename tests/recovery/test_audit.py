"""The audit: each finding, its remedy, and silence where all is well."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from orders_platform.recovery import states
from orders_platform.recovery.audit import Attempt, Evidence, Finding, Sent, audit, foreign_rows
from orders_platform.recovery.interventions import quarantine
from orders_platform.warehouse.maintenance import orphaned
from orders_platform.warehouse.publications import Pair
from tests.recovery.graphs import CALENDAR, days, platform_graph, publish, tables, warehouse

DAYS = days(14)
GRAPH = platform_graph(DAYS)
DAY = DAYS[1]
NOW = datetime(2026, 1, 19, 12)


def whole() -> Any:
    con = warehouse()
    publish(con, GRAPH, tables(GRAPH))
    return con


def judge(con: Any, claims: Mapping[Pair, str] | None = None, **more: Any) -> list[Finding]:
    known = dict.fromkeys(tables(GRAPH), "run") | dict(claims or {})
    facts = states.read_facts(con, GRAPH, known)
    known = {p: run for p, run in known.items() if p in facts.current or p in (claims or {})}
    facts = states.read_facts(con, GRAPH, known)
    found = states.states(GRAPH, facts)
    return audit(Evidence(GRAPH, facts, found, CALENDAR, NOW, timedelta(hours=8), **more))


def only(findings: list[Finding]) -> Finding:
    (found,) = findings
    return found


def test_where_all_is_well_nothing_is_found() -> None:
    assert judge(whole()) == []


def test_a_claim_without_data() -> None:
    found = next(f for f in judge(whole(), {("fct_orders", DAY): ""}) if f.finding == "claim without data")
    assert (found.asset, found.interval) == ("fct_orders", DAY)
    assert found.remedy == f'orders repair fct_orders {DAY} --reason "marked, never made"'


def test_data_without_a_claim_needs_a_person_only_where_its_run_is_known_and_over() -> None:
    con = whole()
    pairs = {("raw_orders", d): "ended" for d in DAYS[:2]}
    found = only(judge(con, silent=pairs))
    assert (found.finding, found.interval, found.needs_person) == ("data without claim", f"{DAYS[0]}...{DAYS[1]}", True)
    assert found.remedy == f'orders repair raw_orders {found.interval} --reason "its run died after publishing"'
    unknown = only(judge(con, silent=dict.fromkeys(pairs, "unknown")))
    assert (unknown.finding, unknown.needs_person) == ("data without claim", False)
    con.execute("update platform.publications set published_at = ?", [NOW - timedelta(hours=1)])
    assert judge(con, silent=dict.fromkeys(pairs, "running")) == []
    con.execute("update platform.publications set published_at = ?", [NOW - timedelta(hours=9)])
    assert only(judge(con, silent=dict.fromkeys(pairs, "running"))).needs_person


def test_late_intervals_are_one_finding_a_span_and_none_before_the_deadline() -> None:
    con = warehouse()
    publish(con, GRAPH, [p for p in tables(GRAPH) if p[0] != "customer_features"])
    late = only(judge(con))
    assert (late.finding, late.interval) == ("late", f"{DAYS[0]}...{DAYS[-1]}")
    assert late.remedy == f"dagster asset materialize --select customer_features --partition-range {DAYS[0]}...{DAYS[-1]}"
    con.execute("delete from platform.publications where asset = 'customer_features'")
    publish(con, GRAPH, [("customer_features", d) for d in DAYS[:-1]])
    assert only(judge(con)).interval == DAYS[-1]
    facts = states.read_facts(con, GRAPH, {})
    early = Evidence(GRAPH, facts, states.states(GRAPH, facts), CALENDAR, datetime(2026, 1, 19, 7), timedelta(hours=8))
    assert "late" not in {f.finding for f in audit(early)}


def test_a_failed_pair_and_those_it_blocks_are_told_apart_with_the_attempts() -> None:
    con = warehouse()
    publish(con, GRAPH, [p for p in tables(GRAPH) if p[1] < DAY or (p[1] == DAY and p[0] in ("raw_orders", "stg_orders"))])
    attempts = {("fct_orders", DAY): Attempt(3, "r3", "failed"), ("revenue_daily", DAY): Attempt(3, "r3", "blocked")}
    found = {
        f.finding: f for f in judge(con, attempts=attempts) if f.interval == DAY and f.asset in ("fct_orders", "revenue_daily")
    }
    assert found["failed"].detail == "missing after 3 attempts, the last by run r3"
    assert found["blocked"].detail == f"missing; it never started in run r3, because of fct_orders {DAY}"
    assert found["blocked"].remedy.startswith(f"orders repair fct_orders {DAY}")
    assert found["many attempts"].detail == "3 attempts without success, 2 allowed"
    running = judge(con, attempts={("fct_orders", DAY): Attempt(1, "r4", "running")})
    assert "failed" not in {f.finding for f in running}


def test_stale_names_the_first_of_the_chain_alone() -> None:
    con = whole()
    publish(con, GRAPH, [("raw_orders", DAY)], "b")
    found = only(judge(con))
    assert (found.finding, found.asset, found.interval) == ("stale", "stg_orders", DAY)


def test_a_quarantine_is_named_where_it_was_set_and_not_downstream() -> None:
    con = whole()
    quarantine(con, [("stg_orders", DAY)], "ada", "known bad")
    found = only(judge(con))
    assert (found.finding, found.asset) == ("quarantined", "stg_orders")
    assert found.remedy == f"orders quarantine release stg_orders {DAY} --reason …"


def test_mixed_code_names_the_range_where_it_changed() -> None:
    con = whole()
    con.execute(
        "update platform.publications set code_version = 'v2' where asset = 'fct_orders' and \"interval\" >= ?", [DAYS[7]]
    )
    found = only(judge(con))
    assert found.finding == "mixed code" and not found.needs_person
    assert f"{DAYS[0]}...{DAYS[6]} by v1, {DAYS[7]}...{DAYS[13]} by v2" in found.detail


@pytest.mark.parametrize(
    ("state", "digest", "finding"),
    [("in_doubt", "x", "delivery in doubt"), ("failed", "x", "delivery failed"), ("waiting", "x", "delivery waits"),
     ("delivered", "y", "delivery differs")],
)  # fmt: skip
def test_deliveries_that_need_a_person(state: str, digest: str, finding: str) -> None:
    sent = [Sent("finance_export", DAYS[0], "key", state, digest, is_latest=True)]
    found = only(judge(whole(), deliveries=sent, content={DAYS[0]: "x"}))
    assert (found.finding, found.interval, "orders deliveries show" in found.remedy) == (finding, DAYS[0], True)


def test_a_delivery_of_what_is_published_is_no_finding() -> None:
    sent = [Sent("finance_export", DAYS[0], "key", "delivered", "x", is_latest=True)]
    assert judge(whole(), deliveries=sent, content={DAYS[0]: "x"}) == []


def test_rows_that_no_publication_owns_are_counted_by_interval() -> None:
    con = whole()
    con.execute("create table orders.fct_orders (order_date date, produced_by uuid)")
    con.execute("insert into orders.fct_orders select ?::date, publication_id from platform.current_publications "
                "where asset = 'fct_orders' and \"interval\" = ?", [DAY, DAY])  # fmt: skip
    assert foreign_rows(con, [("fct_orders", "order_date")]) == {}
    con.execute("insert into orders.fct_orders values (?, null), (?, uuid())", [DAY, DAY])
    counted = foreign_rows(con, [("fct_orders", "order_date")])
    assert counted == {("fct_orders", DAY): 2}
    found = only(judge(con, foreign=counted))
    assert (found.finding, found.detail) == ("foreign rows", "2 rows that its current publication did not write")


def test_files_of_past_publications_are_no_orphans() -> None:
    con = whole()
    con.execute("update platform.publications set location = 'raw_orders/a' where asset = 'raw_orders'")
    publish(con, GRAPH, [("raw_orders", DAY)], "b")
    assert orphaned(con, ["raw_orders/a", "raw_orders/order_date=2026-01-06/b"]) == ["raw_orders/order_date=2026-01-06/b"]
    found = only([f for f in judge(con, orphans=["raw_orders/order_date=2026-01-06/b"]) if f.finding == "orphaned file"])
    assert (found.asset, found.interval, found.needs_person, found.remedy) == ("raw_orders", DAY, False, "orders maintenance")
