"""Reconciliation. Belongs here: comparing tables with what was published, landed and read, to the row; nothing is written.

Not here: recording the result (warehouse/verdicts.py), Dagster (checks/factory.py), or the identities themselves (checks/).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb

from orders_platform.calendar import Calendar
from orders_platform.recovery.keys import SHOWN, differing_keys
from orders_platform.recovery.measures import Measured, measure_file, measure_table
from orders_platform.warehouse import publications
from orders_platform.warehouse.contract import PRODUCED_BY, TableContract, identifier, in_intervals, literal
from orders_platform.warehouse.files import safe_path
from orders_platform.warehouse.inputs import Input, create_run_intervals, create_views
from orders_platform.warehouse.publications import EXACT, Pair, Publication
from orders_platform.warehouse.tables import columns_of
from orders_platform.warehouse.verdicts import Difference, Finding

SHORT = 32
"""Characters of a digest in a text."""

SUMMED = 6
"""Sums named in the text of an identity that holds."""

LOCATED = 10
"""Intervals of one call whose differing keys are looked for; each costs as much as making the interval."""


CONTENT_VERDICT = "reconciles/content"
"""Name under which the check `reconciles` records that an asset's own rows are what was published."""


@dataclass(frozen=True)
class Identity:
    """An accounting identity as SQL over the table and whatever it reads, each a view under its own name.

    Attributes:
        sql: Rows (interval_date, item, left_value, right_value), as text; the two have to be equal for every item.
        keys: Rows (interval_date, key, left_value, right_value) that differ, asked only where an item differs.
    """

    sql: str
    keys: str = ""


@dataclass(frozen=True)
class Table:
    """What is known of a published table before looking at it.

    Attributes:
        inputs: Name under which its SQL reads -> table.
        query: Its SQL by table name (companions have their own); empty when its rows are not made by SQL.
        code_version: Of the code that `query` comes from.
        is_export: Whether it is published as CSV files.
    """

    asset: str
    contract: TableContract
    companion_of: str | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    query: Callable[[], Mapping[str, str]] = dict
    code_version: str = ""
    identity: Identity | None = None
    is_export: bool = False


