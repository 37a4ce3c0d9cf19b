"""A workspace a test: its own ORDERS_HOME, source, warehouse and Dagster instance."""

import os

for name in [name for name in os.environ if name.startswith("ORDERS_") and name not in ("ORDERS_PROOF", "ORDERS_TEST_DATA")]:
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
from tests.servers import postgres

__all__ = ["DAILY", "PROJECT", "Workspace", "failure_of", "postgres"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long proofs run where asked for: ORDERS_PROOF=1, or `make proof`."""
    if not os.environ.get("ORDERS_PROOF"):
        for item in items:
            if item.get_closest_marker("proof"):
                item.add_marker(pytest.mark.skip(reason="a long proof; run make proof"))


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A fresh workspace with an empty source, on the sample's calendar (28 days from 2026-01-05, UTC)."""
    monkeypatch.setenv("ORDERS_HOME", str(tmp_path))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    with opened(tmp_path) as made:
        yield made
