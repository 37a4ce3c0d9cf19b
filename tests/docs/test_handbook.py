"""The handbook: its commands, in its order, print what it shows; its rules and drills are those of the code."""

import re

from orders_platform.drills import CATALOGUE
from orders_platform.drills.drill import RULES
from orders_platform.settings import PROJECT
from tests.conftest import Workspace
from tests.docs.pages import commands, environ, failures, run

PAGE = PROJECT / "docs" / "handbook.md"


def test_from_a_clone_to_a_repaired_incident_with_the_handbook_alone(workspace: Workspace) -> None:
    found = commands(PAGE)
    home = workspace.home / "practice"
    results = run(found, PROJECT, environ(home), workspace.home / "commands")
    assert not failures(found, results), "\n\n".join(failures(found, results))


def test_its_rules_are_those_of_the_drills_and_every_drill_stands_under_its_rule() -> None:
    from orders_platform.drills.runner import drill_of

    chapter = PAGE.read_text().partition("## 6.")[2].partition("Not promised:")[0]
    rules = dict(re.findall(r"^(\d)\. \*\*(.+?)\*\*", chapter, re.MULTILINE))
    assert {int(number): text for number, text in rules.items()} == RULES
    parts = re.split(r"^\d\. ", chapter, flags=re.MULTILINE)[1:]
    named = {name: number for number, part in enumerate(parts, start=1) for name in re.findall(r"`([a-z]+-[a-z-]+)`", part)}
    assert named == {name: drill_of(name).rule for name in CATALOGUE}
