"""Warnings: an interval that is right in itself and unlike the others. None of them stops a run."""

from dataclasses import replace

import pytest

from orders_platform.calendar import ClosedDays
from orders_platform.checks.usual import same_weekdays, volume
from orders_platform.settings import settings
from orders_platform.source.errors import SourceUnavailable
from orders_platform.source.orders_source import OrdersSource
from orders_platform.warehouse import publications
from orders_platform.warehouse.publications import Publication
from tests.checks.kit import ALL_DAILY, WEEK, check, failed, judged, text
from tests.conftest import Workspace

DAY = WEEK[1]


def test_a_usual_week_warns_of_nothing(published: Workspace) -> None:
    assert not failed(check(published, WEEK[0], WEEK[-1], assets=ALL_DAILY))


def earlier(*counts: int) -> dict[tuple[str, str], Publication]:
    days = same_weekdays("2026-03-02")
    return {
        ("raw_orders", day): Publication("raw_orders", day, "r", "c", "d", count)
        for day, count in zip(days, counts, strict=False)
    }


@pytest.mark.parametrize(
    ("rows", "passed", "grave"),
    [(100, True, False), (140, True, False), (150, False, False), (50, False, False), (5, False, True)],
)
def test_volume_is_judged_against_the_same_weekday_of_eight_weeks(rows: int, passed: bool, grave: bool) -> None:
    history = earlier(100, 104, 96, 101, 99, 5000, 100, 98)
    found = volume(Publication("raw_orders", "2026-03-02", "r", "c", "d", rows), history, ClosedDays(), 4, 8)
    assert (found.passed, found.is_grave, found.left) == (passed, grave, "60 to 140 rows")


def test_volume_is_silent_and_says_why_while_history_is_short_or_the_day_is_closed() -> None:
    made = Publication("raw_orders", "2026-03-02", "r", "c", "d", 1)
    short = volume(made, earlier(100, 100, 100), ClosedDays(), 4, 8)
    assert short.passed and "3 of 8 earlier weeks are there, 4 are needed" in short.details
    closed = volume(made, earlier(*[100] * 8), ClosedDays.parse("2026-03-02"), 4, 8)
    assert closed.passed and closed.details == "closed on 2026-03-02"
    assert not volume(made, earlier(*[100] * 8), ClosedDays(), 4, 8).passed


def test_a_day_with_far_fewer_rows_than_its_weekday_warns_and_goes_on(workspace: Workspace) -> None:
    weeks = [Publication("raw_orders", day, "r", "c", "d", 100) for day in same_weekdays(DAY)]
    with workspace.warehouse.write("a test") as con:
        publications.append(con, [p for old in weeks for p in (old, replace(old, asset="fct_orders", row_count=5))])
    workspace.put_days(DAY)
    result = workspace.materialize(DAY)
    assert result.success
    assert failed(result) == {("raw_orders", "usual", DAY)}
    evaluation = judged(result, "raw_orders", "usual")[DAY]
    assert "60 to 140 rows, found 5 rows" in text(evaluation, "volume") and evaluation.severity.value == "ERROR"


def test_more_nulls_than_the_contract_allows_warn(workspace: Workspace) -> None:
    workspace.put_days(DAY, WEEK[2])
    workspace.sql_source(f"update orders set customer_id = null where order_id like '{DAY}%'")
    result = workspace.materialize(DAY, WEEK[2])
    assert result.success
    assert failed(result) == {("stg_orders", "usual", DAY), ("fct_orders", "usual", DAY)}
    assert "customer_id 100.00%" in text(judged(result, "fct_orders", "usual")[DAY], "nulls")


def test_more_rejected_rows_than_the_bound_warn(workspace: Workspace) -> None:
    workspace.put_days(DAY, WEEK[2])
    workspace.sql_source(f"update orders set updated_at = 'never' where order_id = '{DAY}-2'")
    result = workspace.materialize(DAY, WEEK[2])
    assert result.success
    assert failed(result) == {("stg_orders", "usual", DAY)}
    assert "found 20.00%, 1 of 5 rows" in text(judged(result, "stg_orders", "usual")[DAY], "rejected")


def test_a_green_interval_that_needed_too_many_attempts_is_reported(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORDERS_ATTEMPTS", "1")
    settings.cache_clear()
    workspace.put_days(DAY)
    capture, asked = OrdersSource.capture, []

    def flaky(self: OrdersSource, interval: str, *rest: object) -> object:
        asked.append(interval)
        if len(asked) == 1:
            raise SourceUnavailable("The source hung up.")
        return capture(self, interval, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(OrdersSource, "capture", flaky)
    monkeypatch.setattr(SourceUnavailable, "retryable", True)
    result = workspace.materialize(DAY)
    assert result.success
    assert failed(result) == {("raw_orders", "usual", DAY)}
    assert text(judged(result, "raw_orders", "usual")[DAY], "attempts").startswith("at most 1 attempts, found 2")


def test_an_interval_whose_input_was_replaced_by_other_content_has_drifted(published: Workspace) -> None:
    assert published.materialize(DAY, assets=("raw_orders",)).success
    assert not failed(check(published, DAY))
    published.sql_source(f"update orders set gross_amount = '20.00' where order_id = '{DAY}-2'")
    assert published.materialize(DAY, assets=("raw_orders",)).success
    result = check(published, DAY)
    assert failed(result) == {("stg_orders", "usual", DAY)}
    drifted = judged(result, "stg_orders", "usual")[DAY]
    assert f"raw_orders {DAY}" in text(drifted, "drift") and "1 replaced since" in text(drifted, "drift")


def test_a_source_that_moved_since_it_was_landed_warns_and_says_by_how_much(published: Workspace) -> None:
    published.sql_source(f"update orders set gross_amount = '20.00' where order_id = '{DAY}-2'")
    result = check(published, WEEK[0], WEEK[2], assets=("raw_orders",))
    assert failed(result) == {("raw_orders", "usual", DAY)}
    assert "gross EUR +10.00" in text(judged(result, "raw_orders", "usual")[DAY], "source")


def test_a_source_that_does_not_answer_is_not_taken_for_one_that_agrees(published: Workspace) -> None:
    (published.home / "source.db").rename(published.home / "elsewhere.db")
    assert failed(check(published, DAY, assets=("raw_orders",))) == {("raw_orders", "usual", DAY)}
