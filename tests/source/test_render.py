import uuid
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orders_platform.source.render import batches, render

TOKYO = timezone(timedelta(hours=9))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("as is ", "as is "),
        ("", ""),
        (True, "true"),
        (False, "false"),
        (12345678901234567890, "12345678901234567890"),
        (Decimal("12345678901234567.89"), "12345678901234567.89"),
        (Decimal("0.10"), "0.10"),
        (Decimal("1E+3"), "1000"),
        (Decimal("1E-10"), "0.0000000001"),
        (0.1, "0.1"),
        (1e22, "1e+22"),
        (datetime(2026, 1, 5, 10, 0), "2026-01-05 10:00:00"),
        (datetime(2026, 1, 5, 10, 0, 0, 25), "2026-01-05 10:00:00.000025"),
        (datetime(2026, 1, 5, 8, 30, tzinfo=TOKYO), "2026-01-04 23:30:00"),
        (datetime(2026, 1, 5, tzinfo=UTC), "2026-01-05 00:00:00"),
        (datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5))), "9999-12-31 23:00:00"),
        (date(2026, 1, 5), "2026-01-05"),
        ("grün".encode(), "grün"),
        (b"\xff\x00", "ff00"),
        (memoryview(b"ab"), "ab"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_each_kind_of_value_has_one_text(value: Any, text: str | None) -> None:
    assert render(value) == text


@pytest.mark.parametrize("other", [None, "x", 1, Decimal("1.0"), b"x", b"\xff", datetime(2026, 1, 5)])
def test_a_value_is_written_alike_whatever_stands_beside_it(other: Any) -> None:
    values = ["text", b"bytes", Decimal("2.50"), None]
    for value in values:
        (found,) = batches([[(value,), (other,)]], [0], ["c"], 10)
        assert found.column(0).to_pylist() == [render(value), render(other)]


def test_pieces_are_joined_into_batches_in_order_and_none_is_lost() -> None:
    pieces = [[(n, str(n)) for n in range(start, min(start + 3, 11))] for start in range(0, 11, 3)]
    found = list(batches(pieces, [1, 0], ["b", "a"], 5))
    assert [part.num_rows for part in found] == [6, 5]
    assert pa.Table.from_batches(found).to_pydict() == {"b": [str(n) for n in range(11)], "a": [str(n) for n in range(11)]}


ZONES = st.sampled_from([None, UTC, TOKYO, *map(ZoneInfo, ("UTC", "Europe/London", "America/New_York"))])
VALUES = st.one_of(
    st.none(),
    st.datetimes(timezones=ZONES, allow_imaginary=True),
    st.datetimes(datetime(2026, 10, 24), datetime(2026, 10, 27), timezones=ZONES),
    st.just(datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=timezone(timedelta(hours=-5)))),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.dates(),
    st.binary(max_size=5),
)


@given(st.lists(VALUES, min_size=1, max_size=8))
def test_a_column_is_written_as_each_of_its_values(values: list[Any]) -> None:
    (found,) = batches([[(value,) for value in values]], [0], ["c"], 100)
    assert found.column(0).to_pylist() == [render(value) for value in values]


@given(st.lists(st.one_of(st.none(), st.datetimes(timezones=ZONES)), min_size=1, max_size=8))
def test_a_column_of_instants_is_written_as_each_of_them(values: list[Any]) -> None:
    (found,) = batches([[(value,) for value in values]], [0], ["c"], 100)
    assert found.column(0).to_pylist() == [render(value) for value in values]
