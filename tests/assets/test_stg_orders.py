"""stg_orders: every landed row is staged, rejected with every reason it has, or counted as superseded; none is bent."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from orders_platform.source.sample import read_sample
from tests.conftest import Workspace

DAY = "2026-01-05"
GOOD = {
    "order_id": "A1",
    "customer_id": "c",
    "ordered_at": f"{DAY} 10:00:00",
    "updated_at": f"{DAY} 11:00:00",
    "country": "GB",
    "currency": "GBP",
    "status": "paid",
    "gross_amount": "10.00",
    "discount_amount": "0.50",
}


def row(**changes: Any) -> tuple[Any, ...]:
    return tuple({**GOOD, **changes}.values())


def staged(workspace: Workspace, *rows: tuple[Any, ...]) -> None:
    workspace.put(*rows, replace=True)
    assert workspace.materialize(DAY, assets=("raw_orders", "stg_orders")).success


def verify_nothing_lost(workspace: Workspace, landed: int) -> None:
    [(kept, superseded)] = workspace.query("select count(*), coalesce(sum(superseded_rows), 0) from published.stg_orders")
    [(rejected,)] = workspace.query("select count(*) from published.stg_orders_rejected")
    assert kept + superseded + rejected == landed


TIMES = {
    f"{DAY} 10:00:00": "10:00:00",
    f"{DAY}T10:00:00": "10:00:00",
    f"{DAY}T10:00:00Z": "10:00:00",
    f"{DAY} 10:00:00+02:00": "08:00:00",
    f"{DAY} 10:00:00+02": "08:00:00",
    f"{DAY}T10:00:00-0500": "15:00:00",
    f"{DAY} 10:00:00.123456": "10:00:00.123456",
    f"{DAY} 10:00:00.123456+01:00": "09:00:00.123456",
    f"{DAY} 10:00:00.5": "10:00:00.500000",
    f"{DAY} 10:00": "10:00:00",
}


def test_an_offset_is_heeded_and_no_offset_is_utc(workspace: Workspace) -> None:
    staged(workspace, *(row(order_id=text, updated_at=text) for text in TIMES))
    found = dict(workspace.query("select order_id, updated_at from published.stg_orders"))
    assert found == {text: datetime.fromisoformat(f"{DAY} {utc}") for text, utc in TIMES.items()}


def test_a_time_that_cannot_be_read_is_refused_as_received(workspace: Workspace) -> None:
    texts = ("infinity", "-infinity", "yesterday", "", " ", "2026-13-01 00:00:00", f"{DAY} 25:00:00", f"{DAY} 10:00:00 o'clock")
    staged(workspace, *(row(updated_at=text) for text in texts))
    found = workspace.query("select updated_at, reasons from published.stg_orders_rejected")
    assert sorted(found) == sorted((text, ["updated_at is missing or unreadable"]) for text in texts)


AMOUNTS = {
    "10": "10.00",
    "10.1": "10.10",
    "10.10": "10.10",
    "10.1000": "10.10",
    " 10.10 ": "10.10",
    "1e3": "1000.00",
    "+5": "5.00",
    "0": "0.00",
    "9999999999999999.99": "9999999999999999.99",
}
BENT = {
    "0.125": "gross_amount has more than two decimals",
    "0.001": "gross_amount has more than two decimals",
    "5e-3": "gross_amount has more than two decimals",
    "125E-3": "gross_amount has more than two decimals",
    "-0.01": "gross_amount is below zero",
    "12,50": "gross_amount is missing or unreadable",
    "£12": "gross_amount is missing or unreadable",
    "nan": "gross_amount is missing or unreadable",
    "": "gross_amount is missing or unreadable",
    None: "gross_amount is missing or unreadable",
    "12345678901234567.89": "gross_amount is missing or unreadable",
}


def test_an_amount_keeps_every_digit_or_is_refused_as_received(workspace: Workspace) -> None:
    staged(workspace, *(row(order_id=text or "none", gross_amount=text) for text in (*AMOUNTS, *BENT)))
    found = dict(workspace.query("select order_id, gross_amount from published.stg_orders"))
    assert found == {text.strip(): Decimal(amount) for text, amount in AMOUNTS.items()}
    refused = workspace.query("select gross_amount, reasons from published.stg_orders_rejected")
    assert dict(refused) == {text: [reason] for text, reason in BENT.items()}
    verify_nothing_lost(workspace, len(AMOUNTS) + len(BENT))


def test_a_row_is_refused_with_every_reason_it_has(workspace: Workspace) -> None:
    nothing = dict.fromkeys(GOOD) | {"ordered_at": f"{DAY} 10:00:00", "status": "lost", "discount_amount": "-1"}
    staged(workspace, tuple(nothing.values()))
    assert workspace.query("select reasons from published.stg_orders_rejected") == [
        (
            [
                "order_id is missing",
                "updated_at is missing or unreadable",
                "country is missing",
                "currency is not a code of three letters",
                "status is missing or unknown",
                "gross_amount is missing or unreadable",
                "discount_amount is below zero",
            ],
        )
    ]


def test_spaces_of_any_script_around_an_id_are_not_part_of_it(workspace: Workspace) -> None:
    ids = {
        " A1": "A1",
        "A2 ": "A2",
        "\u00a0A3\u2003": "A3",
        "é 4": "é 4",
        " é5": "é5",
        "A 6": "A 6",
        "\tA7": "\tA7",
        "ß8": "ß8",
    }
    staged(workspace, *(row(order_id=text, customer_id=text) for text in ids), row(order_id=" \u00a0", customer_id=" "))
    found = workspace.query("select order_id, customer_id from published.stg_orders order by 1")
    assert found == sorted((kept, kept) for kept in ids.values())
    assert workspace.query("select reasons, order_id from published.stg_orders_rejected") == [
        (["order_id is missing"], " \u00a0")
    ]
    verify_nothing_lost(workspace, len(ids) + 1)


def test_the_latest_version_stays_and_the_others_are_counted(workspace: Workspace) -> None:
    versions = [
        row(),
        row(),
        row(updated_at=f"{DAY} 12:00:00", status="shipped"),
        row(updated_at=f"{DAY} 09:00:00", status="placed"),
    ]
    staged(workspace, *versions, row(order_id="A2"))
    assert workspace.query("select order_id, status, superseded_rows from published.stg_orders order by 1") == [
        ("A1", "shipped", 3),
        ("A2", "paid", 0),
    ]
    verify_nothing_lost(workspace, 5)


def test_versions_of_the_same_instant_are_told_apart_by_content_and_never_by_order(workspace: Workspace) -> None:
    tied = [
        row(status=status, gross_amount=gross, customer_id=who)
        for status in ("paid", "placed")
        for gross in ("9", "10")
        for who in ("c", None)
    ]
    staged(workspace, *tied)
    first = workspace.digests()["stg_orders", DAY]
    for shuffled in (tied[::-1], tied[3:] + tied[:3], tied[1::2] + tied[::2]):
        staged(workspace, *shuffled)
        assert workspace.digests()["stg_orders", DAY] == first
    assert workspace.query("select status, gross_amount, superseded_rows from published.stg_orders") == [("paid", 10, 7)]


def test_a_week_of_the_sample_with_all_its_mess_loses_no_row_and_no_penny(workspace: Workspace) -> None:
    workspace.put(*read_sample(), replace=True)
    assert workspace.materialize(
        "2026-01-05", "2026-02-01", assets=("raw_orders", "stg_orders", "fct_orders", "revenue_daily")
    ).success
    [(landed,)] = workspace.query("select sum(row_count) from platform.current_publications where asset = 'raw_orders'")
    verify_nothing_lost(workspace, landed)
    [(gross,)] = workspace.query("select sum(gross_amount) from published.stg_orders")
    assert workspace.query("select sum(gross_amount), sum(net_amount + discount_amount) from published.fct_orders") == [
        (gross, gross)
    ]
    by_currency = "select currency, sum({}) from published.{} where {} group by 1 order by 1"
    assert workspace.query(by_currency.format("revenue", "revenue_daily", "true")) == workspace.query(
        by_currency.format("net_amount", "fct_orders", "is_revenue")
    )
