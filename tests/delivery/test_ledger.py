"""The ledger, on SQLite and on Postgres: what is opened, who may send, what a person may do."""

import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest

from orders_platform.delivery.ledger import BeingSent, Ledger, LedgerUnavailable
from orders_platform.delivery.states import Content, Delivery, NotPossible, State
from tests.delivery.partners import content

A, B = "a" * 64, "b" * 64
WEEK = "2026-01-05"


def claim(ledger: Ledger, delivery: Delivery, lease: float = 60, may_repeat: bool = True) -> Delivery:
    return ledger.claim(delivery, str(uuid.uuid4()), "file:///outbox", "finance@partner", lease=lease, may_repeat=may_repeat)


def send(ledger: Ledger, made: Content) -> Delivery:
    return ledger.record(claim(ledger, ledger.open(made)), State.DELIVERED, "taken", receipt={"status": 200})


def test_content_a_then_b_then_a_again_are_three_revisions_and_the_same_content_again_is_none(ledger: Ledger) -> None:
    for digest in (A, A, B, B, A, A):
        ledger.open(content(digest))
    assert [(d.revision, d.digest[0]) for d in ledger.history(WEEK)] == [(1, "a"), (2, "b"), (3, "a")]
    assert ledger.history(WEEK)[0].idempotency_key == f"finance_export/{WEEK}/r1/{A}"


def test_a_revision_that_was_never_sent_is_withdrawn_and_the_next_may_be_sent_at_once(ledger: Ledger) -> None:
    ledger.open(content(A))
    assert ledger.open(content(B)).state == State.PROPOSED
    assert [d.state for d in ledger.history(WEEK)] == [State.WITHDRAWN, State.PROPOSED]


def test_a_revision_after_a_delivered_one_waits_and_supersedes_it(ledger: Ledger) -> None:
    first = send(ledger, content(A))
    second = ledger.open(content(B))
    assert (second.state, second.supersedes) == (State.WAITING, first.idempotency_key)
    assert claim(ledger, second).state == State.WAITING
    third = ledger.open(content(A))
    assert (third.state, third.supersedes) == (State.WAITING, first.idempotency_key)
    assert ledger.history(WEEK)[1].state == State.WITHDRAWN


def test_a_delivered_key_cannot_be_claimed_again(ledger: Ledger) -> None:
    send(ledger, content())
    again = claim(ledger, ledger.open(content()))
    assert (again.state, again.attempts) == (State.DELIVERED, 1)


def test_of_many_workers_that_open_and_claim_at_once_exactly_one_gets_it(ledger_url: str) -> None:
    def work(number: int) -> bool:
        mine = Ledger(ledger_url)
        row = mine.claim(mine.open(content()), str(number), "file:///outbox", "", lease=60, may_repeat=True)
        return row.claim_id == str(number)

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(work, range(16))) == 1
    assert [d.attempts for d in Ledger(ledger_url).all()] == [1]


def test_many_first_processes_create_the_ledger_together(ledger_url: str) -> None:
    code = f"""
from orders_platform.delivery.ledger import Ledger
from tests.delivery.partners import content
print(Ledger({ledger_url!r}).open(content()).revision)
"""
    workers = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    assert [worker.communicate(timeout=60)[0] for worker in workers] == [b"1\n"] * 4


def test_a_claim_whose_lease_ran_out_is_taken_over_where_the_key_may_be_repeated(ledger_url: str) -> None:
    now = datetime(2026, 1, 12, 6)
    ledger = Ledger(ledger_url, lambda: now)
    first = claim(ledger, ledger.open(content()))
    assert claim(ledger, first).claim_id == first.claim_id
    now += timedelta(seconds=61)
    second = claim(ledger, first)
    assert (second.state, second.attempts) == (State.CLAIMED, 2) and second.claim_id != first.claim_id


def test_and_is_in_doubt_where_it_may_not(ledger_url: str) -> None:
    now = datetime(2026, 1, 12, 6)
    ledger = Ledger(ledger_url, lambda: now)
    first = claim(ledger, ledger.open(content()))
    now += timedelta(seconds=61)
    assert claim(ledger, first, may_repeat=False).state == State.IN_DOUBT
    assert ledger.record(first, State.DELIVERED, "a receipt always counts").state == State.DELIVERED


def test_a_worker_that_lost_its_claim_cannot_overwrite_the_outcome_of_the_other(ledger_url: str) -> None:
    now = datetime(2026, 1, 12, 6)
    ledger = Ledger(ledger_url, lambda: now)
    first = claim(ledger, ledger.open(content()))
    now += timedelta(seconds=61)
    second = claim(ledger, first)
    assert ledger.record(first, State.FAILED, "late").state == State.CLAIMED
    assert ledger.record(second, State.DELIVERED, "taken").state == State.DELIVERED
    assert ledger.record(first, State.FAILED, "late").state == State.DELIVERED


