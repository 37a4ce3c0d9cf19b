"""Refusals of Dagster's commands: only what was asked wrongly becomes a sentence; a fault of the code keeps its traceback."""

import sys
from datetime import UTC, datetime

import pytest
from dagster import DagsterInvalidSubsetError

import orders_platform.definitions  # noqa: F401  # as when Dagster refuses, the definitions are loaded
from orders_platform.dagster_module import speak_plainly
from orders_platform.dagster_refusals import refusal
from orders_platform.errors import OrdersError

NOW = datetime(2026, 1, 20, 12, tzinfo=UTC)


def said(*words: str) -> str:
    found = refusal(("dagster", "asset", "materialize", *words), DagsterInvalidSubsetError("no"), NOW)
    return str(found) if found else ""


def test_the_sentence_names_the_asset_the_interval_and_a_command_for_the_whole_selection() -> None:
    text = said("--select", "fct_orders,revenue_daily", "--partition", "2026-01-20")
    assert text == (
        "fct_orders 2026-01-20 has not ended yet. "
        "The newest is 2026-01-19: dagster asset materialize --select fct_orders,revenue_daily --partition 2026-01-19"
    )
    assert "2026-01-04 lies outside the calendar" in said("--select=raw_orders", "--partition=2026-01-04")
    assert "none was named" in said("--select", "raw_orders")
    assert said("--select", "raw_orders,typo", "--partition", "2026-01-06").startswith("There is no asset typo.")
    assert said("--select", "finance_export", "--partition", "2026-01-07").startswith("finance_export 2026-01-07 is no week")
    assert "(daily: fct_orders; weekly: finance_export)" in said("--select", "fct_orders,finance_export")
    assert "2026-01-20 has not ended" in said("--select", "group:orders", "--partition-range", "2026-01-19...2026-01-20")


@pytest.mark.parametrize(
    "words",
    [
        ("--select", "raw_orders", "--partition-range", "2026-01-05..2026-01-06"),
        ("--select", "raw_orders", "--partition-range", "2026-01-05...2026-01-06", "--partition", "2026-01-05"),
        ("--job", "daily_orders", "--partition", "2026-01-20"),
    ],
)
def test_what_dagster_says_better_is_left_to_it(words: tuple[str, ...]) -> None:
    assert said(*words) == ""


def test_an_error_of_ours_speaks_only_where_it_is_the_cause() -> None:
    ours = OrdersError("ORDERS_START_DATE is no Monday.")
    caused = RuntimeError("loading failed")
    caused.__cause__ = ours
    assert refusal((), caused, NOW) is ours
    bug = KeyError("while an expected error was handled")
    bug.__context__ = ours
    assert refusal((), bug, NOW) is None
    bug.__cause__, caused.__cause__ = caused, bug
    assert refusal((), bug, NOW) is None
    stop = KeyboardInterrupt()
    stop.__cause__ = ours
    assert refusal((), stop, NOW) is None


def test_whatever_fails_in_the_hook_the_error_itself_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, _: seen.append(error))
    speak_plainly(("dagster", "asset", "materialize", "-m", "elsewhere", "--select", "x"), {})
    assert sys.excepthook.__module__ == __name__
    speak_plainly(("dagster", "asset", "materialize", "--select", "raw_orders", "--partition", "-2026-01-05"), {})
    error = DagsterInvalidSubsetError("no such key")
    sys.excepthook(type(error), error, None)
    assert seen == [error]
    speak_plainly(("dagster", "asset", "materialize", "--select", "raw_orders"), {})
    sys.excepthook(type(error), error, None)
    assert seen == [error]
    assert capsys.readouterr().err.startswith("error: raw_orders is made of intervals")
