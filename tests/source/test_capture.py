import sqlite3
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from orders_platform.calendar import Calendar
from orders_platform.source.errors import SourceError, SourceUnavailable
from orders_platform.source.reader import Reader
from orders_platform.source.render import COLUMNS

Day = tuple[str, datetime, datetime]
Source = Callable[..., Reader]
Order = Callable[..., tuple[Any, ...]]


def captured(reader: Reader, day: Day, **values: Any) -> list[dict[str, str | None]]:
    return [row for part in reader.capture(*day, **values) for row in part.to_pylist()]


def file_of(reader: Reader) -> Path:
    return Path(reader.url.removeprefix("sqlite:///"))


def test_every_column_arrives_as_text_in_the_agreed_order(source: Source, order: Order, day: Day) -> None:
    (part,) = source([order(order_id=7, gross_amount=b"1.50", discount_amount=None, status="")]).capture(*day)
    assert tuple(part.schema.names) == COLUMNS
    assert set(part.schema.types) == {pa.string()}
    assert (
        part.to_pylist()[0] | {"order_id": "7", "gross_amount": "1.50", "discount_amount": None, "status": ""}
        == part.to_pylist()[0]
    )


def test_amounts_keep_every_digit(source: Source, order: Order, day: Day) -> None:
    amounts = ["0.10", "0.20", "12345678901234567.89", "12,50", "n/a", "1e3", " 5 ", "-0.00"]
    rows = captured(source([order(gross_amount=amount) for amount in amounts]), day)
    assert [row["gross_amount"] for row in rows] == amounts


def test_midnight_belongs_to_the_day_that_begins(source: Source, order: Order, day: Day) -> None:
    moments = ["2026-01-04 23:59:59", "2026-01-05 00:00:00", "2026-01-05 23:59:59", "2026-01-06 00:00:00"]
    rows = captured(source([order(ordered_at=moment) for moment in moments]), day)
    assert [row["ordered_at"] for row in rows] == moments[1:3]


@pytest.mark.parametrize("zone", ["UTC", "Europe/London", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"])
@pytest.mark.parametrize(
    "change", [date(2026, 3, 29), date(2026, 10, 25), date(2026, 3, 8), date(2026, 11, 1), date(2026, 4, 5)]
)
def test_each_order_is_in_exactly_one_business_day(source: Source, order: Order, zone: str, change: date) -> None:
    calendar = Calendar(date(2026, 1, 5), timezone=zone)
    first = datetime(change.year, change.month, change.day, tzinfo=UTC) - timedelta(days=2)
    moments = [first + timedelta(minutes=15 * n) for n in range(4 * 24 * 4)]
    reader = source([order(ordered_at=f"{moment:%Y-%m-%d %H:%M:%S}") for moment in moments])
    found = {}
    for number in range(-4, 5):
        name = (change + timedelta(days=number)).isoformat()
        for row in captured(reader, (name, *calendar.window(name))):
            moment = datetime.fromisoformat(row["ordered_at"] or "").replace(tzinfo=UTC)
            assert moment not in found
            found[moment] = name
    assert found == {moment: moment.astimezone(ZoneInfo(zone)).date().isoformat() for moment in moments}


def test_an_unreadable_date_inside_the_window_is_captured_for_others_to_reject(source: Source, order: Order, day: Day) -> None:
    dates = ["2026-01-05 25:61:00", "2026-01-05 about noon", "yesterday", "", None, "05/01/2026"]
    rows = captured(source([order(ordered_at=moment) for moment in dates]), day)
    assert [row["ordered_at"] for row in rows] == dates[:2]


def test_a_day_without_orders_has_no_batch(source: Source, day: Day) -> None:
    assert list(source([]).capture(*day)) == []


def test_rows_stream_in_chunks_and_none_is_lost(source: Source, order: Order, day: Day) -> None:
    parts = list(source([order(order_id=n) for n in range(5_003)]).capture(*day, chunk_rows=1_000))
    assert [part.num_rows for part in parts] == [1_000] * 5 + [3]
    assert [value for part in parts for value in part["order_id"].to_pylist()] == [str(n) for n in range(5_003)]


def test_another_schema_needs_one_select_and_no_python(source: Source, order: Order, day: Day) -> None:
    query = """
        with mapped as (select upper('eur') as CURRENCY, '100%' as status, * from
                        (select order_id, customer_id, ordered_at, updated_at, country, gross_amount,
                                0 as discount_amount, 1 as extra
                         from orders))
        select * from mapped where ordered_at >= :start and ordered_at < :end and '12:30' <> ':' ;
    """
    (row,) = captured(source([order()], query=query), day)
    assert (row["currency"], row["status"], row["discount_amount"]) == ("EUR", "100%", "0")


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("select * from shop where ordered_at >= :start and ordered_at < :end", "no such table: shop"),
        (
            "select order_id, customer_id, ordered_at from orders where ordered_at between :start and :end",
            "lacks updated_at, country",
        ),
        ("select *, 1 as country from orders where ordered_at between :start and :end", "country more than once"),
        ("selct * from orders where ordered_at between :start and :end", "syntax error"),
        ("select nope from orders where ordered_at between :start and :end", "no such column: nope"),
        ("select * from orders", "must use :start and :end, and uses none"),
        ("select * from orders where ordered_at >= :start and ordered_at < :stop", "and uses :start, :stop"),
        ("delete from orders where ordered_at >= :start and ordered_at < :end", "readonly"),
        ("select * from orders where ordered_at >= :start; select 1 where 1 < :end", "one statement at a time"),
    ],
)
def test_a_wrong_query_is_a_permanent_error_that_names_the_setting(
    source: Source, order: Order, day: Day, query: str, says: str
) -> None:
    reader = source([order()], query=query)
    with pytest.raises(SourceError, match=says) as caught:
        list(reader.capture(*day))
    assert "raw_orders 2026-01-05" in caught.value.message
    assert "ORDERS_SOURCE_QUERY" in caught.value.remedy
    assert sqlite3.connect(file_of(reader)).execute("select count(*) from orders").fetchone() == (1,)


