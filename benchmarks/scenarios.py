"""What is measured. Belongs here: one function a scenario, each a list of measurements on files that all tools share.

Not here: how a tool is driven (tools.py), how a process is measured (measure.py). Tools alternate within a round and the least
of all rounds counts, so that a busy machine hits all of them alike.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise, product
from pathlib import Path
from typing import Any

from benchmarks.measure import Cost, run
from benchmarks.tools import (
    FIRST,
    PROJECT,
    TABLES,
    WORK,
    Command,
    Dbt,
    Floor,
    FloorByDay,
    OnLake,
    Ours,
    SqlMesh,
    Stock,
    StockByDay,
    Tool,
    Unchecked,
    ahead,
)
from tests.servers import new_database, postgres_server

DAILY = ("raw_orders", "stg_orders", "fct_orders", "revenue_daily")
SAMPLE_START = date(2026, 1, 5)
DAYS_WRITTEN = 24


class Disagreement(Exception):
    """Two tools made different tables of the same files, so their times cannot be compared."""


@dataclass(frozen=True)
class Options:
    """How large and how often.

    Attributes:
        days: Days of the range scenarios.
        orders: Different orders a day.
        rounds: Repetitions; the least counts.
        history: Days of the long warehouse in `history`.
        large: Orders of the single day in `memory`.
        slow: Whether tools that go a day at a time also run where that takes minutes.
    """

    days: int = 30
    orders: int = 100_000
    rounds: int = 3
    history: int = 1_100
    large: int = 5_000_000
    slow: bool = False


@dataclass
class Line:
    """One measured step of one tool, over all rounds."""

    scenario: str
    size: str
    step: str
    tool: str
    costs: list[Cost] = field(default_factory=list)

    @property
    def wall(self) -> float:
        return min(cost.wall for cost in self.costs)

    @property
    def inner(self) -> float | None:
        """Seconds spent publishing: from connecting to the file being closed, checkpoint included."""
        found = [cost.facts["seconds"]["publishing"] for cost in self.costs if "seconds" in cost.facts]
        return min(found) if found else None

    def as_row(self) -> dict[str, Any]:
        best = min(self.costs, key=lambda cost: cost.wall)
        return {
            "scenario": self.scenario, "size": self.size, "step": self.step, "tool": self.tool, "wall_seconds": round(self.wall, 3),
            "all_wall_seconds": [round(cost.wall, 3) for cost in self.costs], "cpu_seconds": round(min(cost.cpu for cost in self.costs), 3),
            "peak_mib": round(max(cost.peak_mib for cost in self.costs)), "publishing_seconds": self.inner, "facts": best.facts,
        }  # fmt: skip


@dataclass
class Bench:
    """What a scenario works with: its options, somewhere to say what is done, and the lines measured so far."""

    options: Options
    say: Callable[[str], None]
    busy: Callable[[str], Any]
    lines: list[Line] = field(default_factory=list)

    def line(self, scenario: str, size: str, step: str, tool: Tool) -> Line:
        """The line of that step, begun where there is none."""
        for line in self.lines:
            if (line.scenario, line.size, line.step, line.tool) == (scenario, size, step, tool.name):
                return line
        self.lines.append(Line(scenario, size, step, tool.name))
        return self.lines[-1]

    def measure(self, scenario: str, size: str, step: str, tool: Tool, commands: Sequence[Command]) -> Line:
        """Run the commands one after the other as one step; again in a later round, the costs join the same line."""
        line = self.line(scenario, size, step, tool)
        with self.busy(f"{scenario} {size}: {tool.name}, {step}"):
            costs = [run(c.words, c.environ, c.cwd, tool.root / f"{step.replace(' ', '-')}.log") for c in commands]
        line.costs.append(joined(costs))
        inner = f", {line.costs[-1].facts['seconds']['publishing']:.2f} s publishing" if line.inner is not None else ""
        cost = line.costs[-1]
        self.say(f"{scenario} {size} · {step} · {tool.name}: {cost.wall:.2f} s{inner}, {cost.peak_mib:.0f} MiB")
        return line


def joined(costs: Sequence[Cost]) -> Cost:
    """Several processes one after the other as one cost: times add up, the peak is the largest."""
    facts: dict[str, Any] = {}
    for kind in ("seconds", "counts"):
        dicts = [cost.facts[kind] for cost in costs if kind in cost.facts]
        if dicts:
            facts[kind] = {name: sum(d[name] for d in dicts) for name in dicts[0]}
    peak = max(cost.peak_mib for cost in costs)
    return Cost(sum(cost.wall for cost in costs), sum(cost.cpu for cost in costs), peak, facts)


def orders_command(tool: Ours, *words: str) -> None:
    code = "from orders_platform.cli.main import main; main()"
    subprocess.run([sys.executable, "-c", code, *words], cwd=PROJECT, env=tool.environ, check=True, stdout=subprocess.DEVNULL)


def share(ours: Ours, folder: Path) -> Path:
    """A landing for the other tools: hard links to the newest file of each day, since their globs read every file they find."""
    shutil.rmtree(folder, ignore_errors=True)
    for day in sorted((ours.root / "landing/raw_orders").iterdir()):
        newest = max(day.glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
        target = folder / "raw_orders" / day.name
        target.mkdir(parents=True)
        os.link(newest, target / newest.name)
    return folder


def keep(ours: Ours) -> None:
    """Remember the workspace as it is after landing."""
    for name in ("warehouse.duckdb", "dagster"):
        copied(ours.root / name, ours.root / "kept" / name)


def reset(ours: Ours) -> None:
    """Back to the remembered workspace."""
    for name in ("warehouse.duckdb", "dagster"):
        copied(ours.root / "kept" / name, ours.root / name)


def copied(source: Path, target: Path) -> None:
    if target.is_dir():
        shutil.rmtree(target)
    target.parent.mkdir(exist_ok=True)
    shutil.copytree(source, target) if source.is_dir() else shutil.copyfile(source, target)


def agree(tools: Sequence[Tool]) -> None:
    """Compare the row counts of every table and the revenue to the cent.

    Raises:
        Disagreement: Names the tool and both results.
    """
    tables = [table for table in TABLES if tools[0].features or table != "customer_features"]
    counts = ", ".join(f"(select count(*) from orders.{table})" for table in tables)
    revenue = "(select round(sum(revenue), 2)::decimal(38,2) from orders.revenue_daily)"
    code = (
        "import duckdb, sys; con = duckdb.connect(sys.argv[1], read_only=True); "
        f"print(con.execute('select {counts}, {revenue}').fetchall()[0])"
    )
    found = {}
    for tool in tools:
        words = [sys.executable, "-c", code, str(tool.warehouse)]
        found[tool.name] = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    if len(set(found.values())) > 1:
        raise Disagreement("\n".join(f"{name}: {value}" for name, value in found.items()))


def one_day(bench: Bench) -> None:
    """One day of the committed sample, raw to revenue, as a whole process, after four weeks have been built."""
    root = WORK / "one-day"
    ours = Ours(root / "ours", root / "ours/landing", SAMPLE_START)
    ours.assets = DAILY
    ours.prepare()
    last, day = ahead(SAMPLE_START, 27), ahead(SAMPLE_START, 1)
    with bench.busy("one-day: loading the sample"):
        orders_command(ours, "source", "init", "--yes")
    bench.measure("one-day", "sample", "28 days", ours, [ours.backfill(last)])
    landing = share(ours, root / "landed")
    tools: list[Tool] = [cls(root / cls.requirements, landing, SAMPLE_START) for cls in (SqlMesh, Dbt, StockByDay, Floor)]
    for tool in tools:
        tool.prepare()
        bench.measure("one-day", "sample", "28 days", tool, [tool.backfill(last)])
    agree([ours, *tools])
    for _ in range(bench.options.rounds):
        for tool in (ours, *tools):
            bench.measure("one-day", "sample", "one day", tool, [tool.replace(day, day)])


def landed(bench: Bench, name: str, days: int, orders: int, *, features: bool) -> tuple[Ours, Path]:
    root = WORK / name
    ours = Ours(root / "ours", root / "ours/landing", features=features)
    ours.prepare()
    bench.say(f"Landing {days} days × {orders:,} orders")
    ours.land(days, orders)
    keep(ours)
    return ours, share(ours, root / "landed")


def a_range(bench: Bench, *, features: bool) -> None:
    """Landed text to revenue (and customer_features) from an empty warehouse; then a day again, then a corrected day."""
    days, orders = bench.options.days, bench.options.orders
    scenario, size = "features" if features else "range", f"{days} × {orders:,}"
    root = WORK / scenario
    ours, landing = landed(bench, scenario, days, orders, features=features)
    last, day = ahead(FIRST, days - 1), ahead(FIRST, days // 2)
    small = days * orders <= 3_000_000 or bench.options.slow
    short = days <= 60 or bench.options.slow
    by_day = [
        *([FloorByDay] if short or not features else []),
        *([Dbt] if short else []),
    ]  # features read 28 days of facts a day
    classes = [Floor, SqlMesh, *by_day, *([Stock] if small else [])]
    tools: list[Tool] = [cls(root / cls.__name__.lower(), landing, features=features) for cls in classes]
    for number in range(bench.options.rounds):
        for tool in (ours, *tools):
            # A tool that takes minutes is measured once: noise does not decide by what factor it is behind.
            if number and tool.name.startswith(("stock", "dbt")):
                continue
            reset(ours) if tool is ours else tool.prepare()
            bench.measure(scenario, size, "backfill", tool, [tool.backfill(last)])
    agree([ours, *tools])
    tools = [tool for tool in tools if not isinstance(tool, FloorByDay)]
    for _ in range(bench.options.rounds):
        for tool in (ours, *tools):
            bench.measure(scenario, size, "one day", tool, [tool.replace(last, last)])
    if not features:
        return
    ours.land(1, orders, first=day, seed=2)
    share(ours, root / "landed")
    behind = min(last, ahead(day, 27))
    for _ in range(bench.options.rounds):
        for tool in (ours, *tools):
            again = [tool.replace(day, day), tool.restate_features(ahead(day, 1), behind)]
            bench.measure(scenario, size, "corrected day and what follows", tool, again)
    agree([ours, *tools])


def checks(bench: Bench) -> None:
    """The backfill of `range` with its checks and without."""
    ours, _ = landed(bench, "checks", bench.options.days, bench.options.orders, features=False)
    last = ahead(FIRST, bench.options.days - 1)
    for _ in range(bench.options.rounds):
        for tool in (ours, Unchecked(ours.root, ours.landing)):
            reset(ours)
            size = f"{bench.options.days} × {bench.options.orders:,}"
            bench.measure("checks", size, "backfill", tool, [tool.backfill(last)])


def history(bench: Bench) -> None:
    """One day of 10,000 orders replaced in a warehouse of 30 days and in one of many."""
    made = {}
    for days in (30, bench.options.history):
        ours, _ = landed(bench, f"history-{days}", days, 10_000, features=False)
        made[days] = ours
        for number in range(0, days, 275):
            block = (ahead(FIRST, number), ahead(FIRST, min(days, number + 275) - 1))
            bench.measure("history", f"{days:,} × 10,000", "filling", ours, [ours.replace(*block)])
    for _ in range(2 * bench.options.rounds):
        for days, ours in made.items():
            day = ahead(FIRST, days // 2)
            bench.measure("history", f"{days:,} × 10,000", "one day", ours, [ours.replace(day, day)])


def writers(bench: Bench) -> None:
    """The same 24 days by 1, 2 and 4 run processes at once, each a share of the days: on one file, and on DuckLake."""
    orders = min(bench.options.orders, 10_000)
    ours, _ = landed(bench, "writers", DAYS_WRITTEN, orders, features=False)
    lake = OnLake(WORK / "writers-lake", WORK / "writers-lake/landing")
    with postgres_server() as port:
        server = f"postgresql+psycopg://orders@127.0.0.1:{port}/postgres"
        for _, count in product(range(bench.options.rounds), (1, 2, 4)):
            reset(ours)
            at_once(bench, ours, count, orders)
            made = new_database(server)
            lake.catalog = f"host={made.host} port={made.port} user={made.username} dbname={made.database}"
            lake.prepare()
            lake.land(DAYS_WRITTEN, orders)
            at_once(bench, lake, count, orders)


def at_once(bench: Bench, ours: Ours, count: int, orders: int) -> None:
    line = bench.line("writers", f"{DAYS_WRITTEN} × {orders:,}", f"{count} writers", ours)
    bounds = [DAYS_WRITTEN * n // count for n in range(count + 1)]
    shares = [(ahead(FIRST, a), ahead(FIRST, b - 1)) for a, b in pairwise(bounds)]
    with bench.busy(f"writers: {count} at once, {ours.name}"), ThreadPoolExecutor(count) as pool:
        costs = list(pool.map(lambda job: alone(ours, *job), enumerate(shares)))
    total = joined(costs)
    line.costs.append(Cost(max(cost.wall for cost in costs), total.cpu, total.peak_mib, total.facts))
    bench.say(f"writers · {count} at once · {ours.name}: {line.costs[-1].wall:.2f} s")


def alone(ours: Ours, number: int, days: tuple[date, date]) -> Cost:
    command = ours.replace(*days)
    return run(command.words, command.environ, command.cwd, ours.root / f"writer-{number}.log")


def start_up(bench: Bench) -> None:
    """What a process costs before the first row: Python, Dagster's modules, ours."""
    ours = Ours(WORK / "start-up/ours", WORK / "start-up/ours/landing")
    ours.prepare()
    dagster = "import dagster._cli, dagster._core.storage.base_storage, alembic.command"
    imports = {
        "python": "pass",
        "python, duckdb, pyarrow": "import duckdb, pyarrow.parquet",
        "python, dagster": dagster,
        "python, dagster, definitions": f"{dagster}, orders_platform.definitions",
    }
    for _ in range(bench.options.rounds):
        for name, code in imports.items():
            command = Command([sys.executable, "-W", "ignore", "-c", code], ours.environ, PROJECT)
            bench.measure("start-up", "process", name, ours, [command])


