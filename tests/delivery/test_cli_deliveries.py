"""orders deliveries: a correction is looked at, decided on with a reason, and sent once; everything as a table and as JSON."""

import json
from pathlib import Path
from typing import Any

import pytest
from click import UsageError
from click.testing import CliRunner, Result

from orders_platform.assets.finance_delivery import send
from orders_platform.cli.deliveries import deliveries
from orders_platform.delivery.difference import difference
from orders_platform.delivery.ledger import Ledger
from orders_platform.delivery.readiness import contents
from orders_platform.delivery.states import NotPossible, State
from orders_platform.recovery.interventions import NoReason
from orders_platform.settings import settings
from tests.conftest import Workspace
from tests.delivery.helpers import DAYS, WEEK, build, judge, publish_days, ready_week
from tests.delivery.partners import FolderPartner


def orders(*words: str) -> Result:
    """Run the command in this process; a refused action raises, as `orders` would print."""
    return CliRunner().invoke(deliveries, words, catch_exceptions=False, standalone_mode=False)


def objects(*words: str) -> list[dict[str, Any]]:
    done = orders(*words, "--json")
    if done.exception:
        raise done.exception
    return list(json.loads(done.output))


@pytest.fixture
def corrected(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A week that was sent, then corrected on one line; revision 2 waits."""
    monkeypatch.setenv("ORDERS_DELIVERY_CONTACT", "finance@partner.example")
    settings.cache_clear()
    ready_week(workspace)
    assert send(WEEK).state == State.DELIVERED
    publish_days(workspace, DAYS[1:2], "21.00")
    judge(workspace)
    build(workspace)
    assert send(WEEK).state == State.WAITING
    return workspace


def test_list_names_every_revision_and_what_the_other_weeks_wait_for(corrected: Workspace) -> None:
    rows = objects("list")
    assert [(r["week"], r["revision"], r["state"]) for r in rows[:3]] == [
        (WEEK, 1, "delivered"), (WEEK, 2, "waiting"), ("2026-01-12", 0, "waits"),
    ]  # fmt: skip
    assert "finance_export 2026-01-12 has not been published" in rows[2]["detail"]
    assert [r["revision"] for r in objects("list", "--state", "waiting")] == [2]
    assert "a correction that waits for approval" in orders("list").output


def test_show_prints_the_lines_that_differ_who_received_the_old_ones_and_when(corrected: Workspace) -> None:
    text = orders("show", "2026-01-07").output
    assert "1 lines differ from r1:" in text
    assert "2026-01-06 GB GBP changed: revenue 19.00 → 21.00" in text
    assert "(finance@partner.example) at 20" in text
    first, second = objects("show", WEEK)
    assert [line["state"] for line in first["history"]] == ["proposed", "claimed", "delivered"]
    assert (first["received_by"], second["received_by"]) == ("finance@partner.example", None)
    assert second["difference"] == [
        {"change": "changed", "line": "2026-01-06 GB GBP", "columns": {"revenue": ["19.00", "21.00"]}}
    ]


def test_approved_it_is_sent_once_and_the_approval_is_on_record(corrected: Workspace) -> None:
    partner = FolderPartner(corrected.home / "outbox")
    (row,) = objects("approve", WEEK, "--reason", "late refunds", "--who", "ann")
    assert (row["revision"], row["state"]) == (2, "proposed")
    for _ in range(2):
        assert send(WEEK).state == State.DELIVERED
    assert partner.copies().total() == 2
    sent = Ledger(settings().ledger_url).history(WEEK)
    manifest = json.loads((partner.folder / f"{sent[1].idempotency_key.replace('/', '_')}.manifest.json").read_text())
    assert manifest["supersedes"] == sent[0].idempotency_key
    assert corrected.query("select kind, asset, intervals, who, reason from platform.interventions") == [
        ("approve", "finance_delivery", [WEEK], "ann", "late refunds")
    ]


def test_rejected_it_is_never_sent(corrected: Workspace) -> None:
    assert objects("reject", WEEK, "--reason", "not material")[0]["state"] == "rejected"
    assert send(WEEK).state == State.REJECTED
    assert FolderPartner(corrected.home / "outbox").copies().total() == 1


def test_without_a_reason_or_against_the_state_nothing_happens_and_nothing_is_recorded(corrected: Workspace) -> None:
    with pytest.raises(NoReason, match="needs a reason"):
        objects("approve", WEEK)
    for words in (
        ("approve", WEEK, "--revision", "1"),
        ("retry", WEEK),
        ("resolve", WEEK, "--delivered"),
        ("reject", "2026-01-12"),
    ):
        with pytest.raises(NotPossible):
            objects(*words, "--reason", "because")
    assert corrected.query("select count(*) from platform.interventions") == [(0,)]
    assert [d.state for d in Ledger(settings().ledger_url).history(WEEK)] == [State.DELIVERED, State.WAITING]


def test_the_notify_list_names_who_holds_something_else_than_what_is_published(corrected: Workspace) -> None:
    (row,) = objects("notify-list", WEEK)
    assert (row["contact"], row["revision"], row["received"], row["correction"]) == (
        "finance@partner.example", 1, "yes", "r2 waiting",
    )  # fmt: skip
    ready_week(corrected)
    assert objects("notify-list", WEEK) == []


def test_a_doubt_is_resolved_with_a_reason(workspace: Workspace) -> None:
    ready_week(workspace)
    ledger = Ledger(settings().ledger_url)
    with workspace.warehouse.read() as con:
        content = contents(con, [WEEK])[WEEK]
    claimed = ledger.claim(ledger.open(content), "a-claim", "https://partner", "", lease=60, may_repeat=False)
    ledger.record(claimed, State.IN_DOUBT, "no answer")
    with pytest.raises(UsageError, match="Say --delivered or --not-delivered"):
        objects("resolve", WEEK, "--reason", "asked")
    assert objects("resolve", WEEK, "--not-delivered", "--reason", "they have nothing")[0]["state"] == "proposed"
    assert send(WEEK).state == State.DELIVERED


def test_a_week_whose_runs_died_before_it_was_opened_can_be_retried(workspace: Workspace) -> None:
    ready_week(workspace)
    assert objects("retry", WEEK, "--reason", "the disk is free again")[0]["state"] == "proposed"


def test_as_a_real_command_an_error_is_one_sentence_and_exit_code_1(workspace: Workspace) -> None:
    done = workspace.run("orders", "deliveries", "show", WEEK)
    assert done.returncode == 1 and "There is no delivery of 2026-01-05: revenue_daily" in done.stderr
    assert "Traceback" not in done.stderr
    done = workspace.run(
        "orders", "deliveries", "list", "--json", ORDERS_LEDGER_URL="postgresql+psycopg://o:hunter2@127.0.0.1:1/x"
    )
    assert done.returncode == 1 and "The ledger postgresql+psycopg://o:***@127.0.0.1:1/x cannot be used" in done.stderr
    assert "hunter2" not in done.stdout + done.stderr


def test_lines_added_and_removed_are_told_apart(tmp_path: Path) -> None:
    changes = difference(b"day,country,n\n5,DE,1\n6,DE,1\n", b"day,country,n\n6,DE,1\n7,GB,2\n", ["day", "country"])
    assert [c.text() for c in changes] == ["5 DE removed: n 1 → —", "7 GB added: n — → 2"]
