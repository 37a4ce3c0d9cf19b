"""The identity of staging, alone: what it counts of orders landed once and of orders landed several times."""

import duckdb
import pytest

from orders_platform.checks.identities import STAGED

RAW = """
create table raw_orders as from (values
    ('a', 'gbp', '10.00'), (' b ', 'GBP', '20.00'), ('b', 'GBP', '21.00'), ('b', 'GBP', '21.00'), ('c', 'EUR', 'n/a'),
    ('d', 'EUR', '5'), (null, 'EUR', '1.00')
) t(order_id, currency, gross_amount), (values (date '2026-01-05')) d(order_date);
create table stg_orders_rejected as select * from raw_orders where order_id is null or gross_amount = 'n/a';
create table stg_orders as from (values ('a', 'GBP', 10.00, 0), ('b', 'GBP', 21.00, 2), ('d', 'EUR', 5.00, 0)
) t(order_id, currency, gross_amount, superseded_rows), (values (date '2026-01-05')) d(order_date);
"""


def differing(change: str) -> set[str]:
    with duckdb.connect() as con:
        con.execute(RAW)
        con.execute(change)
        rows = con.execute(f"select item, left_value, right_value from ({STAGED.sql})").fetchall()
    assert len(rows) >= 5
    return {item for item, left, right in rows if left != right}


def test_what_was_staged_of_what_was_landed_is_equal() -> None:
    assert differing("select 1") == set()


@pytest.mark.parametrize(
    ("change", "items"),
    [
        ("update stg_orders set gross_amount = 20.50 where order_id = 'b'", {"orders landed several times GBP"}),
        ("insert into stg_orders values ('x', 'GBP', 1.00, 1, '2026-01-05')", {"orders landed several times GBP", "rows"}),
        (
            # The count of rows still fits: one of two staged rows of one order is wrong.
            "update stg_orders set superseded_rows = 1 where order_id = 'b'; "
            "insert into stg_orders values ('b', 'GBP', 9.99, 0, '2026-01-05')",
            {"orders landed once GBP", "hash GBP"},
        ),
        (
            "insert into raw_orders values ('b', 'GBP', '21.00', '2026-01-05'); "
            "update stg_orders set superseded_rows = 1 where order_id = 'b'; "
            "insert into stg_orders values ('b', 'GBP', 9.99, 1, '2026-01-05')",
            {"orders landed several times GBP"},
        ),
        ("update stg_orders set currency = 'EUR' where order_id = 'b'", {"orders landed several times EUR"}),
        ("update stg_orders set order_id = 'e' where order_id = 'd'", {"hash EUR"}),
        ("update stg_orders set gross_amount = gross_amount + 1 where order_id = 'a'", {"orders landed once GBP", "hash GBP"}),
        ("delete from stg_orders_rejected where gross_amount = 'n/a'", {"rows", "hash EUR"}),
        ("delete from stg_orders where order_id = 'd'", {"rows", "orders landed once EUR", "hash EUR"}),
    ],
)
def test_whatever_was_changed_by_hand_is_seen(change: str, items: set[str]) -> None:
    names = {
        "rows": "landed rows = staged + rejected + superseded",
        "orders landed several times GBP": "orders landed several times GBP",
        "orders landed several times EUR": "orders landed several times EUR",
        **{f"orders landed once {c}": f"gross_amount of orders landed once {c}" for c in ("GBP", "EUR")},
        **{f"hash {c}": f"order_id with gross_amount {c} (hash)" for c in ("GBP", "EUR")},
    }
    assert differing(change) == {names[item] for item in items}
