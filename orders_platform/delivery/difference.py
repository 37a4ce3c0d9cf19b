"""What changed between two files of one week. Belongs here: the line-by-line difference, pure. Not here: which two (cli/)."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class LineChange:
    """One line that differs.

    Attributes:
        change: added, removed or changed.
        line: The line's key, such as "2026-01-06 GB GBP".
        columns: column -> (before, after), as written in the files; only what differs.
    """

    change: str
    line: str
    columns: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def text(self) -> str:
        """The change as a person reads it.

        >>> LineChange("changed", "2026-01-06 GB GBP", {"revenue": ("19.00", "21.00")}).text()
        '2026-01-06 GB GBP changed: revenue 19.00 → 21.00'
        """
        return f"{self.line} {self.change}: " + ", ".join(
            f"{name} {before or '—'} → {after or '—'}" for name, (before, after) in self.columns.items()
        )


def difference(before: bytes, after: bytes, key: Sequence[str]) -> list[LineChange]:
    r"""The lines that differ, in the order of their keys.

    >>> difference(b"day,n\n5,1\n6,2\n", b"day,n\n6,3\n7,1\n", ["day"])[1].text()
    '6 changed: n 2 → 3'
    """
    old, new = _lines(before, key), _lines(after, key)
    found = []
    for line in sorted(old.keys() | new.keys()):
        mine, theirs = old.get(line, {}), new.get(line, {})
        names = [name for name in dict.fromkeys((*mine, *theirs)) if name not in key]
        columns = {n: (mine.get(n, ""), theirs.get(n, "")) for n in names if mine.get(n) != theirs.get(n)}
        if columns or not (mine and theirs):
            change = "added" if not mine else "removed" if not theirs else "changed"
            found.append(LineChange(change, " ".join(line), columns))
    return found


def _lines(data: bytes, key: Sequence[str]) -> dict[tuple[str, ...], dict[str, str]]:
    rows = csv.DictReader(io.StringIO(data.decode(), newline=""))
    return {tuple(row[name] for name in key): row for row in rows}