@dataclass
class Reconciliation:
    """One look at the warehouse, in one reading session: each (table, interval) is measured at most once.

    Attributes:
        con: A reading session.
        tables: Every table by name.
        run_id: What this run published was made from inputs that must still hold what they held.
    """

    con: Any
    tables: Mapping[str, Table]
    calendar: Calendar
    landing_root: Path
    exports_root: Path
    run_id: str = ""
    _current: dict[Pair, Publication | None] = field(default_factory=dict)
    _measured: dict[Pair, Measured] = field(default_factory=dict)
    _located: int = 0

    def publications(self, asset: str, intervals: Iterable[str]) -> dict[str, Publication]:
        """The current publications, by interval; none where nothing is published."""
        wanted = list(intervals)
        lacking = [(asset, i) for i in wanted if (asset, i) not in self._current]
        if lacking:
            found = publications.current(self.con, lacking)
            self._current.update({pair: found.get(pair) for pair in lacking})
        return {i: p for i in wanted if (p := self._current[asset, i])}

    def measured(self, asset: str, intervals: Iterable[str]) -> dict[str, Measured]:
        """What each published interval holds now."""
        published = self.publications(asset, intervals)
        lacking = [p for i, p in published.items() if (asset, i) not in self._measured]
        table = self.tables[asset]
        if lacking and lacking[0].location:
            root = self.exports_root if table.is_export else self.landing_root
            self._measured.update({(asset, p.interval): measure_file(self.con, root, p) for p in lacking})
        elif lacking:
            found = measure_table(self.con, table.contract, lacking)
            self._measured.update({(asset, i): m for i, m in found.items()})
        return {i: self._measured[asset, i] for i in published}

    @cached_property
    def _judged_here(self) -> frozenset[str]:
        """Publications whose content this very run has measured and found right: their readers' checks do not scan them again."""
        if not self.run_id:
            return frozenset()
        rows = self.con.execute(
            f"select publication_id::varchar from platform.verdicts where run_id = {literal(self.run_id)} "
            f"and check_name = {literal(CONTENT_VERDICT)} and passed"
        ).fetchall()
        return frozenset(row[0] for row in rows)

    def companions(self, asset: str) -> list[str]:
        """Tables published in the same swap."""
        return [name for name, table in self.tables.items() if table.companion_of == asset]

    def findings(self, asset: str, intervals: Sequence[str]) -> dict[str, list[Finding]]:
        """What stands for and against each published interval of the asset and its companions; others are left out."""
        found: dict[str, list[Finding]] = {i: [] for i in self.publications(asset, intervals)}
        for name in (asset, *self.companions(asset)):
            measured = self.measured(name, found)
            for interval, publication in self.publications(name, found).items():
                found[interval].append(self._content(name, publication, measured[interval]))
                if not publication.location:
                    found[interval].append(self._foreign(name, publication, measured[interval]))
        for interval, finding in self._identity(asset, list(found)).items():
            found[interval].append(finding)
        return found

    def orphans(self, asset: str, interval: str) -> int:
        """Rows of an interval that was never published."""
        contract = self.tables[asset].contract
        if not columns_of(self.con, asset):
            return 0
        here = in_intervals(contract.partition, [interval])
        return int(publications.one(self.con, f"select count(*) from orders.{identifier(asset)} where {here}")[0])

    def _content(self, table: str, publication: Publication, measured: Measured) -> Finding:
        """Rows, digest and sums measured anew equal those of the publication."""
        changed = measured.changes_since(publication)
        left = f"{publication.row_count} rows {publication.digest[:SHORT]}"
        if not changed:
            return Finding(table, publication.interval, "content", True, left, left)
        keys, note = self._locate(table, publication)
        named = f"keys: {', '.join(k.item for k in keys)}" if keys else note
        if measured.trouble:
            return Finding(table, publication.interval, "content", False, left, measured.trouble, "", named, keys)
        right = f"{measured.rows} rows {measured.digest[:SHORT]}"
        return Finding(table, publication.interval, "content", False, left, right, changed, named, keys)

    def _foreign(self, table: str, publication: Publication, measured: Measured) -> Finding:
        """Every row carries the id of the interval's current publication."""
        if measured.trouble or measured.producers <= {publication.publication_id}:
            return Finding(table, publication.interval, "foreign_rows", True, "0", "0")
        contract = self.tables[table].contract
        key = ", ".join(f"{identifier(c)}::varchar" for c in contract.key or tuple(contract.columns))
        here = in_intervals(contract.partition, [publication.interval])
        rows = self.con.execute(
            f"select concat_ws(' · ', {key}), {PRODUCED_BY}::varchar, count(*) over () from orders.{identifier(table)} "
            f"where {here} and {PRODUCED_BY} is distinct from ?::uuid order by all limit {SHOWN}",
            [publication.publication_id],
        ).fetchall()
        keys = tuple(Difference(item, publication.publication_id, producer) for item, producer, _ in rows)
        count, named = rows[0][2], ", ".join(k.item for k in keys)
        return Finding(
            table, publication.interval, "foreign_rows", False, "0", str(count), f"rows +{count}",
            f"produced_by is not {publication.publication_id}: {named}", keys,
        )  # fmt: skip

    def _identity(self, asset: str, intervals: Sequence[str]) -> dict[str, Finding]:
        """The asset's own identity, over all intervals at once; not judged where its inputs were replaced or spoiled since."""
        identity = self.tables[asset].identity
        if not identity:
            return {}
        found: dict[str, Finding] = {}
        published = self.publications(asset, intervals)
        unsound = self._unsound_inputs(asset, published)
        for name in (asset, *self.companions(asset)):
            for interval, publication in self.publications(name, intervals).items():
                changed = self.measured(name, [interval])[interval].changes_since(publication)
                if changed and (publication.location or name != asset):
                    unsound[interval] = (f"not compared: {name} {interval} no longer holds what was published", False)
        judged = [i for i in intervals if i not in unsound]
        compared: dict[str, list[Difference]] = {}
        for day, item, left, right in self._query(asset, judged, identity.sql):
            compared.setdefault(day, []).append(Difference(item, left, right))
        for interval in intervals:
            if interval in unsound:
                reason, is_own = unsound[interval]
                found[interval] = Finding(asset, interval, "identity", not is_own, details=reason)
                continue
            lines = compared.get(interval, [])
            bad = [line for line in lines if line.left != line.right]
            if not bad:
                text = ", ".join(f"{line.item} {line.left}" for line in lines[:SUMMED]) or "0 rows"
                found[interval] = Finding(asset, interval, "identity", True, text, text, differences=tuple(lines[:SHOWN]))
                continue
            keys = tuple(Difference(*row[1:]) for row in self._query(asset, [interval], identity.keys)) if identity.keys else ()
            named = f"keys: {', '.join(k.item for k in keys)}" if keys else ""
            found[interval] = Finding(
                asset, interval, "identity", False, ", ".join(f"{d.item} {d.left}" for d in bad[:SHOWN]),
                ", ".join(f"{d.item} {d.right}" for d in bad[:SHOWN]),
                ", ".join(f"{d.item} {difference(d.left, d.right)}" for d in bad[:SHOWN]), named, (*bad, *keys)[:SHOWN],
            )  # fmt: skip
        return found

    def _unsound_inputs(self, asset: str, published: Mapping[str, Publication]) -> dict[str, tuple[str, bool]]:
        """Why an interval's inputs are not what it was made from any more, and whether that counts against the asset itself."""
        reads: dict[str, set[str]] = {}
        for publication in published.values():
            for item in publication.inputs:
                reads.setdefault(item.asset, set()).add(item.interval)
        current = {(a, i): p for a, wanted in reads.items() for i, p in self.publications(a, sorted(wanted)).items()}
        held: dict[Pair, Measured] = {}
        for read, wanted in reads.items():
            doubted = sorted(i for i in wanted if (p := current.get((read, i))) and p.publication_id not in self._judged_here)
            held.update({(read, i): m for i, m in self.measured(read, doubted).items()})
        found: dict[str, tuple[str, bool]] = {}
        for interval, publication in published.items():
            for item in publication.inputs:
                now = current.get((item.asset, item.interval))
                if now is None or now.digest != item.digest:
                    found[interval] = (f"not compared: {item.asset} {item.interval} was replaced since", False)
                elif (measured := held.get((item.asset, item.interval))) and measured.changes_since(now):
                    is_own = bool(self.run_id) and publication.run_id == self.run_id
                    reason = f"{item.asset} {item.interval} no longer holds what was published"
                    found[interval] = (reason if is_own else f"not compared: {reason}", is_own)
        return found

    def _query(self, asset: str, intervals: Sequence[str], sql: str) -> list[tuple[str, str, str | None, str | None]]:
        """Run an identity's SQL over views of the table, its companions and its inputs."""
        if not intervals:
            return []
        table = self.tables[asset]
        reads: dict[str, set[str]] = {name: set(intervals) for name in (asset, *self.companions(asset))}
        for publication in self.publications(asset, intervals).values():
            for item in publication.inputs:
                reads.setdefault(item.asset, set()).add(item.interval)
        for name in set(table.inputs.values()) - set(reads):
            reads[name] = set()
        self._create_views({name: (name, sorted(wanted)) for name, wanted in reads.items()}, intervals, table)
        rows = self.con.execute(f"select interval_date::varchar, item, left_value, right_value from ({sql}) order by all")
        wanted = set(intervals)
        return [row for row in rows.fetchall() if row[0] in wanted]

    def _create_views(self, views: Mapping[str, tuple[str, Sequence[str]]], intervals: Sequence[str], table: Table) -> None:
        create_run_intervals(self.con, self.calendar, intervals, table.contract.step_days)
        for view, (name, wanted) in views.items():
            if self.tables[name].is_export:
                paths = [safe_path(self.exports_root, p.location or "") for p in self.publications(name, wanted).values()]
                _create_csv_view(self.con, view, self.tables[name].contract, paths)
                continue
            item = Input(identifier(view), name, self.tables[name].contract.partition, {"": wanted})
            create_views(
                self.con, [item], {(name, i): p for i, p in self.publications(name, wanted).items()}, self.landing_root
            )

    def _locate(self, name: str, publication: Publication) -> tuple[tuple[Difference, ...], str]:
        """The keys whose rows are not what the table's own SQL makes of the recorded inputs, or why that cannot be told."""
        table = self.tables[name]
        owner = self.tables[table.companion_of] if table.companion_of else table
        sql = owner.query().get(name)
        if self._located >= LOCATED:
            return (), f"for its keys: orders reconcile {publication.interval}"
        if not sql or owner.code_version != publication.code_version:
            return (), "its keys cannot be told: the code that made it has changed" if sql else ""
        if reason := self._unsound_inputs(name, {publication.interval: publication}).get(publication.interval):
            return (), f"its keys cannot be told: {reason[0].removeprefix('not compared: ')}"
        self._located += 1
        views = {
            view: (asset, sorted(r.interval for r in publication.inputs if r.asset == asset))
            for view, asset in owner.inputs.items()
        }
        self._create_views(views, [publication.interval], owner)
        held = f"orders.{identifier(name)}"
        try:
            if table.is_export:
                held = "_file"
                _create_csv_view(self.con, held, table.contract, [safe_path(self.exports_root, publication.location or "")])
            return differing_keys(self.con, held, table.contract, publication.interval, sql), ""
        except duckdb.Error as error:
            return (), f"its keys cannot be told: {str(error).splitlines()[0]}"


def _create_csv_view(con: Any, view: str, contract: TableContract, paths: Sequence[Path]) -> None:
    """A view over exported files, typed by their contract."""
    columns = ", ".join(f"{literal(c)}: {literal(column.type)}" for c, column in contract.columns.items())
    listed = ", ".join(literal(str(path)) for path in paths)
    rows = f"read_csv([{listed}], header = true, delim = ',', quote = '\"', columns = {{{columns}}})"
    con.execute(f"create or replace temp view {identifier(view)} as from {rows}")


def difference(left: str | None, right: str | None) -> str:
    """Right minus left, exact, where both are numbers.

    >>> difference("10.00", "9.50"), difference("10", "12"), difference("a", "b")
    ('-0.50', '+2', '≠')
    """
    try:
        return f"{EXACT.subtract(Decimal(right or 0), Decimal(left or 0)):+f}"
    except InvalidOperation:
        return "≠"
