"""A small platform for random histories: the real landing, swap, gates, states and ledger over five tables of a week.

Beside it a slow, obvious model in plain Python. No Dagster: its claims are a dictionary.
"""

import atexit
import hashlib
import shutil
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from orders_platform.calendar import Calendar
from orders_platform.delivery.ledger import Ledger
from orders_platform.delivery.states import Content
from orders_platform.recovery import states
from orders_platform.recovery.closure import Graph, Node
from orders_platform.recovery.repair import Launched
from orders_platform.recovery.states import Facts, State
from orders_platform.warehouse import landing, publications
from orders_platform.warehouse.contract import Column, TableContract
from orders_platform.warehouse.exports import csv_bytes
from orders_platform.warehouse.inputs import Input
from orders_platform.warehouse.publications import Pair, Publication
from orders_platform.warehouse.swap import Swap
from orders_platform.warehouse.tables import Output
from tests.recovery.graphs import CALENDAR, days
from tests.recovery.partner import Killed, Partner

DAYS = days(7)
WEEK = DAYS[0]
SCHEMA = pa.schema([("order_id", pa.string()), ("amount", pa.string())])
MONEY = "DECIMAL(18,2)"


def contract(columns: dict[str, str], partition: str = "order_date", step_days: int = 1) -> TableContract:
    made = {name: Column(kind, name, max_null_share=0) for name, kind in {partition: "DATE", **columns}.items()}
    return TableContract("one row", made, key=(), partition=partition, allow_empty=True, step_days=step_days)


CONTRACTS = {
    "raw": contract({"order_id": "VARCHAR", "amount": "VARCHAR"}),
    "stg": contract({"order_id": "VARCHAR", "amount": MONEY}),
    "daily": contract({"amount": MONEY}),
    "total": contract({"amount": MONEY}),
    "export": contract({"order_date": "DATE", "amount": MONEY}, "week", 7),
}
SQL = {
    "stg": f"select order_date, order_id, amount::{MONEY} as amount from raw where try_cast(amount as {MONEY}) is not null",
    "daily": f"select order_date, sum(amount)::{MONEY} as amount from stg group by order_date",
    "total": f"""
        with moved as (select order_date, amount from daily union all select order_date + 1, amount from total)
        select interval_date as order_date, coalesce(sum(amount), 0)::{MONEY} as amount
        from run_intervals left join moved on order_date <= interval_date group by interval_date""",
    "export": "select date_trunc('week', order_date)::date as week, order_date, amount from daily",
}
INPUTS = {"raw": (), "stg": ("raw",), "daily": ("stg",), "total": ("daily", "total"), "export": ("daily",)}


def graph(intervals: Sequence[str] = DAYS) -> Graph:
    """Whole weeks of the five tables."""
    weeks = {intervals[n]: tuple(intervals[n : n + 7]) for n in range(0, len(intervals), 7)}
    same = {i: (i,) for i in intervals}
    before = {i: tuple(intervals[n - 1 : n]) if n else () for n, i in enumerate(intervals)}
    nodes = {name: Node(name, tuple(intervals), is_source=name == "raw") for name in ("raw", "stg", "daily", "total")}
    nodes["export"] = Node("export", tuple(weeks), 7)
    needs = {("stg", "raw"): same, ("daily", "stg"): same, ("total", "daily"): same, ("total", "total"): before}
    edges = {**needs, ("export", "daily"): weeks}
    return Graph(nodes, edges, frozenset(edges))


GRAPH = graph()
OPEN = Calendar(CALENDAR.start)


@cache
def root() -> Path:
    """Files of all histories, in memory where there is such a folder, for landing syncs every file."""
    memory = Path("/dev/shm")  # noqa: S108
    found = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, found, ignore_errors=True)
    return found


@cache
def landed(day: str, rows: tuple[tuple[str, str], ...]) -> landing.LandedFile:
    """The rows as a landed file; equal rows are landed once in all histories, for they have one file anyway."""
    batch = pa.RecordBatch.from_pylist([{"order_id": o, "amount": a} for o, a in rows], SCHEMA)
    return landing.land(root(), "raw", day, "order_date", [batch], SCHEMA)


@dataclass
class Faulty:
    """A connection that fails, or dies, at its n-th statement."""

    con: Any
    at: int
    kill: bool
    count: int = 0

    def execute(self, sql: str, *values: Any) -> Any:
        if self.kill and self.count >= self.at:
            raise Killed
        self.count += 1
        if self.count == self.at:
            raise Killed if self.kill else duckdb.IOException("the disk failed")
        return self.con.execute(sql, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.con, name)


@dataclass(frozen=True)
class Made:
    """One publication in the model: what it holds, what it read, by which run."""

    content: Any
    read: dict[Pair, Any]
    run_id: str
    is_failing: bool = False


