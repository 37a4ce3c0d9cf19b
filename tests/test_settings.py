"""Settings: read once, typed, refused with the name of the variable, and never shown where they may hold a secret."""

from datetime import date
from pathlib import Path

import pytest

from orders_platform.errors import SettingsError
from orders_platform.settings import Settings, settings
from tests.conftest import Workspace


def test_nothing_set_means_the_defaults() -> None:
    found = Settings.read({})
    assert (found.timezone, found.start_date, found.end_date) == ("UTC", date(2026, 1, 5), None)
    assert found.warehouse_url == str(found.home / "warehouse.duckdb")
    assert found.source_url == f"sqlite:///{found.home / 'source.db'}"


def test_an_empty_value_counts_as_unset() -> None:
    assert Settings.read({"ORDERS_END_DATE": "", "ORDERS_DUCKDB_THREADS": "  "}) == Settings.read({})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ORDERS_START_DATE", "yesterday"),
        ("ORDERS_START_DATE", "2026-02-30"),
        ("ORDERS_END_DATE", "2026"),
        ("ORDERS_BUSINESS_TIMEZONE", "Mars/Olympus"),
        ("ORDERS_SOURCE_CONNECTIONS", "0"),
        ("ORDERS_SOURCE_CONNECTIONS", "four"),
        ("ORDERS_INTERVALS_PER_RUN", "-1"),
        ("ORDERS_INTERVALS_PER_RUN", "1.5"),
        ("ORDERS_LOCK_WAIT_SECONDS", "0"),
        ("ORDERS_LOCK_WAIT_SECONDS", "nan"),
        ("ORDERS_LOCK_WAIT_SECONDS", "inf"),
        ("ORDERS_DUCKDB_THREADS", "0"),
        ("ORDERS_DUCKDB_MEMORY_LIMIT", "a lot"),
        ("ORDERS_DUCKDB_MEMORY_LIMIT", "4GB'; drop table x; --"),
        ("ORDERS_HOME", "/data/why?"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name):
        Settings.read({name: value})


@pytest.mark.parametrize("value", ["4GB", "512MiB", "1.5 GB", "80%"])
def test_memory_is_written_as_duckdb_writes_it(value: str) -> None:
    assert Settings.read({"ORDERS_DUCKDB_MEMORY_LIMIT": value}).memory_limit == value


def test_what_may_hold_a_password_is_never_shown() -> None:
    secrets = {
        "ORDERS_SOURCE_URL": "postgresql://ann:hunter2@db/shop",
        "ORDERS_WAREHOUSE_URL": "ducklake:postgres:password=hunter2",
    }
    assert "hunter2" not in repr(Settings.read(secrets))


def test_a_home_may_be_named_relatively_or_by_a_link_and_is_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real home").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real home")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("real home", "./link", "link/../real home", "~/link", str(tmp_path / "link")):
        assert Settings.read({"ORDERS_HOME": name}).home == tmp_path / "real home"


def test_the_shell_wins_over_the_env_file_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("ORDERS_LOCK_WAIT_SECONDS=7\nORDERS_SOURCE_CONNECTIONS=9\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORDERS_SOURCE_CONNECTIONS", "3")
    settings.cache_clear()
    try:
        assert (settings().lock_wait_seconds, settings().source_connections) == (7.0, 3)
    finally:
        settings.cache_clear()


def test_two_workspaces_share_nothing(tmp_path: Path) -> None:
    one, two = (Settings.read({"ORDERS_HOME": str(tmp_path / name)}) for name in "ab")
    for first, second in zip(
        (one.warehouse_url, one.source_url, one.landing_root, one.exports_root, one.locks_root),
        (two.warehouse_url, two.source_url, two.landing_root, two.exports_root, two.locks_root),
        strict=True,
    ):
        assert str(tmp_path / "a") in str(first)
        assert str(tmp_path / "b") in str(second)


@pytest.mark.parametrize("name", ["ORDERS_BUSINESS_TIMEZONE", "ORDERS_START_DATE"])
def test_a_command_says_in_one_sentence_which_setting_is_wrong(workspace: Workspace, name: str) -> None:
    done = workspace.run("orders", "status", **{name: "nonsense"})
    assert done.returncode == 1
    assert name in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
