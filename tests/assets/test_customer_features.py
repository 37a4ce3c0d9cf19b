"""customer_features: exact values over the trailing 28 days, and nothing from the future."""

from decimal import Decimal

from tests.conftest import Workspace

UPSTREAM = ("raw_orders", "stg_orders", "fct_orders")


def order(
    key: str, day: str, customer: str | None, amount: str, country: str = "DE", currency: str = "EUR", status: str = "paid"
):
    return (key, customer, f"{day} 10:00:00", f"{day} 10:00:00", country, currency, status, amount, "0.00")


def test_features_are_per_customer_and_currency_and_rounded_exactly(workspace: Workspace) -> None:
    workspace.put(
        order("1", "2026-01-05", "ann", "10.00"),
        order("2", "2026-01-05", "ann", "10.01"),
        order("3", "2026-01-07", "ann", "10.00", country="FR"),
        order("4", "2026-01-07", "ann", "99.00", status="cancelled"),
        order("5", "2026-01-07", "ann", "7.00", country="GB", currency="GBP"),
        order("6", "2026-01-07", None, "1.00"),
        order("7", "2026-01-06", "bob", "5.00", status="placed"),
        order("8", "2026-01-08", None, "1.00"),
        order("9", "2026-01-09", None, "1.00"),
    )
    assert workspace.materialize("2026-01-05", "2026-01-09", (*UPSTREAM, "customer_features")).success
    rows = workspace.query(
        "select * exclude (feature_date, produced_by) from published.customer_features "
        "where feature_date = '2026-01-09' order by all"
    )
    assert rows == [
        ("ann", "EUR", 4, 3, 1, Decimal("30.01"), Decimal("10.00"), Decimal("0.2500"), 2, 2),
        ("ann", "GBP", 1, 1, 0, Decimal("7.00"), Decimal("7.00"), Decimal("0.0000"), 2, 1),
        ("bob", "EUR", 1, 0, 0, Decimal("0.00"), None, Decimal("0.0000"), 3, 1),
    ]
