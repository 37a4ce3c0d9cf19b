"""A published week, made once and copied for each test: a workspace is its folder."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from orders_platform.cli.setup import prepare
from orders_platform.settings import settings
from tests import lakes
from tests.checks.kit import ALL_DAILY, WEEK, failed
from tests.conftest import Workspace


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One week of everything; each day one landed row is rejected and one order has two versions."""
    home = tmp_path_factory.mktemp("week")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in lakes.environ(home).items():
            patch.setenv(name, value)
        settings.cache_clear()
        prepare(settings())
        with dg.DagsterInstance.from_config(str(home / "dagster")) as instance:
            workspace = Workspace(home, instance)
            workspace.put_days(*WEEK, orders=12)
            workspace.put(
                *((f"bad-{day}", None, f"{day} 01:00:00", "never", "GB", "GBP", "paid", "1.00", "0.00") for day in WEEK),
                *(
                    (f"{day}-1", "c1", f"{day} 01:00:00", f"{day} 09:00:00", "GB", "GBP", "paid", "12.00", "0.50")
                    for day in WEEK
                ),
            )
            made = workspace.materialize(WEEK[0], WEEK[-1], assets=ALL_DAILY)
            assert made.success and not failed(made)
            assert workspace.materialize(WEEK[0], assets=("finance_export",)).success
    settings.cache_clear()
    return home


@pytest.fixture
def published(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A copy of the published week of this test's own."""
    home = lakes.copy(template, tmp_path / "home")
    for name, value in lakes.environ(home).items():
        monkeypatch.setenv(name, value)
    settings.cache_clear()
    with dg.DagsterInstance.from_config(str(home / "dagster")) as instance:
        yield Workspace(home, instance)
    settings.cache_clear()