def test_a_missing_database_is_an_error_and_is_not_made(source: Source, day: Day) -> None:
    reader = source([])
    file_of(reader).unlink()
    with pytest.raises(SourceError, match="there is no source database") as caught:
        list(reader.capture(*day))
    assert "orders source init" in caught.value.remedy
    assert not file_of(reader).exists()


def test_a_file_that_is_no_database_is_a_permanent_error(source: Source, day: Day) -> None:
    reader = source([])
    file_of(reader).write_bytes(b"not a database" * 100)
    with pytest.raises(SourceError, match="not a database"):
        list(reader.capture(*day))


def test_text_that_is_not_utf8_is_a_permanent_error_naming_the_column(source: Source, order: Order, day: Day) -> None:
    reader = source([order()])
    with sqlite3.connect(file_of(reader)) as connection:
        connection.execute("update orders set country = cast(x'ff41' as text)")
    connection.close()
    with pytest.raises(SourceError, match="country"):
        list(reader.capture(*day))


def test_a_locked_database_is_a_transient_error(source: Source, order: Order, day: Day) -> None:
    reader = source([order()])
    writer = sqlite3.connect(file_of(reader), isolation_level=None)
    writer.execute("begin exclusive")
    with pytest.raises(SourceUnavailable, match="database is locked"):
        list(Reader(f"{reader.url}?timeout=0.1", *list(vars(reader).values())[1:]).capture(*day))
    writer.execute("rollback")
    assert len(captured(reader, day)) == 1


@pytest.mark.parametrize(
    ("url", "kind", "says"),
    [
        ("postgresql+psycopg://ann:s3cret@127.0.0.1:1/shop?connect_timeout=2", SourceUnavailable, "127.0.0.1"),
        ("nosuchdb://ann:s3cret@db/shop", SourceError, "no driver for nosuchdb"),
        ("oracle+cx_oracle://ann:s3cret@db/shop?token=s3cret", SourceError, "no driver for oracle"),
        ("s3cret at db", SourceError, "not a database URL"),
    ],
)
def test_an_unreachable_source_never_shows_its_password(
    source: Source, day: Day, url: str, kind: type[Exception], says: str
) -> None:
    if "psycopg" in url:
        pytest.importorskip("psycopg", reason="the Postgres driver is not installed")
    reader = source([], url=url)
    with pytest.raises(kind, match=says) as caught:
        list(reader.capture(*day))
    assert "s3cret" not in f"{caught.value} {caught.value!r} {reader!r} {caught.value.__cause__}"


def test_a_dropped_capture_gives_its_connection_back(source: Source, order: Order, day: Day) -> None:
    reader = source([order(order_id=n) for n in range(3_000)], connections=1)
    capture = reader.capture(*day, chunk_rows=500)
    next(capture)
    with pytest.raises(SourceUnavailable, match="all 1 source connections"):
        next(reader.capture(*day))
    del capture
    assert len(captured(reader, day)) == 3_000
    sqlite3.connect(file_of(reader), timeout=0).execute("drop table orders")


def test_one_statement_is_one_consistent_read_while_the_source_changes(source: Source, order: Order, day: Day) -> None:
    reader = source([order(order_id=n) for n in range(3_000)])
    writer = sqlite3.connect(file_of(reader), isolation_level=None)
    writer.execute("pragma journal_mode = wal")
    capture = reader.capture(*day, chunk_rows=500)
    rows = next(capture).num_rows
    writer.execute("update orders set status = 'cancelled'")
    statuses = {value for part in capture for value in part["status"].to_pylist()}
    assert rows == 500
    assert statuses == {"paid"}


MEMORY = """
import resource, sys
from datetime import UTC, datetime
from pathlib import Path
from orders_platform.settings import SOURCE_QUERY
from orders_platform.source.reader import Reader
reader = Reader(sys.argv[1], SOURCE_QUERY, "", 1, 1.0, Path(sys.argv[2]))
rows, first, size = 0, None, 0
for part in reader.capture("2026-01-05", datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 6, tzinfo=UTC)):
    rows, size = rows + part.num_rows, size + part.nbytes
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    first = first or peak
print(rows, round(size / 2**20), round(peak - first))
"""


def test_a_day_larger_than_the_memory_in_use_is_captured(source: Source, tmp_path: Path) -> None:
    reader = source([])
    with sqlite3.connect(file_of(reader)) as connection:
        connection.execute(
            "with recursive n(i) as (select 0 union all select i + 1 from n where i < 999999) insert into orders "
            "select 'ORD-' || i, 'C-' || i % 999, '2026-01-05 10:00:00', '2026-01-05 11:00:00', 'GB', 'GBP', 'paid', "
            "i || '.25', '0.00' from n"
        )
    connection.close()
    run = subprocess.run(
        [sys.executable, "-c", MEMORY, reader.url, str(tmp_path / "locks")], capture_output=True, text=True, check=True
    )
    rows, mebibytes, rise = (int(part) for part in run.stdout.split())
    assert rows == 1_000_000
    assert mebibytes > 80
    assert rise < 30