def test_newer_content_waits_while_the_older_is_being_sent(ledger: Ledger) -> None:
    claim(ledger, ledger.open(content(A)))
    with pytest.raises(BeingSent, match="is being sent and its content has changed"):
        ledger.open(content(B))


def test_newer_content_after_an_unknown_outcome_waits_and_the_older_stays_in_doubt(ledger_url: str) -> None:
    now = datetime(2026, 1, 12, 6)
    ledger = Ledger(ledger_url, lambda: now)
    first = claim(ledger, ledger.open(content(A)))
    now += timedelta(seconds=61)
    second = ledger.open(content(B))
    assert (second.state, second.supersedes) == (State.WAITING, first.idempotency_key)
    assert ledger.history(WEEK)[0].state == State.IN_DOUBT


def test_not_taken_after_an_unknown_attempt_is_still_unknown_to_newer_content(ledger: Ledger) -> None:
    first = claim(ledger, ledger.open(content(A)))
    ledger.record(first, State.CLAIMED, "no answer")
    second = claim(ledger, first)
    ledger.record(second, State.PROPOSED, "429")
    assert ledger.open(content(B)).state == State.WAITING
    assert ledger.history(WEEK)[0].state == State.IN_DOUBT


def test_a_key_that_is_to_wait_cannot_be_claimed_before(ledger_url: str) -> None:
    now = datetime(2026, 1, 12, 6)
    ledger = Ledger(ledger_url, lambda: now)
    row = ledger.record(claim(ledger, ledger.open(content())), State.PROPOSED, "429", wait=120)
    assert claim(ledger, row).attempts == 1
    now += timedelta(seconds=121)
    assert claim(ledger, row).attempts == 2


def test_an_approved_revision_may_be_sent_and_a_rejected_one_never(ledger: Ledger) -> None:
    send(ledger, content(A))
    ledger.open(content(B))
    assert ledger.act("approve", WEEK, "ann", "late refunds").state == State.PROPOSED
    assert send(ledger, content(B)).state == State.DELIVERED
    ledger.open(content(A))
    assert ledger.act("reject", WEEK, "ann", "not material").state == State.REJECTED
    assert claim(ledger, ledger.open(content(A))).state == State.REJECTED


def test_approval_is_for_the_content_that_was_shown_not_for_what_replaces_it(ledger: Ledger) -> None:
    send(ledger, content(A))
    ledger.open(content(B))
    ledger.act("approve", WEEK, "ann", "late refunds")
    assert ledger.open(content("c" * 64)).state == State.WAITING
    assert [d.state for d in ledger.history(WEEK)] == [State.DELIVERED, State.WITHDRAWN, State.WAITING]


def test_a_person_resolves_a_doubt_either_way(ledger: Ledger) -> None:
    for week, action, state in (
        ("2026-01-05", "resolve-delivered", State.DELIVERED),
        ("2026-01-12", "resolve-not-delivered", State.PROPOSED),
    ):
        row = claim(ledger, ledger.open(content(A, week)))
        ledger.record(row, State.IN_DOUBT, "no answer")
        assert ledger.act(action, week, "ann", "asked the partner").state == state


def test_an_old_revision_found_not_delivered_is_not_sent_after_the_newer_one(ledger: Ledger) -> None:
    ledger.record(claim(ledger, ledger.open(content(A))), State.IN_DOUBT, "no answer")
    ledger.open(content(B))
    assert ledger.act("resolve-not-delivered", WEEK, "ann", "asked", revision=1).state == State.WITHDRAWN


def test_an_action_that_the_state_does_not_allow_is_refused_and_changes_nothing(ledger: Ledger) -> None:
    send(ledger, content())
    before = ledger.history(WEEK), ledger.transitions(ledger.history(WEEK)[0].idempotency_key)
    for action in ("approve", "reject", "retry", "resolve-delivered"):
        with pytest.raises(NotPossible, match="is delivered"):
            ledger.act(action, WEEK, "ann", "why not")
    with pytest.raises(NotPossible, match="no delivery of 2026-01-12"):
        ledger.act("approve", "2026-01-12", "ann", "why not")
    assert before == (ledger.history(WEEK), ledger.transitions(before[0][0].idempotency_key))


def test_every_change_of_state_is_a_line_of_the_history(ledger: Ledger) -> None:
    ledger.record(claim(ledger, ledger.open(content())), State.FAILED, "401")
    ledger.act("retry", WEEK, "ann", "the secret was wrong")
    send(ledger, content())
    lines = ledger.transitions(ledger.history(WEEK)[0].idempotency_key)
    assert [(t.state, t.who) for t in lines] == [
        ("proposed", None), ("claimed", None), ("failed", None), ("proposed", "ann"), ("claimed", None), ("delivered", None),
    ]  # fmt: skip


def test_a_ledger_that_cannot_be_reached_is_named_without_its_password() -> None:
    with pytest.raises(LedgerUnavailable) as caught:
        Ledger("postgresql+psycopg://orders:hunter2@127.0.0.1:1/none").all()
    assert "127.0.0.1" in str(caught.value) and "hunter2" not in str(caught.value)
