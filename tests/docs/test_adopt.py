"""Adopting it: the page's own modules and edits, put into a copy of the project, and the page's own commands run there."""

import shutil
from pathlib import Path

import pytest

from orders_platform.settings import PROJECT
from tests.docs.pages import Block, blocks, commands, environ, failures, run

PAGE = PROJECT / "docs" / "adopt.md"
LEFT = shutil.ignore_patterns(".*", "data", "__pycache__", "*.egg-info", "work")


def edit(file: Path, text: str) -> None:
    """Apply the lines of a diff: each stands in the file once; what is added goes after the line before it."""
    lines = file.read_text().splitlines()
    place = 0
    for line in text.splitlines():
        mark, rest = line[:1], line[1:]
        if mark == "+":
            place += 1
            lines.insert(place, rest)
            continue
        assert lines.count(rest) == 1, f"{file.name} has no line {rest!r}"
        place = lines.index(rest)
        if mark == "-":
            del lines[place]
            place -= 1
    file.write_text("\n".join(lines) + "\n")


def titled(language: str) -> list[Block]:
    return [block for block in blocks(PAGE) if block.language == language]


@pytest.fixture(scope="module")
def adopted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with everything the page adds to it."""
    copy = tmp_path_factory.mktemp("adopted") / "project"
    shutil.copytree(PROJECT, copy, ignore=LEFT)
    for block in titled("python"):
        (copy / block.title).write_text(block.text)
    for block in titled("diff"):
        edit(copy / block.title, block.text)
    return copy


def test_a_table_of_ones_own_is_under_forty_lines() -> None:
    table = titled("python")[0]
    assert len([line for line in table.text.splitlines() if line.strip()]) < 40


def test_the_page_is_all_it_takes_to_adopt_source_calendar_table_and_channel(adopted: Path, tmp_path: Path) -> None:
    found = commands(PAGE)
    results = run(found, adopted, environ(tmp_path / "home", PYTHONPATH=str(adopted)), tmp_path / "commands")
    assert not failures(found, results), "\n\n".join(failures(found, results))
