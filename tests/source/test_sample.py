from collections import Counter
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation

from orders_platform.source.sample import (
    COUNTRIES,
    SAMPLE,
    SAMPLE_DAYS,
    SAMPLE_START,
    STATUSES,
    read_sample,
    sample_csv,
    sample_rows,
)

ROWS = sample_rows()
DAYS = [SAMPLE_START + timedelta(days=n) for n in range(SAMPLE_DAYS)]


def day_of(text: str | None) -> date | None:
    try:
        return datetime.fromisoformat(text or "").date()
    except ValueError:
        return None


def amount(text: str | None) -> Decimal | None:
    try:
        return Decimal(text or "")
    except InvalidOperation:
        return None


def test_the_committed_sample_is_what_the_generator_makes_byte_for_byte() -> None:
    assert SAMPLE.read_bytes() == sample_csv()


def test_the_file_reads_back_as_the_rows_with_their_nulls() -> None:
    assert read_sample() == ROWS


def test_every_day_of_four_weeks_has_orders_and_week_ends_have_fewer() -> None:
    counts = Counter(day_of(row[2]) for row in ROWS)
    assert set(DAYS) < set(counts)
    for week in range(4):
        days = [counts[day] for day in DAYS[week * 7 : week * 7 + 7]]
        assert max(days[5:]) < min(days[:5])
    assert 55 < len(ROWS) / SAMPLE_DAYS < 70


def test_the_mess_of_real_sources_is_there() -> None:
    duplicates = len(ROWS) - len(set(ROWS))
    versions = Counter((row[0], row[2]) for row in set(ROWS) if row[0])
    assert duplicates >= 20
    assert sum(count > 1 for count in versions.values()) >= 50
    assert sum(row[1] is None for row in ROWS) >= 80
    assert sum(row[0] is None for row in ROWS) == 3
    assert {row[6] for row in ROWS} == {*STATUSES, "on_hold", "disputed", None}
    assert {"12,50", "n/a", "12.5O", "£42.00", None} <= {row[7] for row in ROWS}
    assert any(found < 0 for row in ROWS if (found := amount(row[7])) is not None)
    assert {(row[4], row[5]) for row in ROWS if row[5]} == set(COUNTRIES)
    assert {row[2] for row in ROWS if day_of(row[2]) is None} == {
        "2026-01-09 25:61:00",
        "2026-01-22 about noon",
        "yesterday",
        "unknown",
        None,
    }


def test_a_later_version_keeps_its_order_and_day_and_changes_afterwards() -> None:
    seen: dict[str | None, tuple[str | None, ...]] = {}
    for row in dict.fromkeys(ROWS):
        if row[0] in seen and row[0] is not None:
            first = seen[row[0]]
            assert row[2] == first[2]
            assert (row[3] or "") > (first[3] or "")
        seen[row[0]] = row


def test_two_orders_a_day_stand_right_after_and_two_right_before_midnight() -> None:
    for day in DAYS:
        times = [row[2][11:] for row in dict.fromkeys(ROWS) if row[2] and day_of(row[2]) == day]
        assert sum(time < "00:21" for time in times) >= 2
        assert sum(time > "23:39" for time in times) >= 2


def test_two_orders_lie_outside_the_four_weeks() -> None:
    outside = sorted(day for row in ROWS if (day := day_of(row[2])) and day not in DAYS)
    assert outside == [date(2025, 12, 30), date(2026, 2, 3)]


def test_a_discount_never_exceeds_its_amount() -> None:
    pairs = [(gross, discount) for row in ROWS if (gross := amount(row[7])) and (discount := amount(row[8])) is not None]
    assert all(0 <= discount <= max(gross, 0) for gross, discount in pairs)
    assert sum(discount > 0 for _, discount in pairs) > 150
