"""The sensor's decision, as a table: facts in, proposals and reasons out."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from orders_platform.delivery.decide import decide
from orders_platform.delivery.readiness import Week
from orders_platform.delivery.states import Content, Delivery, State

WEEK = "2026-01-05"
NOW = datetime(2026, 1, 12, 6, 5)
LATER, BEFORE = NOW + timedelta(minutes=5), NOW - timedelta(minutes=5)
A = Content("finance_export", WEEK, "aa", "x.csv", "p")
B = replace(A, digest="bb")
R1, R2 = f"finance_export/{WEEK}/r1/aa", f"finance_export/{WEEK}/r2/bb"


def delivery(state: State, **values: Any) -> Delivery:
    return Delivery(R1, "finance_export", WEEK, 1, "aa", "x.csv", "p", state, BEFORE, **values)


@pytest.mark.parametrize(
    ("content", "waits", "last", "failed", "expected"),
    [
        (
            None,
            ("finance_export 2026-01-05 has not been published",),
            None,
            0,
            "finance_export 2026-01-05 has not been published",
        ),
        (A, (), None, 0, {WEEK: R1}),
        (A, ("revenue_daily 2026-01-07 is stale",), None, 0, "revenue_daily 2026-01-07 is stale"),
        (A, (), None, 2, {WEEK: R1}),
        (A, (), None, 3, "3 runs failed"),
        (A, (), delivery(State.PROPOSED), 0, {WEEK: R1}),
        (A, (), delivery(State.PROPOSED, lease_until=LATER, detail="429"), 0, "not before 2026-01-12 06:10:00 UTC: 429"),
        (A, (), delivery(State.PROPOSED, lease_until=BEFORE), 0, {WEEK: R1}),
        (A, (), delivery(State.CLAIMED, lease_until=LATER, attempts=2), 0, "r1 is being sent (attempt 2)"),
        (A, (), delivery(State.CLAIMED, lease_until=BEFORE), 0, {WEEK: R1}),
        (A, (), delivery(State.DELIVERED), 0, ""),
        (A, ("the export is stale",), delivery(State.DELIVERED), 0, ""),
        (A, (), delivery(State.REJECTED), 0, ""),
        (A, (), delivery(State.WAITING), 0, "r1 waits for approval: orders deliveries show 2026-01-05"),
        (A, (), delivery(State.FAILED, detail="401"), 0, "r1 was refused (401): orders deliveries retry 2026-01-05"),
        (A, (), delivery(State.IN_DOUBT, detail="no answer"), 0, "r1 is in doubt (no answer): orders deliveries resolve"),
        (B, (), delivery(State.DELIVERED), 0, {WEEK: R2}),
        (B, (), delivery(State.FAILED), 0, {WEEK: R2}),
        (B, (), delivery(State.CLAIMED, lease_until=LATER, attempts=1), 0, "r1 is being sent (attempt 1)"),
        (B, (), delivery(State.CLAIMED, lease_until=BEFORE), 0, {WEEK: R2}),
        (
            B,
            ("revenue_daily 2026-01-07 has not been reconciled yet",),
            delivery(State.DELIVERED),
            0,
            "has not been reconciled yet",
        ),
    ],
)
def test_a_week_is_proposed_or_says_what_it_waits_for(
    content: Content | None, waits: tuple[str, ...], last: Delivery | None, failed: int, expected: str | Mapping[str, str]
) -> None:
    counts = {R1: failed, R2: failed}
    made = decide([Week(WEEK, content, waits)], {WEEK: last} if last else {}, (), counts, NOW, failed_runs=3)
    if isinstance(expected, str):
        assert made.proposals == {}
        assert expected in made.waiting.get(WEEK, "") and bool(made.waiting) == bool(expected)
    else:
        assert (made.proposals, made.waiting) == (expected, {})


def test_a_key_that_an_unfinished_run_carries_is_not_proposed_again() -> None:
    made = decide([Week(WEEK, A)], {}, {R1}, {}, NOW, failed_runs=3)
    assert (made.proposals, made.reason()) == ({}, f"{WEEK}: a run is under way")


def test_with_nothing_to_do_the_reason_says_so() -> None:
    assert decide([], {}, (), {}, NOW, 3).reason() == "Every week that was built is delivered."
