"""Workers killed with -9: whatever the moment, the partner holds each revision once, or the ledger says in_doubt.

The long versions (make proof): 200 kills over 20 weeks for every channel, and 1,000 webhook deliveries with faults.
"""

import json
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from orders_platform.delivery.channels_webhook import WebhookChannel
from orders_platform.delivery.deliver import Patience, deliver
from orders_platform.delivery.ledger import Ledger
from orders_platform.delivery.states import State
from tests.delivery.nursery import POINTS, Nursery
from tests.delivery.partners import SECRET, BucketPartner, FolderPartner, S3Server, SftpPartner, WebhookPartner, exported

CHANNELS = ("file", "s3", "sftp", "webhook")
WEEK = "2026-01-05"

Partner = Any


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def partner_of(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[str], Partner]]:
    """Starts the partner of a channel."""
    made: list[Partner] = []

    def start(channel: str) -> Partner:
        if channel == "s3":
            server: S3Server = request.getfixturevalue("s3")
            made.append(BucketPartner(server, f"partner-{os.urandom(4).hex()}"))
        else:
            makers = {
                "file": lambda: FolderPartner(tmp_path / "outbox"),
                "sftp": lambda: SftpPartner(tmp_path),
                "webhook": WebhookPartner,
            }
            made.append(makers[channel]())
        return made[-1]

    yield start
    for partner in made:
        partner.close()


class Story:
    """A home whose weeks are delivered by workers that get killed."""

    def __init__(self, home: Path, nursery: Nursery, partner: Partner, **environ: str) -> None:
        self.home, self.nursery, self.partner = home / "home", nursery, partner
        self.home.mkdir()
        self.environ = {
            **partner.environ,
            "ORDERS_DELIVERY_URL": partner.url,
            "ORDERS_DELIVERY_TIMEOUT_SECONDS": "2",
            **environ,
        }
        self.ledger = Ledger(environ.get("ORDERS_LEDGER_URL") or f"sqlite:///{self.home / 'ledger.db'}")

    def publish(self, week: str, text: str) -> None:
        content = exported(self.home / "exports", week, text)
        part = self.home / f"{week}.part"
        part.write_text(json.dumps(vars(content)))
        part.rename(self.home / f"{week}.json")

    def start(self, *weeks: str, point: str = "", lease: float = 0.05) -> int:
        return self.nursery.start(self.home, weeks, self.environ, point, lease)

    def settle(self, *weeks: str) -> None:
        """Run workers that nobody kills, approving what waits, until nothing changes any more."""
        for _ in range(20):
            for row in self.ledger.all():
                if row.state == State.WAITING:
                    self.ledger.act("approve", row.week, "ann", "late refunds")
            assert self.nursery.wait(self.start(*weeks, lease=10)) == 0
            if {row.state for row in self.ledger.latest().values()} <= {State.DELIVERED, State.REJECTED}:
                return
            time.sleep(0.1)
        raise AssertionError([vars(row) for row in self.ledger.latest().values()])

    def count(self) -> Counter[str]:
        """Check the partner's copies against the ledger; returns the states."""
        copies = self.partner.copies()
        known = {row.idempotency_key.replace("/", "_"): row for row in self.ledger.all()}
        assert set(copies) <= set(known)
        for name, row in known.items():
            if row.state == State.DELIVERED:
                assert copies[name] == 1, (name, copies[name])
            else:
                assert copies[name] <= (1 if row.state == State.IN_DOUBT else 0), (name, row.state)
        return Counter(row.state for row in known.values())


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("channel", CHANNELS)
def test_killed_at_any_point_the_next_worker_leaves_exactly_one_copy(
    channel: str, point: str, tmp_path: Path, nursery: Nursery, partner_of: Callable[[str], Partner]
) -> None:
    partner = partner_of(channel)
    story = Story(tmp_path, nursery, partner)
    story.publish(WEEK, "1.00")
    victim: list[int] = []

    def kill() -> None:
        while not victim:
            time.sleep(0.001)
        os.kill(victim[0], signal.SIGKILL)

    if point == "during send" and channel in ("sftp", "webhook"):
        setattr(partner, "before_rename" if channel == "sftp" else "before_effect", kill)
    victim.append(story.start(WEEK, point=point))
    assert nursery.wait(victim[0]) == signal.SIGKILL
    partner.before_rename = partner.before_effect = None
    (row,) = story.ledger.history(WEEK)
    assert row.state == {"before claim": State.PROPOSED, "after record": State.DELIVERED}.get(point, State.CLAIMED)
    time.sleep(0.06)
    assert nursery.wait(story.start(WEEK, lease=10)) == 0
    assert story.count() == {State.DELIVERED: 1}
    assert story.ledger.history(WEEK)[0].attempts == (1 if point in ("before claim", "after record") else 2)


