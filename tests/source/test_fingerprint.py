import sqlite3
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orders_platform.source.errors import SourceError
from orders_platform.source.fingerprint import Fingerprint, fingerprint_of_landed
from orders_platform.source.reader import Reader
from orders_platform.source.sample import sample_rows

Day = tuple[str, datetime, datetime]
Source = Callable[..., Reader]


def landed(reader: Reader, day: Day, folder: Path) -> Fingerprint:
    file = folder / "landed.parquet"
    pq.write_table(pa.Table.from_batches(reader.capture(*day)), file)
    with duckdb.connect() as connection:
        return fingerprint_of_landed(connection, [str(file)])


def test_the_source_and_what_was_landed_from_it_have_one_fingerprint(source: Source, day: Day, tmp_path: Path) -> None:
    reader = source(sample_rows())
    found = reader.fingerprint(*day)
    assert found == landed(reader, day, tmp_path)
    assert found.rows == sum(part.num_rows for part in reader.capture(*day))
    assert [currency for currency, *_ in found.amounts] == ["EUR", "GBP", "USD"]


def test_sums_are_exact_and_currencies_are_never_added(source: Source, order: Callable[..., Any], day: Day) -> None:
    amounts = ["0.10", "0.20", "12345678901234567.89", "12,50", "n/a", None, 5, -1]
    rows = [order(gross_amount=amount, discount_amount="0.01") for amount in amounts]
    found = source([*rows, order(currency="EUR", gross_amount="0.30"), order(currency=None)]).fingerprint(*day)
    assert found.amounts == (
        ("", Decimal("10.00"), Decimal(0)),
        ("EUR", Decimal("0.30"), Decimal(0)),
        ("GBP", Decimal("12345678901234572.19"), Decimal("0.08")),
    )


def test_sums_longer_than_28_digits_are_exact(source: Source, order: Callable[..., Any], day: Day) -> None:
    long = Decimal("12345678901234567890123456789.01")
    found = source([order(gross_amount=str(long)), order(gross_amount="0.02")]).fingerprint(*day)
    assert found.amounts[0][1] == Decimal("12345678901234567890123456789.03")
    assert found.moved(Fingerprint(2, found.last_updated_at, (("GBP", long, Decimal(0)),))) == "gross GBP +0.02"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("update orders set gross_amount = '10.01' where order_id = '1'", "gross GBP +0.01"),
        ("update orders set discount_amount = '1.00' where order_id = '1'", "discount GBP +1.00"),
        ("update orders set currency = 'EUR' where order_id = '1'", "gross EUR +10.00"),
        ("delete from orders where order_id = '1'", "rows -1"),
        ("update orders set updated_at = '2026-01-07 09:00:00' where order_id = '1'", "→ 2026-01-07 09:00:00"),
    ],
)
def test_a_source_that_moved_says_by_how_much(
    source: Source, order: Callable[..., Any], day: Day, change: str, says: str
) -> None:
    reader = source([order(order_id="1"), order(order_id="2")])
    before = reader.fingerprint(*day)
    assert reader.fingerprint(*day).moved(before) == ""
    with sqlite3.connect(reader.url.removeprefix("sqlite:///")) as connection:
        connection.execute(change)
    connection.close()
    assert says in reader.fingerprint(*day).moved(before)


def test_an_empty_window_and_no_file_are_alike(source: Source, day: Day) -> None:
    with duckdb.connect() as connection:
        assert source([]).fingerprint(*day) == fingerprint_of_landed(connection, []) == Fingerprint(0, None, ())


def test_a_query_without_the_columns_is_refused(source: Source, day: Day) -> None:
    query = "select order_id from orders where ordered_at between :start and :end"
    with pytest.raises(SourceError, match="updated_at"):
        source([], query=query).fingerprint(*day)
