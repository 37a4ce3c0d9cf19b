"""Runs at the same time. Belongs here: the usual build's warehouse on SQLite, which several processes may write, and its runs.

Not here: what a run does to it (parallel_backfill.py, two_writers.py).
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import dagster as dg

from orders_platform.drills.faults import together
from orders_platform.drills.usual import UsualBuild

COLUMNS = "(order_date text, order_id text, currency text, status text, gross text, discount text)"
TOTALS = """
select count(*), printf('%.2f', sum(gross - discount) filter (where status = 'paid' and currency = 'EUR')) from orders
"""
WAIT_SECONDS = 30
"""For the lock, and for the other runs."""


def create(build: UsualBuild) -> None:
    """The tables."""
    with connected(build) as con:
        con.executescript(f"create table staging {COLUMNS}; create table orders {COLUMNS}")


@contextmanager
def connected(build: UsualBuild) -> Iterator[sqlite3.Connection]:
    """A connection on which every statement is a transaction of its own."""
    con = sqlite3.connect(build.home / "usual.db", isolation_level=None, timeout=WAIT_SECONDS)
    try:
        yield con
    finally:
        con.close()


def run_at_once(build: UsualBuild, asset: dg.AssetsDefinition, *days: str) -> None:
    """One run a day, each in a process of its own, all at the same time."""

    def run(day: str) -> None:
        with dg.DagsterInstance.ephemeral() as build.instance:
            build.materialize([asset], day)

    together(*(partial(run, day) for day in days))


def totals(build: UsualBuild) -> tuple[int, str]:
    """Orders, and revenue in EUR."""
    with connected(build) as con:
        (row,) = con.execute(TOTALS).fetchall()
        return row[0], row[1]