@pytest.mark.parametrize("point", POINTS)
def test_where_the_partner_forgets_keys_an_unknown_outcome_waits_for_a_person_and_nothing_arrives_twice(
    point: str, tmp_path: Path, nursery: Nursery, partner_of: Callable[[str], Partner]
) -> None:
    partner = partner_of("webhook")
    partner.honours = False
    story = Story(tmp_path, nursery, partner, ORDERS_DELIVERY_MAY_REPEAT="no")
    story.publish(WEEK, "1.00")
    pids: list[int] = []
    if point == "during send":
        partner.before_answer = lambda: (time.sleep(0.05), os.kill(pids[0], signal.SIGKILL))
    pids.append(story.start(WEEK, point=point))
    assert nursery.wait(pids[0]) == signal.SIGKILL
    partner.before_answer = None
    time.sleep(0.06)
    for _ in range(3):
        assert nursery.wait(story.start(WEEK, lease=10)) == 0
    (row,) = story.ledger.history(WEEK)
    assert row.state == (State.DELIVERED if point in ("before claim", "after record") else State.IN_DOUBT)
    assert partner.copies().total() == (0 if point == "after claim" else 1)
    if point == "after claim":
        story.ledger.act("resolve-not-delivered", WEEK, "ann", "the partner has nothing")
        assert nursery.wait(story.start(WEEK, lease=10)) == 0
        assert story.count() == {State.DELIVERED: 1} and partner.copies().total() == 1


def test_workers_at_once_send_each_week_once_without_leaning_on_the_partner(
    ledger_url: str, tmp_path: Path, nursery: Nursery, partner_of: Callable[[str], Partner]
) -> None:
    partner = partner_of("webhook")
    partner.before_answer = lambda: time.sleep(0.02)
    story = Story(tmp_path, nursery, partner, ORDERS_LEDGER_URL=ledger_url)
    weeks = [str(date(2026, 1, 5) + timedelta(weeks=n)) for n in range(10)]
    for week in weeks:
        story.publish(week, "1.00")
    for pid in [story.start(*weeks, lease=30) for _ in range(4)]:
        assert nursery.wait(pid) == 0
    assert story.count() == {State.DELIVERED: 10}
    assert sorted(partner.requests.values()) == [1] * 10


