"""The audit. Belongs here: what needs a person, as findings over facts, states, attempts, files and deliveries; pure.

Not here: collecting them (dagster_facts.py, cli/audit.py), or comparing content (reconcile.py).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from orders_platform.calendar import Calendar, blocks
from orders_platform.recovery.closure import Graph
from orders_platform.recovery.states import Facts, State
from orders_platform.warehouse.contract import PRODUCED_BY, identifier, literal
from orders_platform.warehouse.publications import Pair


@dataclass(frozen=True)
class Attempt:
    """Runs that planned a pair and did not materialize it, since it was last materialized.

    Attributes:
        count: How many.
        run_id: The newest of them.
        outcome: failed (its step failed), blocked (its step never started) or running.
    """

    count: int
    run_id: str
    outcome: str


@dataclass(frozen=True)
class Sent:
    """One revision of one week in the delivery ledger, in brief."""

    export: str
    week: str
    key: str
    state: str
    digest: str
    is_latest: bool


@dataclass(frozen=True)
class Evidence:
    """Everything the audit goes by.

    Attributes:
        attempts: Pairs whose newest attempt did not materialize them.
        foreign: (table, interval) -> rows that no current publication owns.
        content: Export week -> digest the ledger would know it by.
        silent: Pairs whose current publication Dagster never heard of -> its run: ended, running, or unknown to Dagster.
        orphans: Landed files that no publication names.
        now: UTC, naive.
    """

    graph: Graph
    facts: Facts
    states: Mapping[Pair, State]
    calendar: Calendar
    now: datetime
    deadline: timedelta
    attempts_allowed: int = 2
    silent: Mapping[Pair, str] = field(default_factory=dict)
    attempts: Mapping[Pair, Attempt] = field(default_factory=dict)
    foreign: Mapping[Pair, int] = field(default_factory=dict)
    deliveries: Sequence[Sent] = ()
    content: Mapping[str, str] = field(default_factory=dict)
    orphans: Sequence[str] = ()


@dataclass(frozen=True)
class Finding:
    """One thing the audit found.

    Attributes:
        interval: One interval, or a span first...last that the commands take.
        remedy: The command to run.
        needs_person: False for what is only worth knowing.
    """

    finding: str
    asset: str
    interval: str
    detail: str
    remedy: str
    needs_person: bool = True


def audit(evidence: Evidence) -> list[Finding]:
    """Every finding, what needs a person first, in graph order."""
    found = [
        *_claims(evidence), *_states(evidence), *_attempts(evidence), *_missing(evidence), *_foreign(evidence),
        *_deliveries(evidence), *_unclaimed(evidence), *_code(evidence), *_orphans(evidence),
    ]  # fmt: skip
    return sorted(found, key=lambda item: not item.needs_person)


def _claims(e: Evidence) -> Iterator[Finding]:
    for asset, spans in _spans(e, {p for p, s in e.states.items() if s.name == "claimed"}):
        for span in spans:
            reason = e.states[asset, span[0]].reason
            yield Finding("claim without data", asset, _text(span), reason, _repair(asset, span, "marked, never made"))


def _states(e: Evidence) -> Iterator[Finding]:
    held = {p for p, s in e.states.items() if s.name == "held" and s.causes == (p,)}
    for asset, spans in _spans(e, held):
        for span in spans:
            remedy = f"orders quarantine release {asset} {_text(span)} --reason …"
            yield Finding("quarantined", asset, _text(span), e.states[asset, span[0]].reason, remedy)
    for asset, spans in _spans(e, {p for p, s in e.states.items() if s.name == "divergent"}):
        for span in spans:
            remedy = f"orders reconcile {span[0]}; then {_repair(asset, span, 'does not reconcile')}"
            yield Finding("divergent", asset, _text(span), e.states[asset, span[0]].reason, remedy)
    # A stale pair behind another stale one is mended with it: the first of each chain is named.
    stale = {p for p, s in e.states.items() if s.name == "stale" and not _is_behind(e, p)}
    for asset, spans in _spans(e, stale):
        for span in spans:
            yield Finding("stale", asset, _text(span), e.states[asset, span[0]].reason, _repair(asset, span, "input replaced"))


def _is_behind(e: Evidence, pair: Pair) -> bool:
    return any(cause in e.states and e.states[cause].name != "current" for cause in e.states[pair].causes)


def _attempts(e: Evidence) -> Iterator[Finding]:
    for pair in e.graph.sort(p for p in e.attempts if p in e.states):
        attempt, state = e.attempts[pair], e.states[pair]
        asset, interval = pair
        if attempt.outcome == "running" or state.name in ("current", "held"):
            continue
        tried = f"{attempt.count} attempt{'s' * (attempt.count > 1)}, the last by run {attempt.run_id}"
        if attempt.outcome == "failed":
            yield Finding("failed", asset, interval, f"{state.name} after {tried}", _repair(asset, [interval], "failed"))
        else:
            causes = roots(e.graph, e.states, pair)
            named = ", ".join(" ".join(cause) for cause in causes) or "something before it in that run"
            first = causes[0] if causes else pair
            detail = f"{state.name}; it never started in run {attempt.run_id}, because of {named}"
            yield Finding("blocked", asset, interval, detail, _repair(first[0], [first[1]], "blocks what reads it"))
    many = {p: a for p, a in e.attempts.items() if a.count > e.attempts_allowed and p in e.states}
    for pair in e.graph.sort(many):
        detail = f"{many[pair].count} attempts without success, {e.attempts_allowed} allowed"
        yield Finding("many attempts", *pair, detail, f"orders show {' '.join(pair)}")


def roots(graph: Graph, states: Mapping[Pair, State], pair: Pair) -> list[Pair]:
    """The nearest inputs that are themselves at fault: not current, with nothing not current above them."""
    found: list[Pair] = []
    waiting, seen = [pair], {pair}
    while waiting:
        for parent in graph.parents.get(waiting.pop(), ()):
            if parent in seen or parent not in states or states[parent].name == "current":
                continue
            seen.add(parent)
            above = [p for p in graph.parents.get(parent, ()) if p in states and states[p].name != "current"]
            (waiting if above else found).append(parent)
    return graph.sort(found)


def _missing(e: Evidence) -> Iterator[Finding]:
    tried = {p for p, a in e.attempts.items() if a.outcome != "running"}
    due = {p for p, s in e.states.items() if s.name == "missing" and p not in tried and e.now > _deadline(e, p)}
    for asset, spans in _spans(e, due):
        for span in spans:
            waits = roots(e.graph, e.states, (asset, span[0]))
            before = f"; it needs {' '.join(waits[0])}, which is {e.states[waits[0]].name}" if waits else ""
            step = f"--partition {span[0]}" if len(span) == 1 else f"--partition-range {_text(span)}"
            remedy = f"dagster asset materialize --select {asset} {step}"
            if waits:
                start = [
                    block for name, found in _spans(e, due) if name == waits[0][0] for block in found if waits[0][1] in block
                ]
                remedy = _repair(waits[0][0], start[0] if start else [waits[0][1]], "never made")
            detail = f"{len(span)} never run, past the deadline of {e.deadline.total_seconds() / 3600:g} h{before}"
            yield Finding("late", asset, _text(span), detail, remedy)


def _deadline(e: Evidence, pair: Pair) -> datetime:
    last = e.calendar.days_of(pair[1])[-1] if e.graph.nodes[pair[0]].step_days > 1 else pair[1]
    return e.calendar.window(last)[1].replace(tzinfo=None) + e.deadline


def _foreign(e: Evidence) -> Iterator[Finding]:
    for (table, interval), count in sorted(e.foreign.items()):
        owner = e.graph.owner_of.get(table, table)
        detail = f"{count} rows that its current publication did not write"
        yield Finding("foreign rows", table, interval, detail, _repair(owner, [interval], "foreign rows"))


def _deliveries(e: Evidence) -> Iterator[Finding]:
    for item in e.deliveries:
        if not item.is_latest:
            continue
        where, show = (item.export, item.week), f"orders deliveries show {item.week}"
        if item.state == "in_doubt":
            remedy = f"{show}; then orders deliveries resolve {item.week} --reason …"
            yield Finding("delivery in doubt", *where, f"{item.key}: the partner may have it", remedy)
        elif item.state == "failed":
            remedy = f"{show}; then orders deliveries retry {item.week} --reason …"
            yield Finding("delivery failed", *where, f"{item.key}: refused", remedy)
        elif item.state == "waiting":
            remedy = f"{show}; then orders deliveries approve {item.week} --reason …"
            yield Finding("delivery waits", *where, f"{item.key}: a correction waits for approval", remedy)
        elif item.state == "delivered" and e.content.get(item.week, item.digest) != item.digest:
            detail = f"{item.key} was sent, and what is published now is other content"
            yield Finding("delivery differs", *where, detail, f"orders deliveries show {item.week}")


def _unclaimed(e: Evidence) -> Iterator[Finding]:
    """Published, and Dagster was never told.

    A run that ended in between leaves work for a person: nobody retries it, and its checks did not judge what it published. A run
    that Dagster does not know leaves none: what is current is decided by publications, never by events.
    """
    late = {p for p, how in e.silent.items() if how == "running" and e.now - e.facts.current[p].published_at > e.deadline}
    ended = late | {p for p, how in e.silent.items() if how == "ended"}
    for asset, spans in _spans(e, ended):
        for span in spans:
            run_id = e.facts.current[asset, span[0]].run_id
            detail = f"{len(span)} published by run {run_id}, which ended before Dagster and its checks were told"
            yield Finding(
                "data without claim", asset, _text(span), detail, _repair(asset, span, "its run died after publishing")
            )
    for asset, spans in _spans(e, {p for p, how in e.silent.items() if how == "unknown"}):
        for span in spans:
            detail = f"{len(span)} published by runs that Dagster has no record of (another DAGSTER_HOME, or they were deleted)"
            remedy = f"orders show {asset} {span[0]}"
            yield Finding("data without claim", asset, _text(span), detail, remedy, needs_person=False)


def _code(e: Evidence) -> Iterator[Finding]:
    """Never urgent: every deployment leaves it, and whether the past is worth rebuilding is a wish, not a fault."""
    for node in e.graph.nodes.values():
        versions: list[tuple[str, list[str]]] = []
        for interval in node.intervals:
            version = e.facts.current.get((node.asset, interval))
            if version is None:
                continue
            if versions and versions[-1][0] == version.code_version:
                versions[-1][1].append(interval)
            else:
                versions.append((version.code_version, [interval]))
        if len({version for version, _ in versions}) < 2:
            continue
        detail = ", ".join(f"{_text(own)} by {version}" for version, own in versions[:8])
        newest = max(versions, key=lambda item: max(e.facts.current[node.asset, i].published_at for i in item[1]))[0]
        older = next(own for version, own in versions if version != newest)
        span = [versions[0][1][0], versions[-1][1][-1]]
        remedy = _repair(node.asset, older, "older code")
        yield Finding(
            "mixed code", node.asset, _text(span), f"code changes inside the range: {detail}", remedy, needs_person=False
        )


def _orphans(e: Evidence) -> Iterator[Finding]:
    """Never urgent: nobody reads them, and maintenance removes them when they are old enough."""
    for location in e.orphans:
        asset, interval = location.split("/")[0], location.split("=")[-1].split("/")[0]
        detail = f"{location}: no publication names it (a run ended between writing and publishing)"
        yield Finding("orphaned file", asset, interval, detail, "orders maintenance", needs_person=False)


def _spans(e: Evidence, pairs: Collection[Pair]) -> Iterator[tuple[str, list[list[str]]]]:
    """Asset by asset, the contiguous spans of these pairs that share a reason's cause."""
    for node in e.graph.nodes.values():
        own = [i for i in node.intervals if (node.asset, i) in pairs]
        if own:
            yield node.asset, blocks(own, timedelta(days=node.step_days or 1))


def _text(span: Sequence[str]) -> str:
    return span[0] if len(span) == 1 or span[0] == span[-1] else f"{span[0]}...{span[-1]}"


def _repair(asset: str, span: Sequence[str], reason: str) -> str:
    return f'orders repair {asset} {_text(span)} --reason "{reason}"'


def foreign_rows(con: Any, tables: Iterable[tuple[str, str]]) -> dict[Pair, int]:
    """Rows that the current publication of their interval did not write, by (table, interval).

    Args:
        con: A session of the warehouse.
        tables: (table, its partition column).
    """
    found: dict[Pair, int] = {}
    there = {row[0] for row in con.execute("select table_name from duckdb_tables() where schema_name = 'orders'").fetchall()}
    for table, partition in tables:
        if table not in there:
            continue
        rows = con.execute(
            f"select t.{identifier(partition)}::varchar, count(*) from orders.{identifier(table)} t left join "
            f'(select publication_id, "interval" from platform.current_publications where asset = {literal(table)}) p '
            f'on p.publication_id = t.{PRODUCED_BY} and p."interval" = t.{identifier(partition)}::varchar '
            "where p.publication_id is null group by all"
        ).fetchall()
        found.update({(table, interval or ""): count for interval, count in rows})
    return found