@dataclass
class Model:
    """What should be true, written as plainly as it can be."""

    graph: Graph
    source: dict[str, dict[str, str]]
    made: dict[Pair, list[Made]] = field(default_factory=dict)
    held: set[Pair] = field(default_factory=set)
    claims: dict[Pair, str] = field(default_factory=dict)
    interventions: int = 0

    def content(self, asset: str, interval: str, read: dict[Pair, Any]) -> Any:
        """The pure function of what was read."""
        if asset == "raw":
            return tuple(sorted(self.source[interval].items()))
        if asset == "stg":
            return tuple((o, Decimal(a)) for o, a in read["raw", interval] if a.replace(".", "").isdigit())
        if asset == "daily":
            rows = read["stg", interval]
            return sum((a for _, a in rows), Decimal(0)) if rows else None
        if asset == "total":
            day_before = [c for (a, _), c in read.items() if a == "total"]
            return sum(day_before, Decimal(0)) + (read["daily", interval] or 0)
        return tuple((day, amount) for (_, day), amount in sorted(read.items()) if amount is not None)

    def newest(self, pair: Pair) -> Made | None:
        return self.made.get(pair, [None])[-1]

    def refuses(self, asset: str, intervals: Sequence[str]) -> bool:
        """An input outside the run is missing, held, or failed its check."""
        own = {(asset, i) for i in intervals}
        parents = {p for pair in own for p in self.graph.parents.get(pair, ())} - own
        return any(p in self.held or (now := self.newest(p)) is None or now.is_failing for p in parents)

    def make(self, asset: str, intervals: Sequence[str], run_id: str) -> None:
        for interval in intervals:
            read = {p: self.made[p][-1].content for p in self.graph.parents.get((asset, interval), ())}
            self.made.setdefault((asset, interval), []).append(Made(self.content(asset, interval, read), read, run_id))

    def is_held(self, pair: Pair) -> bool:
        return pair in self.held or any(self.is_held(p) for p in self.graph.parents.get(pair, ()))

    def state(self, pair: Pair) -> str:
        now = self.newest(pair)
        if self.is_held(pair):
            return "held"
        if now and now.is_failing:
            return "divergent"
        if pair in self.claims and self.claims[pair] not in {m.run_id for m in self.made.get(pair, [])}:
            return "claimed"
        if now is None:
            return "missing"
        if any(self.made[p][-1].content != seen for p, seen in now.read.items()):
            return "stale"
        return "current" if all(self.state(p) == "current" for p in self.graph.parents.get(pair, ())) else "stale"


