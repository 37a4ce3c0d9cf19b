"""Writing a source of our own. Belongs here: table `orders`, replaced whole in one transaction. Not here: what its rows are."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from orders_platform.errors import OrdersError
from orders_platform.source.errors import SourceError, explain, parse_url, shown
from orders_platform.source.render import COLUMNS
from orders_platform.source.sample import Row

_INSERT = f"insert into orders ({', '.join(COLUMNS)}) values ({', '.join('?' * len(COLUMNS))})"
_INSTANT = sa.DateTime(timezone=True)
_AMOUNT = sa.Numeric(18, 2)
_TYPES = {"ordered_at": _INSTANT, "updated_at": _INSTANT, "gross_amount": _AMOUNT, "discount_amount": _AMOUNT}


def _table(*, sqlite: bool) -> sa.Table:
    """Table `orders`: on SQLite all text, which keeps every digit; elsewhere typed, as a shop's own table is."""
    types: dict[str, Any] = {} if sqlite else _TYPES
    columns = [sa.Column(name, types.get(name, sa.Text())) for name in COLUMNS]
    return sa.Table("orders", sa.MetaData(), *columns, sa.Index("orders_ordered_at", "ordered_at"))


@contextmanager
def _writing(url_text: str) -> Iterator[tuple[sa.Connection, sa.Table]]:
    """A transaction on the source, its database file made when absent: all of it or nothing."""
    url = parse_url(url_text)
    sqlite = url.get_backend_name() == "sqlite"
    if sqlite and url.database:
        try:
            Path(url.database).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OrdersError(f"The folder of {shown(url)} cannot be made: {error}.", "Set ORDERS_SOURCE_URL.") from error
    try:
        with sa.create_engine(url, poolclass=sa.NullPool).begin() as connection:
            if sqlite:
                connection.exec_driver_sql("begin immediate")  # the driver would run DDL outside the transaction
            yield connection, _table(sqlite=sqlite)
    except (sa.exc.SQLAlchemyError, ImportError) as error:
        raise explain(error, "Filling the source", url) from error


def rows_there(url: str) -> int:
    """Rows of table `orders`; 0 when there is none.

    Raises:
        SourceError: There is a table `orders` that is not ours to replace: it has other columns.
    """
    with _writing(url) as (connection, table):
        found = sa.inspect(connection)
        if not found.has_table("orders"):
            return 0
        names = [column["name"] for column in found.get_columns("orders")]
        if sorted(names) != sorted(COLUMNS):
            raise SourceError(
                f"Table orders of {shown(parse_url(url))} has other columns ({', '.join(names)}): it is no sample to replace.",
                "Set ORDERS_SOURCE_URL to another database, or read this one with ORDERS_SOURCE_QUERY.",
            )
        return int(connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


def holds(url: str, rows: list[Row]) -> bool:
    """Whether table `orders` holds exactly these rows, in any order."""
    if rows_there(url) != len(rows):
        return False
    with _writing(url) as (connection, table):
        return Counter(tuple(row) for row in connection.execute(sa.select(table))) == Counter(rows)


def fill(url: str, pieces: Iterable[list[Row]]) -> int:
    """Replace table `orders` by these rows, in one transaction: whoever is interrupted leaves the old table.

    Args:
        url: SQLAlchemy URL.
        pieces: Rows in the order of COLUMNS, as text; dates readable and amounts numeric unless the source is SQLite.

    Returns:
        Rows written.

    Raises:
        SourceError: The database refuses.
        SourceUnavailable: The database is down or locked.
    """
    count = 0
    with _writing(url) as (connection, table):
        table.drop(connection, checkfirst=True)
        table.create(connection)
        for rows in pieces:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql(_INSERT, rows)
            else:
                connection.execute(table.insert(), [_typed(row) for row in rows])
            count += len(rows)
    return count


def _typed(row: Row) -> dict[str, str | datetime | None]:
    values: dict[str, str | datetime | None] = dict(zip(COLUMNS, row, strict=True))
    for name in ("ordered_at", "updated_at"):
        if isinstance(text := values[name], str):
            values[name] = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return values
