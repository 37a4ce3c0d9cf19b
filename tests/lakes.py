"""The second engine for the tests: a DuckLake a home, its catalog in a database of its own in a real Postgres.

ORDERS_TEST_ENGINE=lake runs every test on it (`make test-lake`); @both_engines runs one on each in the ordinary suite.
"""

import hashlib
import os
import shutil
from contextlib import suppress
from functools import cache
from pathlib import Path

import psycopg
import pytest

from orders_platform.warehouse.lake import PREFIX

ENGINE, SERVER = "ORDERS_TEST_ENGINE", "ORDERS_TEST_POSTGRES"

both_engines = pytest.mark.parametrize("engine", ["file", "lake"], indirect=True)


def chosen() -> bool:
    """Whether warehouses are made as DuckLakes now."""
    return os.environ.get(ENGINE) == "lake"


def start(postgres: str) -> None:
    """Make them in this server; children inherit it."""
    os.environ[SERVER] = postgres.replace("+psycopg", "")


def url_of(home: Path) -> str:
    """The home's DuckLake; its database is made with the first call."""
    _create(_name(home))
    return f"{PREFIX}{psycopg.conninfo.make_conninfo(os.environ[SERVER], dbname=_name(home))}"


def environ(home: Path) -> dict[str, str]:
    """What names this home, and its warehouse, to any process."""
    found = {"ORDERS_HOME": str(home), "DAGSTER_HOME": str(home / "dagster")}
    return {**found, "ORDERS_WAREHOUSE_URL": url_of(home)} if chosen() else found


def copy(home: Path, to: Path) -> Path:
    """A copy of a home with its warehouse, which nobody may be using."""
    shutil.copytree(home, to)
    if chosen():
        _create(_name(home))
        with _server() as con:
            con.execute(f"drop database if exists {_name(to)} with (force)")
            con.execute(f"create database {_name(to)} template {_name(home)}")
        with psycopg.connect(os.environ[SERVER], dbname=_name(to), autocommit=True) as con:
            if con.execute("select to_regclass('ducklake_metadata')").fetchall() != [(None,)]:
                con.execute("update ducklake_metadata set value = %s where key = 'data_path'", [f"{to}/lake/"])
    return to


def _name(home: Path) -> str:
    return f"home_{hashlib.sha256(str(home.resolve()).encode()).hexdigest()[:16]}"


@cache
def _create(name: str) -> None:
    # Another process of the same test may come first.
    with _server() as con, suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
        con.execute(f"create database {name}")


def _server() -> psycopg.Connection:
    return psycopg.connect(os.environ[SERVER], autocommit=True)
