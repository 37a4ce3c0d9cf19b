"""The committed sample. Belongs here: four weeks of orders with the mess real sources have, the same on every machine.

Not here: sources of any size (generate.py), writing to a database (fill.py).
"""

import csv
import io
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random

from orders_platform.errors import OrdersError
from orders_platform.settings import PROJECT
from orders_platform.source.render import COLUMNS

SAMPLE = PROJECT / "data" / "sample" / "orders.csv"
SAMPLE_START = date(2026, 1, 5)
SAMPLE_DAYS = 28
COUNTRIES = (("GB", "GBP"), ("DE", "EUR"), ("FR", "EUR"), ("ES", "EUR"), ("IE", "EUR"), ("US", "USD"), ("SE", "SEK"))
STATUSES = ("placed", "paid", "shipped", "delivered", "cancelled", "refunded")

Row = tuple[str | None, ...]

_WEEK_SHAPE = (1.00, 0.95, 0.98, 1.05, 1.20, 0.75, 0.70)
_COUNTRY_SHARES = (38, 60, 72, 80, 86, 96, 100)
_STATUS_SHARES = (6, 22, 50, 88, 95, 100)
_LATER_STATUS = {"placed": "paid", "paid": "shipped", "shipped": "delivered", "delivered": "refunded"}
_SEED = 20260105


