"""A workspace made once and copied for each test: a workspace is its folder, and making one takes a second."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from orders_platform.drills.workspace import Workspace, opened
from tests import lakes


@contextmanager
def workspace_at(home: Path) -> Iterator[Workspace]:
    """A workspace in this folder; made where there is none."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in lakes.environ(home).items():
            patch.setenv(name, value)
        with opened(home) as workspace:
            yield workspace


def made(home: Path, fill: Callable[[Workspace], None]) -> Path:
    """A workspace in this folder, filled and closed, to be copied."""
    with workspace_at(home) as workspace:
        fill(workspace)
    return home


@contextmanager
def copy_of(template: Path, folder: Path) -> Iterator[Workspace]:
    """A copy of a workspace that nobody is using, below this folder."""
    with workspace_at(lakes.copy(template, folder / "home")) as workspace:
        yield workspace


def fixtures(fill: Callable[[Workspace], None]) -> tuple[Any, Any]:
    """Two fixtures for a module, the first to be named `template`: a workspace filled once, and a copy of it for each test."""

    @pytest.fixture(scope="module")
    def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
        return made(tmp_path_factory.mktemp("template"), fill)

    @pytest.fixture
    def copied(template: Path, tmp_path: Path) -> Iterator[Workspace]:
        with copy_of(template, tmp_path) as workspace:
            yield workspace

    return template, copied