@pytest.mark.parametrize(("wanted", "many"), [(8, 3), pytest.param(200, 20, marks=pytest.mark.proof)])
@pytest.mark.parametrize("channel", CHANNELS)
def test_random_kills_of_two_workers_at_once_while_content_changes_leave_each_revision_once(
    channel: str, wanted: int, many: int, tmp_path: Path, nursery: Nursery, partner_of: Callable[[str], Partner]
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    weeks = [str(date(2026, 1, 5) + timedelta(weeks=n)) for n in range(many)]
    story = Story(tmp_path, nursery, partner_of(channel))
    for week in weeks:
        story.publish(week, "1.00")
    kills, longest = 0, 0.3
    deadline = time.monotonic() + 6 * wanted + 30
    while kills < wanted and time.monotonic() < deadline:
        for week in chance.sample(weeks, max(1, len(weeks) // 4)):
            story.publish(week, f"{chance.randrange(1000)}.00")
        for row in story.ledger.all():
            if row.state == State.WAITING and chance.random() < 0.7:
                action = chance.choice(("approve", "approve", "reject"))
                story.ledger.act(action, row.week, "ann", "late refunds", row.revision)
        pids = [story.start(*chance.sample(weeks, len(weeks))) for _ in range(2)]
        for pid in pids:
            time.sleep(chance.uniform(0, longest / 2))
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                longest *= 0.9
        kills += sum(nursery.wait(pid) == signal.SIGKILL for pid in pids)
    assert kills >= wanted
    time.sleep(0.1)
    story.settle(*weeks)
    states = story.count()
    held = {row.week for row in story.ledger.all() if row.may_be_there}
    assert held == set(weeks)
    counts = ", ".join(f"{state} {count}" for state, count in sorted(states.items()))
    print(
        f"{channel}: {kills} kills over {len(weeks)} weeks; {counts}; the partner holds {len(story.partner.copies())} revisions"
    )


@pytest.mark.parametrize("many", [50, pytest.param(1000, marks=pytest.mark.proof)])
def test_webhook_deliveries_with_one_fault_in_ten_all_arrive_and_none_twice(many: int, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    faults = (500, 503, (429, {"Retry-After": "0"}), "cut before", "cut after", "hang")
    served = Counter[str]()

    def choose() -> Any:
        act = chance.choice(faults) if chance.random() < 0.1 else 200
        served["faults" if act != 200 else "answers"] += 1
        return act

    partner = WebhookPartner(choose=choose)
    try:
        ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
        channel = WebhookChannel(partner.url, SECRET, timeout=0.25)
        weeks = [str(date(2006, 1, 2) + timedelta(weeks=n)) for n in range(many)]
        for week in weeks:
            content = exported(tmp_path / "exports", week, "1.00")
            row = deliver(ledger, channel, ledger.open(content), tmp_path / "exports", Patience(12, backoff_seconds=0.001))
            assert row.state == State.DELIVERED, row.detail
        assert partner.copies() == {row.idempotency_key.replace("/", "_"): 1 for row in ledger.all()}
        assert len(partner.effects) == many and served["faults"] > 0
        assert all(row.attempts == partner.requests[row.idempotency_key] for row in ledger.all())
        print(f"{many} delivered, {sum(partner.requests.values())} requests, {served['faults']} faults")
    finally:
        partner.close()


def test_a_partner_that_answers_500_three_times_then_hangs_then_200_gets_it_once(tmp_path: Path) -> None:
    partner = WebhookPartner()
    try:
        partner.script = [500, 500, 500, "hang", 200]
        ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
        content = exported(tmp_path, WEEK, "1.00")
        waits: list[float] = []
        row = deliver(
            ledger,
            WebhookChannel(partner.url, SECRET, timeout=0.3),
            ledger.open(content),
            tmp_path,
            Patience(5),
            pause=lambda s: _pass(s, waits, tmp_path),
        )
        assert (row.state, row.attempts, partner.copies().total()) == (State.DELIVERED, 5, 1)
        assert waits == [1.0, 2.0, 4.0, 8.0]
    finally:
        partner.close()


def _pass(seconds: float, waits: list[float], home: Path) -> None:
    """Let the wait pass without waiting."""
    waits.append(seconds)
    with sqlite3.connect(home / "ledger.db") as con:
        con.execute("update deliveries set lease_until = '2026-01-01 00:00:00'")
    con.close()


def test_a_long_retry_after_is_left_to_a_later_run(tmp_path: Path) -> None:
    partner = WebhookPartner()
    try:
        partner.script = [(429, {"Retry-After": "3600"})]
        ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
        opened = ledger.open(exported(tmp_path, WEEK, "1.00"))
        channel = WebhookChannel(partner.url, SECRET, timeout=5)
        for _ in range(2):
            row = deliver(ledger, channel, opened, tmp_path, Patience(5))
            assert (row.state, row.attempts) == (State.PROPOSED, 1)
        assert row.lease_until and 3500 < (row.lease_until - ledger.clock()).total_seconds() <= 3600
    finally:
        partner.close()
