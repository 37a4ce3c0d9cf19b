"""Interventions: what a person did is recorded with a reason, or refused."""

import pytest

from orders_platform.recovery.interventions import (
    AlreadySo,
    NoReason,
    holds,
    quarantine,
    record,
    record_outcome,
    recorded,
    release,
)
from tests.recovery.graphs import warehouse

PAIR = ("fct_orders", "2026-01-06")


@pytest.mark.parametrize("reason", ["", "  "])
def test_an_action_without_a_reason_is_refused_and_leaves_nothing(reason: str) -> None:
    con = warehouse()
    with pytest.raises(NoReason):
        quarantine(con, [PAIR], "ada", reason)
    assert not holds(con) and not recorded(con)


def test_a_quarantine_and_its_release_are_two_interventions_with_who_and_why() -> None:
    con = warehouse()
    quarantine(con, [PAIR, ("fct_orders", "2026-01-07")], "ada", "wrong currency")
    assert set(holds(con)) == {PAIR, ("fct_orders", "2026-01-07")}
    release(con, [PAIR], "bob", "was right")
    assert set(holds(con)) == {("fct_orders", "2026-01-07")}
    newest, first = recorded(con)
    assert (newest.kind, newest.who, newest.reason, newest.intervals) == ("release", "bob", "was right", ("2026-01-06",))
    assert (first.kind, first.who, first.intervals) == ("quarantine", "ada", ("2026-01-06", "2026-01-07"))
    quarantine(con, [PAIR], "ada", "no, wrong after all")
    assert holds(con)[PAIR].reason == "no, wrong after all"


def test_a_quarantine_set_twice_or_released_twice_says_who_was_first() -> None:
    con = warehouse()
    quarantine(con, [PAIR], "ada", "wrong currency")
    with pytest.raises(AlreadySo, match=r"by ada since .* \(wrong currency\)"):
        quarantine(con, [PAIR], "bob", "me too")
    release(con, [PAIR], "ada", "fine")
    with pytest.raises(AlreadySo):
        release(con, [PAIR], "ada", "fine")
    assert len(recorded(con)) == 2


def test_an_outcome_joins_the_intervention_it_belongs_to() -> None:
    con = warehouse()
    record(con, "repair", "fct_orders", ["2026-01-06"], "ada", "bad day", {"rows": 5})
    made = recorded(con)[0]
    assert (made.outcome, made.details) == ("", {"rows": 5})
    record_outcome(con, made, "1 repaired")
    assert [(i.kind, i.outcome) for i in recorded(con)] == [("repair", "1 repaired")]
