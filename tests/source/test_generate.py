import hashlib
import itertools
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from orders_platform.source.errors import SourceError
from orders_platform.source.fill import fill, holds, rows_there
from orders_platform.source.generate import generated_day
from orders_platform.source.reader import Reader

MONDAY = date(2026, 1, 5)


def made(day: date = MONDAY, orders: int = 20_000, seed: int = 1) -> list[Any]:
    return list(itertools.chain.from_iterable(generated_day(day, orders, seed)))


def test_the_same_arguments_make_the_same_rows_for_ever() -> None:
    digest = hashlib.sha256(repr(made(orders=3_000, seed=7)).encode()).hexdigest()
    assert digest[:16] == "c564bacbd0b66d38"


def test_another_seed_or_day_makes_other_orders() -> None:
    def amounts(rows: list[Any]) -> list[str]:
        return [row[7] for row in rows]

    first = amounts(made(orders=500))
    assert first != amounts(made(orders=500, seed=2))
    assert first != amounts(made(date(2026, 1, 6), orders=500))


def test_a_generated_day_has_its_orders_a_hundredth_duplicates_and_some_later_versions() -> None:
    rows = made()
    assert len({row[0] for row in rows}) == 20_000
    assert 100 < len(rows) - len(set(rows)) < 300
    assert 50 < len(set(rows)) - 20_000 < 150
    assert all(row[2].startswith("2026-01-05 ") for row in rows)
    assert all(Decimal(0) <= Decimal(row[8]) <= Decimal(row[7]) for row in rows)
    assert all(row[3] > row[2] for row in rows)
    assert 0.06 < sum(row[1] is None for row in rows) / len(rows) < 0.10
    assert min(Counter(row[4] for row in rows).values()) > 2_000


def test_filling_replaces_what_was_there(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new' / 'folder' / 'source.db'}"
    assert rows_there(url) == 0
    assert fill(url, generated_day(MONDAY, 1_000, 1)) == rows_there(url) > 1_000
    rows = made(orders=10, seed=2)
    assert fill(url, [rows]) == 10
    assert holds(url, rows)
    assert not holds(url, [*rows[:-1], rows[0]])


def test_a_table_of_somebody_else_is_never_replaced(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    with create_engine(url).begin() as connection:
        connection.execute(text("create table orders (id integer, total numeric)"))
    with pytest.raises(SourceError, match=r"other columns \(id, total\)"):
        rows_there(url)


FILL = """
import sys, time
from datetime import date
from orders_platform.source.fill import fill
from orders_platform.source.generate import generated_day

def pieces():
    yield from generated_day(date(2026, 1, 5), 150_000, 1)
    print("written", file=sys.stderr, flush=True)  # in a "python -c" DuckDB draws progress bars on stdout
    time.sleep(60)

fill(sys.argv[1], pieces())
"""


def test_killed_while_filling_the_old_source_stays_and_can_be_read(
    source: Callable[..., Reader], order: Callable[..., Any], day: tuple[Any, ...]
) -> None:
    reader = source([order()])
    with subprocess.Popen([sys.executable, "-c", FILL, reader.url], stderr=subprocess.PIPE, text=True) as filler:
        assert filler.stderr is not None
        assert filler.stderr.readline() == "written\n"
        filler.kill()
    assert Path(reader.url.removeprefix("sqlite:///") + "-journal").stat().st_size > 0
    (part,) = reader.capture(*day)
    assert part.num_rows == 1
    assert rows_there(reader.url) == 1
