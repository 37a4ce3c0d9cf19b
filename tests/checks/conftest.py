"""A published week, made once and copied for each test: a workspace is its folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checks.kit import ALL_DAILY, WEEK, failed
from tests.conftest import Workspace
from tests.copies import copy_of, made


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One week of everything; each day one landed row is rejected and one order has two versions."""
    return made(tmp_path_factory.mktemp("week"), fill)


def fill(workspace: Workspace) -> None:
    workspace.put_days(*WEEK, orders=12)
    workspace.put(
        *((f"bad-{day}", None, f"{day} 01:00:00", "never", "GB", "GBP", "paid", "1.00", "0.00") for day in WEEK),
        *((f"{day}-1", "c1", f"{day} 01:00:00", f"{day} 09:00:00", "GB", "GBP", "paid", "12.00", "0.50") for day in WEEK),
    )
    done = workspace.materialize(WEEK[0], WEEK[-1], assets=ALL_DAILY)
    assert done.success and not failed(done)
    assert workspace.materialize(WEEK[0], assets=("finance_export",)).success


@pytest.fixture
def published(template: Path, tmp_path: Path) -> Iterator[Workspace]:
    """A copy of the published week of this test's own."""
    with copy_of(template, tmp_path) as workspace:
        yield workspace