class Platform:
    """The real parts, and the model that is told the same."""

    def __init__(self, graph: Graph = GRAPH) -> None:
        self.graph = graph
        self.root = root()
        self.base = duckdb.connect()
        self.base.execute("set TimeZone = 'UTC'; set threads = 1")
        publications.prepare(self.base, OPEN)
        self.model = Model(graph, {day: {} for day in graph.nodes["raw"].intervals})
        self.clock = datetime(2026, 2, 1)
        self.ledger_file = self.root / f"{uuid.uuid4()}.db"
        self.ledger = Ledger(f"sqlite:///{self.ledger_file}", lambda: self.clock)
        self.partner = Partner(self.ledger, self.root, self.wait)
        self.runs = 0

    def close(self) -> None:
        self.base.close()
        self.ledger_file.unlink(missing_ok=True)

    # What happens

    def run(self, asset: str, intervals: Sequence[str], at: int = 0, *, kill: bool = False, event: bool = True) -> Launched:
        """One run of one asset; fails or dies at its `at`-th statement, or after it committed and before its event."""
        self.runs += 1
        run_id = f"run {self.runs}"
        session = self.base.cursor()
        session.execute("set TimeZone = 'UTC'")
        con = Faulty(session, at, kill) if at else session
        error = ""
        try:
            for part in [[i] for i in intervals] if asset == "raw" else [list(intervals)]:
                self._publish(con, asset, part, run_id)
        except Killed:
            error = "killed"
        except (duckdb.Error, publications.OrdersError) as failure:
            error = str(failure)
        session.close()
        self._tell_model(asset, intervals, run_id, error, is_faulty=bool(at))
        if not error and event:
            self.model.claims.update({(asset, i): run_id for i in intervals})
        return Launched(run_id, not error, error)

    def _publish(self, con: Any, asset: str, intervals: list[str], run_id: str) -> None:
        if asset == "raw":
            (day,) = intervals
            file = landed(day, tuple(self.model.source[day].items()))
            made = Publication(
                "raw", day, run_id, "v1", file.digest, file.row_count, location=file.location, sha256=file.sha256
            )
            publications.publish(con, made, lambda: None)
            return
        inputs = []
        for read in INPUTS[asset]:
            needs = {i: self.graph.needs[asset, read][i] for i in intervals}
            inputs.append(Input(read, read, CONTRACTS[read].partition, needs))
        Swap([Output(asset, CONTRACTS[asset], SQL[asset])], intervals, inputs, run_id, "v1", OPEN, self.root).run(con)

    def _tell_model(self, asset: str, intervals: Sequence[str], run_id: str, error: str, *, is_faulty: bool) -> None:
        """All of a swap or nothing; without a fault, exactly when its inputs may be read."""
        rows = self.base.execute('select "interval" from platform.publications where run_id = ? order by all', [run_id])
        done = [row[0] for row in rows.fetchall()]
        if asset == "raw":
            assert done == list(intervals)[: len(done)]
        else:
            assert done in ([], list(intervals)), (asset, intervals, done)
        refused = self.model.refuses(asset, intervals)
        assert not (refused and done), f"{asset} {intervals} was made from what may not be read"
        assert is_faulty or refused == bool(error), (asset, intervals, error)
        self.model.make(asset, done, run_id)

    def send(self, answer: str) -> None:
        """One run of the delivery of the week's export, as it is published and current; the partner does with it as told."""
        if self.model.newest(("export", WEEK)) is None or self.model.state(("export", WEEK)) != "current":
            return
        rows = self.base.execute("select order_date, amount from orders.export order by all").fetchall()
        data = csv_bytes(["order_date", "amount"], rows)
        digest = hashlib.sha256(data).hexdigest()
        file = self.root / f"{digest}.csv"
        file.write_bytes(data)
        file.with_suffix(".json").write_text("{}")
        current = publications.current(self.base, [("export", WEEK)])["export", WEEK]
        self.partner.deliver(Content("finance_export", WEEK, digest, file.name, current.publication_id), answer)

    def wait(self, seconds: float) -> None:
        self.clock += timedelta(seconds=seconds)

    # What is true

    def look(self) -> tuple[Facts, dict[Pair, State]]:
        facts = states.read_facts(self.base, self.graph, self.model.claims)
        return facts, states.states(self.graph, facts)

    def check(self) -> None:
        """Every invariant."""
        _, found = self.look()
        assert {p: s.name for p, s in found.items()} == {p: self.model.state(p) for p in found}
        self._check_rows()
        self.partner.check(WEEK)
        count = self.base.execute("select count(distinct intervention_id) from platform.interventions").fetchall()[0][0]
        assert count == self.model.interventions

    def _check_rows(self) -> None:
        """Published rows are the pure function of the versions that their publication names, down to the landed file."""
        from orders_platform.recovery.audit import foreign_rows

        assert not foreign_rows(self.base, [(t, CONTRACTS[t].partition) for t in SQL])
        known = publications.all_current(self.base)
        rows = self._rows(known)
        assert set(known) == set(self.model.made)
        for pair, made in self.model.made.items():
            assert known[pair].run_id == made[-1].run_id
            assert {(r.asset, r.interval) for r in known[pair].inputs} == set(made[-1].read)
            found = tuple(sorted(rows.get(pair, ())))
            if pair[0] in ("daily", "total"):
                assert found == (() if made[-1].content is None else ((made[-1].content,),)), pair
            else:
                assert found == made[-1].content, pair

    def _rows(self, known: dict[Pair, Publication]) -> dict[Pair, list[Any]]:
        """What every pair holds, landed files read anew."""
        found: dict[Pair, list[Any]] = {}
        files = {str(self.root / (p.location or "")): pair for pair, p in known.items() if pair[0] == "raw"}
        if files:
            query = "select filename, order_id, amount from read_parquet(?, filename = true)"
            for name, *row in self.base.execute(query, [list(files)]).fetchall():
                found.setdefault(files[name], []).append(tuple(row))
        there = {row[0] for row in self.base.execute("select table_name from duckdb_tables()").fetchall()}
        wanted = {"stg": "order_id, amount", "daily": "amount", "total": "amount", "export": "order_date::varchar, amount"}
        for asset in there & set(wanted):
            query = f"select {CONTRACTS[asset].partition}::varchar, {wanted[asset]} from orders.{asset}"
            for interval, *row in self.base.execute(query).fetchall():
                found.setdefault((asset, interval), []).append(tuple(row))
        return found


class Launcher:
    """Runs of a repair on the small platform."""

    def __init__(self, there: Platform) -> None:
        self.there = there
        self.ids: set[str] = set()

    def launch(self, asset: str, runs: Sequence[Sequence[str]]) -> list[Launched]:
        made = [self.there.run(asset, run) for run in runs]
        self.ids |= {item.run_id for item in made}
        return made

    def run_ids(self) -> set[str]:
        return self.ids
