import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from orders_platform.settings import SOURCE_QUERY
from orders_platform.source.reader import Reader
from orders_platform.source.render import COLUMNS

ORDER = ("1", "C-1", "2026-01-05 10:00:00", "2026-01-05 11:00:00", "GB", "GBP", "paid", "10.00", "0.00")
Row = tuple[Any, ...]


@pytest.fixture
def order() -> Callable[..., Row]:
    """A source row; any column can be given another value."""

    def made(**values: Any) -> Row:
        return tuple({**dict(zip(COLUMNS, ORDER, strict=True)), **values}.values())

    return made


@pytest.fixture
def source(tmp_path: Path) -> Callable[..., Reader]:
    """A reader of a real SQLite database holding these rows."""

    def made(rows: Iterable[Row], **values: Any) -> Reader:
        path = tmp_path / "source.db"
        with sqlite3.connect(path) as connection:
            connection.execute(f"create table orders ({', '.join(COLUMNS)})")
            connection.executemany(f"insert into orders values ({', '.join('?' * len(COLUMNS))})", rows)
        connection.close()
        reader = Reader(f"sqlite:///{path}", SOURCE_QUERY, "select count(*) from orders", 2, 0.3, tmp_path / "locks")
        return replace(reader, **values)

    return made


@pytest.fixture
def day() -> tuple[str, datetime, datetime]:
    """2026-01-05 and its window in UTC."""
    return "2026-01-05", datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 6, tzinfo=UTC)
