"""Balances and features over clock changes, a leap day, month and year ends, against a slow computation in pandas.

Each range is inserted in portions of some days, as one of millions of orders is.
"""

import json
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pandas as pd
import pytest

from tests.assets.calendars import OtherCalendar

FACTS = ("raw_orders", "stg_orders", "fct_orders", "revenue_daily")
READERS = ("revenue_to_date", "customer_features")
CENT, SHARE = Decimal("0.01"), Decimal("0.0001")
LEAP = ("Europe/London", date(2024, 2, 19), date(2024, 4, 7))  # 29 February; the clocks go forward on 31 March
NEW_YEAR = ("America/New_York", date(2025, 10, 27), date(2026, 1, 11))  # the clocks go back on 2 November; a year ends


@pytest.fixture(
    scope="module",
    params=[LEAP, pytest.param(NEW_YEAR, marks=pytest.mark.proof)],
    ids=["leap-day-and-spring", "autumn-and-year-end"],
)
def calendar(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OtherCalendar]:
    timezone, start, end = request.param
    closed = (start + timedelta(30), start + timedelta(31))
    made = OtherCalendar(tmp_path_factory.mktemp("calendar"), start, end, timezone, closed)
    made.fill(7, orders=700, customers=25)
    made.materialize((str(start), str(end), (*FACTS, *READERS)))
    yield made


def expected_features(source: pd.DataFrame, day: date) -> set[tuple[object, ...]]:
    window = source[(source.day >= day - timedelta(27)) & (source.day <= day) & source.customer_id.notna()]
    found = set()
    for (customer, currency), rows in window.groupby(["customer_id", "currency"]):
        paid = rows[rows.is_revenue]
        revenue = sum(paid.net, Decimal("0.00"))
        cancelled = int((rows.status == "cancelled").sum())
        average = (revenue / len(paid)).quantize(CENT, ROUND_HALF_UP) if len(paid) else None
        share = (Decimal(cancelled) / len(rows)).quantize(SHARE, ROUND_HALF_UP)
        recency = (day - max(rows.day)).days
        found.add(
            (customer, currency, len(rows), len(paid), cancelled, revenue, average, share, recency, rows.country.nunique())
        )
    return found


def test_features_equal_a_slow_independent_computation_on_every_day(calendar: OtherCalendar) -> None:
    source = calendar.source()
    found: dict[date, set[tuple[object, ...]]] = {day: set() for day in calendar.days}
    for day, *row in calendar.query("select * exclude (produced_by) from published.customer_features"):
        found[day].add(tuple(row))
    wrong = [day for day in calendar.days if found[day] != expected_features(source, day)]
    assert wrong == []
    assert sum(map(len, found.values())) > 1000


def test_balances_equal_a_slow_independent_computation_on_every_day(calendar: OtherCalendar) -> None:
    source = calendar.source()
    found: dict[date, set[tuple[object, ...]]] = {day: set() for day in calendar.days}
    for day, *row in calendar.query("select * exclude (produced_by) from published.revenue_to_date"):
        found[day].add(tuple(row))
    for day in calendar.days:
        year = source[(source.day >= date(day.year, 1, 1)) & (source.day <= day)]
        expected = {
            (country, currency, sum(rows[rows.is_revenue].net, Decimal("0.00")))
            for (country, currency), rows in year.groupby(["country", "currency"])
        }
        assert found[day] == expected, day


def test_single_days_equal_the_range(calendar: OtherCalendar) -> None:
    """The first day, the day of the clock change, a leap day or new year's eve and day, an empty day, the last."""
    before = {asset: calendar.digests(asset) for asset in READERS}
    marks = [calendar.start, date(2024, 2, 29), date(2024, 3, 31), date(2025, 11, 2), date(2025, 12, 31), date(2026, 1, 1)]
    days = sorted({day for day in (*marks, calendar.start + timedelta(31), calendar.end) if day in calendar.days})
    calendar.materialize(*((str(day), str(day), READERS) for day in days))
    assert {asset: calendar.digests(asset) for asset in READERS} == before
    rebuilt = calendar.query(
        "select distinct \"interval\" from platform.publications where asset = 'customer_features' and revision = 2"
    )
    assert len(rebuilt) == len(days)


