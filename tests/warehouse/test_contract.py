"""Contracts: what cannot be promised is refused where it is declared."""

from typing import Any

import duckdb
import pytest

from orders_platform.warehouse.contract import Column, ContractError, ContractViolation, TableContract, in_intervals
from tests.warehouse.kit import COLUMNS, LINES


def contract(columns: dict[str, Column] | None = None, **options: Any) -> TableContract:
    return TableContract("one line", {**COLUMNS, **(columns or {})}, **{"key": ("line",), **options})


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ({}, {"key": ("nobody",)}, "nobody is a key or measure but no column"),
        ({}, {"measures": ("nobody",)}, "nobody is a key or measure but no column"),
        ({}, {"partition": "line"}, "line is VARCHAR, not DATE"),
        ({}, {"partition": "nobody"}, "nobody is missing, not DATE"),
        ({"line": Column("TEXT", "x")}, {}, "line has type 'TEXT'"),
        ({"line": Column("DECIMAL(18)", "x")}, {}, "has type"),
        ({"line": Column("DOUBLE", "x")}, {}, "has type 'DOUBLE'"),
        ({}, {"measures": ("line",)}, "Measure line is VARCHAR"),
        ({"rate": Column("DECIMAL(18,6)", "x")}, {"measures": ("rate",)}, "cannot be kept exactly"),
        ({}, {"measures": ("amount",), "currency": "code"}, "there is no column code: currencies would be added up"),
        ({"Order": Column("DATE", "x")}, {}, "cannot name a table or column"),
    ],
)
def test_a_promise_that_cannot_be_kept_is_refused(columns: dict[str, Column], options: dict[str, Any], said: str) -> None:
    with pytest.raises(ContractError, match=said):
        contract(columns, **options)


def test_a_fingerprint_changes_with_anything_that_is_promised() -> None:
    others = [
        contract({"line": Column("VARCHAR", "another meaning")}),
        contract({"line": Column("VARCHAR", "name", accepted=("a",))}),
        contract(key=()),
        contract(allow_empty=True),
    ]
    assert len({c.fingerprint() for c in (contract(), *others)}) == 5
    assert contract().fingerprint() == contract().fingerprint()


def test_a_violation_shows_what_is_wrong_and_which_ranges_are_fine() -> None:
    days = [f"2026-01-{day:02d}" for day in range(5, 12)]
    text = str(ContractViolation("sold", {days[3]: ["3 rows where line is null"]}, [d for d in days if d != days[3]]))
    assert "2026-01-08: 3 rows where line is null" in text
    assert "fine and can run on their own: 2026-01-05...2026-01-07, 2026-01-09...2026-01-11" in text
    weeks = ContractViolation("sold", {"2026-01-12": ["x"]}, ["2026-01-05", "2026-01-19", "2026-01-26"], 7)
    assert "2026-01-05, 2026-01-19...2026-01-26" in str(weeks)


def test_a_set_of_intervals_is_the_set_and_not_first_to_last() -> None:
    some = ["2026-01-05", "2026-01-06", "2026-01-09", "2026-02-01"]
    condition = in_intervals("d", [*reversed(some), some[0]])
    found = duckdb.execute(
        f"select d::date::varchar from range(date '2025-12-01', date '2026-03-01', interval 1 day) t(d) where {condition}"
    )
    assert [day for (day,) in found.fetchall()] == some
    assert in_intervals("d", []) == "false"


def test_the_digest_leaves_the_publication_out() -> None:
    assert "produced_by" not in LINES.row_digest()