class _Draw:
    """Choices made from Random.random alone: the one method whose sequence Python promises to keep."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random  # noqa: S311

    def chance(self, share: float) -> bool:
        return self._random() < share

    def between(self, low: int, high: int) -> int:
        return low + int(self._random() * (high - low + 1))

    def weighted(self, shares: tuple[int, ...]) -> int:
        drawn = self._random() * 100
        return next(position for position, share in enumerate(shares) if drawn < share)


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def _order(draw: _Draw, number: int, ordered_at: datetime) -> dict[str, str | None]:
    country, currency = COUNTRIES[draw.weighted(_COUNTRY_SHARES)]
    lines = [draw.between(1, 3) * (draw.between(3, 90) * 100 + 99) for _ in range(draw.between(1, 4))]
    gross = sum(lines) * (10 if currency == "SEK" else 1)
    discount = (gross * (5, 10, 15, 20)[draw.between(0, 3)] + 50) // 100 if draw.chance(0.15) else 0
    return {
        "order_id": f"ORD-{number:06d}",
        "customer_id": None if draw.chance(0.08) else f"C-{draw.between(1, 420):04d}",
        "ordered_at": _stamp(ordered_at),
        "updated_at": _stamp(ordered_at + timedelta(seconds=draw.between(60, 3 * 86400))),
        "country": country,
        "currency": currency,
        "status": STATUSES[draw.weighted(_STATUS_SHARES)],
        "gross_amount": _money(gross),
        "discount_amount": _money(discount),
    }


def _later(draw: _Draw, order: dict[str, str | None]) -> dict[str, str | None]:
    """The same order, changed afterwards."""
    changed = datetime.fromisoformat(order["updated_at"] or "") + timedelta(seconds=draw.between(600, 5 * 86400))
    later = {**order, "updated_at": _stamp(changed), "status": _LATER_STATUS.get(order["status"] or "", order["status"])}
    if draw.chance(0.4):
        whole, cents = (order["gross_amount"] or "0.00").split(".")
        later["gross_amount"] = _money(int(whole) * 100 + int(cents) + draw.between(1, 40) * 100)
    return later


def _seconds_of_day(draw: _Draw, position: int) -> int:
    """Shop hours for most; the first two orders of a day stand right after midnight, the next two right before it."""
    if position < 2:
        return draw.between(0, 1200)
    if position < 4:
        return 86399 - draw.between(0, 1200)
    return min(draw.between(6 * 3600, 23 * 3600), draw.between(8 * 3600, 23 * 3600))


# (day of the sample, position in that day) -> what a broken exporter left there.
_DAMAGE: dict[tuple[int, int], dict[str, str | None]] = {
    (0, 21): {"gross_amount": "12,50"},
    (1, 17): {"order_id": None},
    (2, 9): {"status": "on_hold"},
    (3, 30): {"gross_amount": "n/a"},
    (4, 12): {"ordered_at": "2026-01-09 25:61:00"},
    (5, 14): {"gross_amount": "-19.99", "discount_amount": "0.00"},
    (7, 25): {"discount_amount": "ten percent"},
    (8, 11): {"ordered_at": None},
    (9, 33): {"currency": None},
    (10, 19): {"status": "disputed", "gross_amount": "n/a"},
    (11, 40): {"ordered_at": "yesterday"},
    (13, 8): {"order_id": None, "customer_id": None},
    (14, 27): {"updated_at": "2026-13-01 00:00:00"},
    (15, 16): {"gross_amount": "£42.00"},
    (17, 22): {"ordered_at": "2026-01-22 about noon"},
    (18, 29): {"status": None},
    (19, 13): {"gross_amount": "-250.00", "discount_amount": "0.00", "status": "refunded"},
    (21, 31): {"gross_amount": None},
    (22, 20): {"ordered_at": "unknown"},
    (24, 18): {"order_id": None},
    (25, 35): {"status": "on_hold"},
    (27, 10): {"gross_amount": "12.5O"},
}
# Orders that no day of the sample's four weeks selects: dated before and after them.
_OUTSIDE = (datetime(2025, 12, 30, 11, 15, tzinfo=UTC), datetime(2026, 2, 3, 9, 0, tzinfo=UTC))


def sample_rows() -> list[Row]:
    """Four ISO weeks from 2026-01-05, about 60 orders a day with the shape of a week, and two orders outside them.

    **Grain**: one row as a source would hand it over, in the order of COLUMNS; amounts in the row's currency, times in UTC.
    The mess: exact duplicates, later versions of an order, guests without a customer, unreadable amounts and dates, dates
    that no interval selects, unknown statuses, amounts below zero, missing order ids.
    """
    draw = _Draw(_SEED)
    orders: list[dict[str, str | None]] = []
    number = 100_000
    for day in range(SAMPLE_DAYS):
        first = datetime(SAMPLE_START.year, SAMPLE_START.month, SAMPLE_START.day, tzinfo=UTC) + timedelta(days=day)
        count = int(62 * _WEEK_SHAPE[day % 7]) + draw.between(-4, 4)
        seconds = sorted(_seconds_of_day(draw, position) for position in range(count))
        for position, second in enumerate(seconds):
            number += 1
            order = _order(draw, number, first + timedelta(seconds=second))
            damage = _DAMAGE.get((day, position))
            orders.append({**order, **(damage or {})})
            if damage is None and draw.chance(0.05):
                orders.append(_later(draw, order))
            if draw.chance(0.015):
                orders.append(dict(orders[-1]))
    for moment in _OUTSIDE:
        number += 1
        orders.append(_order(draw, number, moment))
    return [tuple(order[column] for column in COLUMNS) for order in orders]


def sample_csv() -> bytes:
    """The sample as CSV: header, UTF-8, line feeds; an empty field is a null."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(sample_rows())
    return text.getvalue().encode()


def read_sample(path: Path = SAMPLE) -> list[Row]:
    """Rows of a sample file, in the order of COLUMNS; an empty field is a null.

    Raises:
        OrdersError: No such file, or other columns.
    """
    if not path.is_file():
        raise OrdersError(f"There is no sample {path}.", "Write it with `orders source sample`.")
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        if tuple(next(reader, ())) != COLUMNS:
            raise OrdersError(
                f"The sample {path} does not have the columns {', '.join(COLUMNS)}.", "Use `orders source sample`."
            )
        return [tuple(value or None for value in row) for row in reader]
