"""Random histories: land, correct, run, fail anywhere, die anywhere, retry, backfill, mark, hold, release, repair, deliver.

After every step the states equal those of a slow, obvious model, and what is published is the pure function of what it was
made from. HISTORIES sets how many; HISTORY_SEED repeats a run.
"""

import os
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from orders_platform.recovery.interventions import holds, quarantine, record, release
from orders_platform.recovery.repair import Repair, plan
from orders_platform.warehouse.publications import Pair
from tests.recovery.partner import ACTIONS, ANSWERS
from tests.recovery.small_platform import DAYS, GRAPH, WEEK, Launcher, Made, Platform

ASSETS = ("raw", "stg", "daily", "total")
AMOUNTS = ("10.00", "12.50", "0.01", "none")
HOT = DAYS[1:4]
"""Few days, so that what happens in a history happens to the same ones."""
PAIRS = [(asset, day) for asset in ASSETS for day in HOT] + [("export", WEEK)]
SPANS = [DAYS, HOT, *[(day,) for day in HOT], DAYS[2:], DAYS[:2]]
RUNS = [(asset, span) for asset in ASSETS for span in SPANS] + [("export", (WEEK,))] * 6


class History(RuleBasedStateMachine):
    """One history."""

    count = 0

    def __init__(self) -> None:
        super().__init__()
        self.there = Platform()
        self.failed: tuple[str, Sequence[str]] | None = None
        History.count += 1

    def teardown(self) -> None:
        self.there.close()

    @initialize(
        rows=st.dictionaries(st.sampled_from(DAYS), st.sampled_from(AMOUNTS)),
        built=st.sampled_from((7, 7, 3, 0)),
        knows_keys=st.booleans(),
    )
    def start(self, rows: dict[str, str], built: int, knows_keys: bool) -> None:
        self.there.partner.may_repeat = knows_keys
        for day, amount in rows.items():
            self.there.model.source[day] = {"o1": amount, "o2": "1.00"}
        for asset in ASSETS if built else ():
            self.there.run(asset, DAYS[:built])
        if built == 7:
            self.there.run("export", (WEEK,))

    @rule(day=st.sampled_from(HOT), order=st.sampled_from(("o1", "o2", "o3")), amount=st.sampled_from(AMOUNTS))
    def correct_the_source(self, day: str, order: str, amount: str) -> None:
        self.there.model.source[day] = {**self.there.model.source[day], order: amount}

    @rule(day=st.sampled_from(HOT), amount=st.sampled_from(AMOUNTS))
    def correct_and_capture(self, day: str, amount: str) -> None:
        self.correct_the_source(day, "o1", amount)
        self.there.run("raw", (day,))

    @rule(what=st.sampled_from(RUNS))
    def run(self, what: tuple[str, Sequence[str]]) -> None:
        if not self.there.run(*what).success:
            self.failed = what

    @rule(what=st.sampled_from(RUNS), at=st.integers(1, 40), kill=st.booleans())
    def fail_or_die(self, what: tuple[str, Sequence[str]], at: int, kill: bool) -> None:
        if not self.there.run(*what, at, kill=kill).success:
            self.failed = what

    @rule(what=st.sampled_from(RUNS))
    def die_between_commit_and_event(self, what: tuple[str, Sequence[str]]) -> None:
        self.there.run(*what, event=False)

    @rule()
    def retry(self) -> None:
        if self.failed:
            self.there.run(*self.failed)

    @rule(span=st.sampled_from(SPANS))
    def backfill(self, span: Sequence[str]) -> None:
        for asset in ASSETS:
            self.there.run(asset, span)

    @rule(pair=st.sampled_from(PAIRS))
    def mark(self, pair: Pair) -> None:
        self.there.model.claims[pair] = ""

    @rule(pair=st.sampled_from(PAIRS))
    def hold_or_release(self, pair: Pair) -> None:
        act, change = (release, set.discard) if pair in self.there.model.held else (quarantine, set.add)
        act(self.there.base, [pair], "ada", "a test")
        change(self.there.model.held, pair)
        self.there.model.interventions += 1
        assert set(holds(self.there.base)) == self.there.model.held

    @rule(pair=st.sampled_from(PAIRS))
    def fail_a_check(self, pair: Pair) -> None:
        made = self.there.model.made.get(pair)
        if not made:
            return
        self.there.base.execute("""
            insert into platform.verdicts by name select publication_id, asset, "interval", 'reconciles' as check_name,
              1 as attempt, false as passed, true as blocking from platform.current_publications
            where asset = ? and "interval" = ?""", list(pair))  # fmt: skip
        made[-1] = Made(made[-1].content, made[-1].read, made[-1].run_id, is_failing=True)

    @rule(asset=st.sampled_from(ASSETS), span=st.sampled_from(SPANS))
    def repair(self, asset: str, span: Sequence[str]) -> None:
        there = self.there
        record(there.base, "repair", asset, list(span), "ada", "a test")
        there.model.interventions += 1
        launcher = Launcher(there)
        _, before = there.look()
        work = plan(GRAPH, *there.look(), [(asset, day) for day in span])
        outcome = Repair(GRAPH, work, there.look, launcher).run()
        _, after = there.look()
        everything = [*outcome.repaired, *outcome.unchanged, *outcome.held, *outcome.waiting, *outcome.failed]
        assert sorted(everything) == sorted(line.pair for line in work.lines)
        assert not outcome.failed, outcome.failed
        assert {after[p].name for p in (*outcome.repaired, *outcome.unchanged)} <= {"current"}
        assert {after[p].name for p in outcome.held} <= {"held"}
        assert {after[p].name for p in outcome.waiting} <= {"missing", "stale", "claimed", "divergent"}
        assert all(before[p] == after[p] for p in before if p not in everything)

    @rule(answers=st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=4), wait=st.booleans())
    def deliver(self, answers: list[str], wait: bool) -> None:
        """So many runs of the delivery one after the other, each with a fate of its own."""
        for answer in answers:
            if wait:
                self.there.wait(3600)
            self.there.send(answer)

    @rule(day=st.sampled_from(HOT), amount=st.sampled_from(AMOUNTS), answers=st.lists(st.sampled_from(ANSWERS), max_size=4))
    def correct_rebuild_and_deliver(self, day: str, amount: str, answers: list[str]) -> None:
        self.correct_the_source(day, "o1", amount)
        self.backfill(DAYS)
        self.there.run("export", (WEEK,))
        self.deliver(answers, wait=True)

    @rule(action=st.sampled_from(ACTIONS))
    def decide(self, action: str) -> None:
        self.there.partner.decide(WEEK, action)

    @invariant()
    def everything_holds(self) -> None:
        self.there.check()


