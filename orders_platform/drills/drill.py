"""A drill. Belongs here: what a drill is, what its two sides return, and when it passes. Not here: any one drill."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orders_platform.drills.usual import UsualBuild
    from orders_platform.drills.workspace import Workspace

RULES = {
    1: "What a task writes depends on its interval and its input alone.",
    2: "Every write replaces its interval, whole, in one transaction.",
    3: "Rows are audited before they are published.",
    4: "A task reads exactly the intervals mapped to it, as published, or it is refused.",
    5: "What leaves the house goes last, once, under a key.",
    6: "What a person or a deployment did is on record.",
    7: "Nothing is lost without being counted.",
}
"""The rules of docs/handbook.md."""


@dataclass(frozen=True)
class Line:
    """One number of one side: what it should be, and what it is."""

    what: str
    should_be: str
    found: str

    @property
    def is_right(self) -> bool:
        """Whether it is what it should be."""
        return self.should_be == self.found


class Side(list[Line]):
    """What one side of a drill ends with."""

    @classmethod
    def of(cls, *lines: tuple[str, Any, Any]) -> "Side":
        """From (what, should be, found); compared as text, so that 19.0 is not 19.00."""
        return cls(Line(what, str(should_be), str(found)) for what, should_be, found in lines)

    @property
    def is_right(self) -> bool:
        """Whether it has numbers, and every one of them is right."""
        return bool(self) and all(line.is_right for line in self)


@dataclass(frozen=True)
class Drill:
    """One failure, replayed twice; its name and what happens are in the catalogue.

    Attributes:
        why: Why the usual build breaks, in one sentence.
        rule: The number of the rule in docs/handbook.md.
        file: The file to read, below orders_platform/.
        usual: The failure on the usual build.
        ours: The same on this platform.
    """

    why: str
    rule: int
    file: str
    usual: "Callable[[UsualBuild], Side]"
    ours: "Callable[[Workspace], Side]"


@dataclass
class Result:
    """How one drill went; `error` when a side ended with one."""

    name: str
    naive: Sequence[Line] = ()
    ours: Sequence[Line] = ()
    seconds: float = 0.0
    error: str = ""
    kept: str = ""
    is_broken: bool = False
    is_right: bool = False

    @property
    def passed(self) -> bool:
        """The usual build broke, and ours did not."""
        return self.is_broken and self.is_right and not self.error
