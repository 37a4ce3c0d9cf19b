"""A workspace a test: its own ORDERS_HOME, source, warehouse and Dagster instance."""

import os
import shutil

KEPT = ("ORDERS_PROOF", "ORDERS_TEST_DATA", "ORDERS_TEST_ENGINE")
for name in [name for name in os.environ if name.startswith("ORDERS_") and name not in KEPT]:
    del os.environ[name]
os.environ.update(
    DAGSTER_DISABLE_TELEMETRY="yes",
    ORDERS_START_DATE="2026-01-05",
    ORDERS_END_DATE="2026-02-01",
    ORDERS_BUSINESS_TIMEZONE="UTC",
)

from collections.abc import Iterator
from pathlib import Path

import pytest

from orders_platform.drills.workspace import DAILY, Workspace, failure_of, opened
from orders_platform.settings import PROJECT
from tests import lakes
from tests.servers import postgres

__all__ = ["DAILY", "PROJECT", "Workspace", "failure_of", "postgres"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long proofs run where asked for: ORDERS_PROOF=1, or `make proof`."""
    for item in items:
        if item.get_closest_marker("proof") and not os.environ.get("ORDERS_PROOF"):
            item.add_marker(pytest.mark.skip(reason="a long proof; run make proof"))
        if lakes.chosen() and (only := item.get_closest_marker("file_only")):
            item.add_marker(pytest.mark.skip(reason=f"about the DuckDB file: {only.args[0]}"))


@pytest.fixture(scope="session")
def lake_server(request: pytest.FixtureRequest) -> None:
    """The server that the tests' DuckLakes have their catalogs in."""
    pytest.importorskip("duckdb_extensions", reason="DuckDB's extension wheels are not installed: pip install -e '.[scale]'")
    lakes.start(request.getfixturevalue("postgres"))


@pytest.fixture(scope="session", autouse=True)
def lake_everywhere(request: pytest.FixtureRequest) -> None:
    """Where every test runs on DuckLake, the fixtures that are made once do too."""
    if lakes.chosen():
        request.getfixturevalue("lake_server")


@pytest.fixture(autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The engine of the test's warehouses: file or lake."""
    if found := getattr(request, "param", ""):
        monkeypatch.setenv(lakes.ENGINE, found)
        if found == "lake":
            request.getfixturevalue("lake_server")
    return "lake" if lakes.chosen() else "file"


@pytest.fixture(scope="session")
def dagster_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Dagster's home as setup makes it, to be copied: making it costs each test a third of a second of processor time."""
    home = tmp_path_factory.mktemp("setup")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORDERS_HOME", str(home))
        with opened(home):
            pass
    return home / "dagster"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dagster_folder: Path) -> Iterator[Workspace]:
    """A fresh workspace with an empty source, on the sample's calendar (28 days from 2026-01-05, UTC)."""
    shutil.copytree(dagster_folder, tmp_path / "dagster")
    for name, value in lakes.environ(tmp_path).items():
        monkeypatch.setenv(name, value)
    with opened(tmp_path) as made:
        yield made
