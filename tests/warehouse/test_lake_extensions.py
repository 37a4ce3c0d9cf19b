"""DuckDB's extensions: from where they are installed, from the wheels without network, or from DuckDB's own repository."""

import gzip
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import pytest

from orders_platform.errors import SettingsError
from orders_platform.warehouse.lake import load

pytest.importorskip(
    "duckdb_extension_ducklake", reason="DuckDB's extension wheels are not installed: pip install -e '.[scale]'"
)


@pytest.fixture
def con(tmp_path: Path) -> Any:
    """A DuckDB without any extension, that reaches no network but a repository in a folder."""
    con = duckdb.connect()
    con.execute(f"set extension_directory = '{tmp_path / 'installed'}'")
    con.execute(f"set custom_extension_repository = '{tmp_path / 'repository'}'")
    with pytest.raises(duckdb.Error):
        con.execute("load ducklake")
    return con


def is_loaded(con: Any) -> bool:
    return bool(con.execute("select loaded from duckdb_extensions() where extension_name = 'ducklake'").fetchall() == [(True,)])


def test_the_wheels_are_enough_and_what_they_installed_is_loaded_the_next_time(
    con: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(con, "ducklake")
    assert is_loaded(con)
    monkeypatch.setitem(sys.modules, "duckdb_extensions", None)
    again = duckdb.connect()
    again.execute(f"set extension_directory = '{tmp_path / 'installed'}'")
    load(again, "ducklake")
    assert is_loaded(again)


def test_without_the_wheels_duckdb_installs_from_its_repository(
    con: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (version, platform) = con.execute("select library_version, (from pragma_platform()) from pragma_version()").fetchall()[0]
    (wheel,) = Path(str(files("duckdb_extension_ducklake"))).glob(f"extensions/{version}/*")
    shelf = tmp_path / "repository" / version / platform
    shelf.mkdir(parents=True)
    (shelf / f"{wheel.name}.gz").write_bytes(gzip.compress(wheel.read_bytes(), 1))
    monkeypatch.setitem(sys.modules, "duckdb_extensions", None)
    load(con, "ducklake")
    assert is_loaded(con)


def test_with_neither_the_extension_is_named_with_the_command_that_installs_it(
    con: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb_extensions", None)
    with pytest.raises(SettingsError, match="DuckDB's extension ducklake cannot be loaded") as caught:
        load(con, "ducklake")
    assert "pip install 'orders-platform[scale]'" in caught.value.remedy