def test_a_correction_forty_days_ago_moves_28_feature_days_and_the_balances_of_that_year(calendar: OtherCalendar) -> None:
    first, last, corrected = str(calendar.start), str(calendar.end), calendar.end - timedelta(40)
    file = calendar.home / "train.parquet"
    written = calendar.run("orders", "features", "training-set", "--from", first, "--to", last, "--out", str(file))
    assert written.returncode == 0, written.stderr
    unmoved = calendar.run("orders", "features", "verify", str(file))
    assert unmoved.returncode == 0, unmoved.stderr
    before = {asset: calendar.digests(asset) for asset in READERS}
    ids = calendar.source().query("is_revenue and customer_id.notna()").pipe(lambda f: f[f.day == corrected]).order_id
    calendar.source_sql("update orders set gross_amount = '1234.56' where order_id = ?", ids.iloc[0])

    calendar.materialize((str(corrected), str(corrected), FACTS))
    stale = json.loads(calendar.run("orders", "features", "verify", str(file), "--json").stdout)
    moved = [str(corrected + timedelta(n)) for n in range(28)]
    assert [c["interval"] for c in stale if c["state"] == "stale"] == moved
    assert {c["cause"] for c in stale if c["state"] == "stale"} == {f"fct_orders {corrected} was replaced"}

    calendar.materialize((first, last, READERS))
    after = {asset: calendar.digests(asset) for asset in READERS}
    assert [d for d, digest in sorted(after["customer_features"].items()) if digest != before["customer_features"][d]] == moved
    of_that_year = [str(d) for d in calendar.days if corrected <= d and d.year == corrected.year]
    assert [
        d for d, digest in sorted(after["revenue_to_date"].items()) if digest != before["revenue_to_date"][d]
    ] == of_that_year
    verdict = calendar.run("orders", "features", "verify", str(file), "--json")
    assert verdict.returncode == 1
    changed = [c for c in json.loads(verdict.stdout) if c["state"] != "unchanged"]
    assert [(c["interval"], c["state"], c["added"], c["removed"]) for c in changed] == [(d, "changed", 1, 1) for d in moved]


def test_the_future_is_never_read(calendar: OtherCalendar) -> None:
    middle = calendar.start + timedelta(35)
    before = calendar.digests("customer_features")
    calendar.source_sql(
        "update orders set gross_amount = '777.77', status = 'paid' where ordered_at > ?", f"{middle + timedelta(2)}"
    )
    first, last = str(calendar.start), str(calendar.end)
    calendar.materialize((str(middle + timedelta(1)), last, FACTS), (first, last, ("customer_features",)))
    after = calendar.digests("customer_features")
    assert {d for d in before if d <= str(middle) and after[d] != before[d]} == set()
    assert all(after[d] != before[d] for d in before if d > str(middle + timedelta(4)))


def test_two_training_sets_of_equal_publications_are_the_same_bytes(calendar: OtherCalendar, tmp_path: Path) -> None:
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    days = ("--from", str(calendar.start), "--to", str(calendar.start + timedelta(9)))
    for file in files:
        assert calendar.run("orders", "features", "training-set", *days, "--out", str(file)).returncode == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    again = calendar.run("orders", "features", "training-set", *days, "--out", str(files[0]))
    assert (again.returncode, "never replaced" in again.stderr) == (1, True)
    files[0].write_bytes(files[0].read_bytes() + b"x")
    tampered = calendar.run("orders", "features", "verify", str(files[0]))
    assert (tampered.returncode, "not those its manifest records" in tampered.stderr) == (1, True)