def tell(count: int, steps: int = 12, add: int = 0) -> None:
    """Run so many histories from a seed that is printed."""
    number = int(os.environ.get("HISTORY_SEED") or random.randrange(2**32)) + add
    print(f"HISTORY_SEED={number}: {count} histories of up to {steps} steps")
    History.count = 0
    options: dict[str, Any] = {
        "deadline": None,
        "database": None,
        "print_blob": True,
        "suppress_health_check": list(HealthCheck),
    }
    phases = (Phase.explicit, Phase.generate, Phase.shrink)
    run_state_machine_as_test(
        seed(number)(History), settings=settings(max_examples=count, stateful_step_count=steps, phases=phases, **options)
    )
    print(f"{History.count} histories, nothing broken")


def test_whatever_happens_in_whatever_order_states_and_rows_are_what_they_should_be() -> None:
    tell(int(os.environ.get("HISTORIES") or 15))


def test_whatever_becomes_of_its_deliveries_the_partner_gets_each_revision_once_and_corrections_by_approval() -> None:
    """Deliveries alone, close together: in the histories above they are few."""
    number = int(os.environ.get("HISTORY_SEED") or random.randrange(2**32))
    print(f"HISTORY_SEED={number}")
    chance = random.Random(number)
    sent = 0
    for _ in range(int(os.environ.get("HISTORIES") or 8)):
        there = Platform()
        there.partner.may_repeat = chance.random() < 0.5
        for _ in range(12):
            what = chance.choice(("correct", "deliver", "deliver", "deliver", "decide", "wait")) if there.runs else "correct"
            if what == "correct":
                there.model.source[HOT[0]] = {"o1": chance.choice(AMOUNTS)}
                for asset in ASSETS:
                    there.run(asset, DAYS)
                there.run("export", (WEEK,))
            elif what == "deliver":
                there.send(chance.choice(ANSWERS))
            elif what == "decide":
                there.partner.decide(WEEK, chance.choice(ACTIONS))
            else:
                there.wait(3600)
            there.partner.check(WEEK)
        sent += len(there.partner.taken)
        there.close()
    assert sent


@pytest.mark.proof
@pytest.mark.parametrize("part", range(8))
def test_two_thousand_histories(part: int) -> None:
    """In parts, so that they share the cores."""
    tell(max(250, int(os.environ.get("HISTORIES") or 0)), add=part)
