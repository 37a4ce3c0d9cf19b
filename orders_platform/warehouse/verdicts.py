"""Verdicts: what a check found about one publication. Belongs here: their two shapes and the one way to append them.

Not here: how a verdict is reached (checks/, recovery/reconciliation.py) or who obeys it (gates.py). Nothing is updated or deleted.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from orders_platform.warehouse.contract import inline, literals
from orders_platform.warehouse.publications import Publication


@dataclass(frozen=True)
class Difference:
    """One line of a small table: a key or a sum, what one side says and what the other."""

    item: str
    left: str | None
    right: str | None


@dataclass(frozen=True)
class Finding:
    """One thing that was compared, for one interval of one table.

    Attributes:
        name: What was compared, such as content or volume.
        left: What it should be.
        right: What it is.
        details: Reason or remedy in words, or why nothing was compared.
        differences: Up to twenty differing keys or sums.
        is_grave: Past the failing bound of a warning.
    """

    table: str
    interval: str
    name: str
    passed: bool
    left: str = ""
    right: str = ""
    difference: str = ""
    details: str = ""
    differences: tuple[Difference, ...] = ()
    is_grave: bool = False

    def text(self) -> str:
        """The finding in one line.

        >>> Finding("fct_orders", "2026-01-05", "content", False, "5 rows", "4 rows", "rows -1").text()
        'content: 5 rows, found 4 rows (rows -1)'
        """
        sides = self.left if self.left == self.right else f"{self.left}, found {self.right}"
        notes = ", ".join(filter(None, (self.difference, self.details)))
        return f"{self.name}: {sides or notes}" + (f" ({notes})" if sides and notes else "")


@dataclass(frozen=True)
class Verdict:
    """What one check says about one publication. A consumer refuses it when its latest blocking verdict did not pass."""

    publication_id: str
    asset: str
    interval: str
    check_name: str
    passed: bool
    blocking: bool
    left_value: str = ""
    right_value: str = ""
    difference: str = ""
    details: str = ""


_SHAPE = {
    **{name: "BOOLEAN" if name in ("passed", "blocking") else "VARCHAR" for name in Verdict.__dataclass_fields__},
    "publication_id": "UUID",
    "run_id": "VARCHAR",
    "judged_at": "TIMESTAMP",
}

_INSERT = """
insert into platform.verdicts by name
with judged as ({rows})
select v.*, coalesce(before.attempt, 0) + 1 as attempt
from judged v
left join (
  select publication_id, check_name, max(attempt) as attempt from platform.verdicts
  where publication_id in ({publications}) group by all
) before on before.publication_id = v.publication_id and before.check_name = v.check_name
"""


def verdicts_of(publication: Publication, check: str, findings: Iterable[Finding], *, blocking: bool) -> list[Verdict]:
    """The check's own verdict, which gates read, and under check/finding one row a finding, which is its evidence."""
    found = list(findings)
    bad = [finding for finding in found if not finding.passed]
    shown = bad[0] if bad else found[0] if found else None
    who = (publication.publication_id, publication.asset, publication.interval)
    rows = [Verdict(*who, check, not bad, blocking, details="; ".join(finding.text() for finding in bad)[:1000])]
    if shown:
        rows = [_with_sides(rows[0], shown)]
    for finding in found:
        name = finding.name if finding.table == publication.asset else f"{finding.table}.{finding.name}"
        row = Verdict(*who, f"{check}/{name}", finding.passed, blocking=False, details=finding.details)
        rows.append(_with_sides(row, finding))
    return rows


def record(con: Any, verdicts: Iterable[Verdict], run_id: str = "") -> None:
    """Append the verdicts in one statement; each is the next attempt of its (publication, check).

    Args:
        con: A writing session.
        verdicts: At most one a (publication, check).
        run_id: The run that judged; empty for a command.
    """
    at = datetime.now(UTC).replace(tzinfo=None).isoformat()
    rows = [{**asdict(verdict), "run_id": run_id, "judged_at": at} for verdict in verdicts]
    if rows:
        judged = {row["publication_id"] for row in rows}
        con.execute(_INSERT.format(rows=inline(rows, _SHAPE), publications=literals(judged)))


def _with_sides(verdict: Verdict, finding: Finding) -> Verdict:
    return replace(verdict, left_value=finding.left, right_value=finding.right, difference=finding.difference)