def memory(bench: Bench) -> None:
    """One very large day: reading it with the driver into nothing, landing it, staging it."""
    orders = bench.options.large
    ours = Ours(WORK / "memory/ours", WORK / "memory/ours/landing")
    ours.prepare()
    bench.say(f"Filling a source with one day of {orders:,} orders")
    orders_command(ours, "source", "generate", "--days", "1", "--orders-per-day", str(orders), "--yes")
    size = f"1 × {orders:,}"
    driver = Command(
        [sys.executable, "-m", "benchmarks.driver", str(ours.root / "source.db"), str(FIRST)], ours.environ, PROJECT
    )
    for _ in range(bench.options.rounds):
        bench.measure("memory", size, "driver reads into nothing", ours, [driver])
        bench.measure("memory", size, "landing", ours, [ours.materialize(["raw_orders"], FIRST, FIRST)])
    bench.measure("memory", size, "staging", ours, [ours.materialize(["stg_orders"], FIRST, FIRST)])
    bench.measure("memory", size, "facts and revenue", ours, [ours.materialize(["fct_orders", "revenue_daily"], FIRST, FIRST)])


SCENARIOS: dict[str, Callable[[Bench], None]] = {
    "one-day": one_day,
    "range": lambda bench: a_range(bench, features=False),
    "features": lambda bench: a_range(bench, features=True),
    "checks": checks,
    "history": history,
    "writers": writers,
    "start-up": start_up,
    "memory": memory,
}
