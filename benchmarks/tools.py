"""The tools compared. Belongs here: installing each into its own environment and the commands that drive it.

Not here: what is measured (scenarios.py). Telemetry is off everywhere.
"""

import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import ClassVar

HERE = Path(__file__).parent
PROJECT = HERE.parent
WORK = HERE / "work"
FIRST = date(2021, 1, 4)
TABLES = ("stg_orders", "stg_orders_rejected", "fct_orders", "revenue_daily", "customer_features")
QUIET = {
    "DO_NOT_TRACK": "1",
    "DAGSTER_DISABLE_TELEMETRY": "yes",
    "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    "SQLMESH__DISABLE_ANONYMIZED_ANALYTICS": "true",
    "PYTHONHASHSEED": "0",
    "TZ": "UTC",
}
NOT_INHERITED = ("ORDERS_", "DAGSTER_", "DBT_", "SQLMESH_", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE")


@dataclass(frozen=True)
class Command:
    """One process: its words, its environment and the folder it runs in."""

    words: Sequence[str]
    environ: Mapping[str, str]
    cwd: Path


def environ(**more: str) -> dict[str, str]:
    """The environment of a measured process: nothing of the caller's own workspace."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(NOT_INHERITED)}
    return {**kept, **QUIET, **more}


def ahead(day: date, days: int) -> date:
    return day + timedelta(days=days)


@dataclass
class Tool:
    """A tool at work on the landed files of one scenario.

    Attributes:
        root: Its own folder, made anew: warehouse, project copy, state.
        landing: Folder of the landed files; read only.
        first: First day of the data.
        features: Whether customer_features belongs to the pipeline.
    """

    root: Path
    landing: Path
    first: date = FIRST
    features: bool = False
    name: ClassVar[str]
    requirements: ClassVar[str] = ""

    @property
    def python(self) -> str:
        return str(WORK / "env" / self.requirements / "bin" / "python")

    @property
    def warehouse(self) -> Path:
        return self.root / "warehouse.duckdb"

    def prepare(self) -> None:
        """Start from nothing."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)

    def replace(self, first: date, last: date) -> Command:
        """The command that (re)builds every table for these days, in the widest unit the tool has."""
        raise NotImplementedError

    def backfill(self, last: date) -> Command:
        """The first build, from the first day."""
        return self.replace(self.first, last)

    def restate_features(self, first: date, last: date) -> Command:
        """The command that rebuilds customer_features alone."""
        raise NotImplementedError


class Floor(Tool):
    """A bare DuckDB script."""

    mode = "one-pass"
    name = "floor, one pass"
    requirements = "floor"

    def replace(self, first: date, last: date) -> Command:
        words = [
            self.python,
            str(HERE / "peers/floor.py"),
            str(self.warehouse),
            str(self.landing),
            str(first),
            str(last),
            self.mode,
        ]
        return Command([*words, "features"] if self.features else words, environ(), self.root)

    def restate_features(self, first: date, last: date) -> Command:
        command = self.replace(first, last)
        return Command([*command.words[:-1], "features-only"], command.environ, command.cwd)


class FloorByDay(Floor):
    """The same script, a transaction a day."""

    mode = "day-by-day"
    name = "floor, a day at a time"


class Dbt(Tool):
    """dbt-duckdb, microbatch: one delete and insert a model and day."""

    name = "dbt microbatch"
    requirements = "dbt"

    def prepare(self) -> None:
        super().prepare()
        shutil.copytree(HERE / "peers/dbt", self.root / "project")
        if not self.features:
            (self.root / "project/models/customer_features.sql").unlink()

    def replace(self, first: date, last: date) -> Command:
        return self._run(first, last)

    def restate_features(self, first: date, last: date) -> Command:
        return self._run(first, last, "--select", "customer_features")

    def _run(self, first: date, last: date, *more: str) -> Command:
        project = str(self.root / "project")
        dbt = str(Path(self.python).with_name("dbt"))
        window = ["--event-time-start", str(first), "--event-time-end", str(ahead(last, 1))]
        variables = environ(WAREHOUSE=str(self.warehouse), LANDING=str(self.landing), FIRST=str(self.first))
        words = [dbt, "--quiet", "run", "--project-dir", project, "--profiles-dir", project, *window, *more]
        return Command(words, variables, self.root)


class SqlMesh(Tool):
    """SQLMesh, incremental by time range: one delete and insert a model for the whole range."""

    name = "SQLMesh range"
    requirements = "sqlmesh"

    def prepare(self) -> None:
        super().prepare()
        shutil.copytree(HERE / "peers/sqlmesh", self.root / "project")
        if not self.features:
            (self.root / "project/models/customer_features.sql").unlink()

    def backfill(self, last: date) -> Command:
        self._last = last  # every plan is made as of the end of the data
        return self._plan()

    def replace(self, first: date, last: date) -> Command:
        return self._plan(*self._restated("stg_orders", "stg_orders_rejected"), "--start", str(first), "--end", str(last))

    def restate_features(self, first: date, last: date) -> Command:
        return self._plan(*self._restated("customer_features"), "--start", str(first), "--end", str(last))

    def _restated(self, *models: str) -> list[str]:
        return [word for model in models for word in ("--restate-model", f"orders.{model}")]

    def _plan(self, *more: str) -> Command:
        project = str(self.root / "project")
        sqlmesh = str(Path(self.python).with_name("sqlmesh"))
        at = f"{ahead(self._last, 1)} 00:00:00"
        variables = environ(WAREHOUSE=str(self.warehouse), LANDING=str(self.landing), FIRST=str(self.first))
        words = [sqlmesh, "--paths", project, "--log-file-dir", str(self.root / "logs")]
        return Command([*words, "plan", "--auto-apply", "--no-prompts", "--execution-time", at, *more], variables, self.root)


class Stock(Tool):
    """dagster-duckdb-pandas: one run of the whole range."""

    name = "stock Dagster, one run"
    requirements = "stock"
    mode = "one-run"

    def prepare(self) -> None:
        super().prepare()
        (self.root / "dagster").mkdir()
        (self.root / "dagster/dagster.yaml").write_text("telemetry:\n  enabled: false\n")

    def replace(self, first: date, last: date) -> Command:
        return self._run(first, last, TABLES if self.features else TABLES[:-1])

    def restate_features(self, first: date, last: date) -> Command:
        return self._run(first, last, TABLES[-1:])

    def _run(self, first: date, last: date, assets: Sequence[str]) -> Command:
        words = [self.python, "-W", "ignore", str(HERE / "peers/stock.py"), str(self.warehouse), str(self.landing)]
        mode = "run-a-day" if first == last else self.mode
        words += [str(first), str(last), ",".join(assets), mode]
        return Command(words, environ(DAGSTER_HOME=str(self.root / "dagster")), self.root)


class StockByDay(Stock):
    """dagster-duckdb-pandas: a run a day, its default."""

    name = "stock Dagster, a run a day"
    mode = "run-a-day"


class Ours(Tool):
    """This platform, through the `dagster` command. Its landing lies in its workspace, so landing is root/landing."""

    name = "orders_platform"
    module = "orders_platform.definitions"
    assets = ("stg_orders", "fct_orders", "revenue_daily")

    @property
    def python(self) -> str:
        return sys.executable

    @property
    def environ(self) -> dict[str, str]:
        """The workspace: its calendar is whole weeks, five years from the first day."""
        home = str(self.root)
        return environ(
            ORDERS_HOME=home,
            DAGSTER_HOME=f"{home}/dagster",
            DAGSTER_MODULE_NAME=self.module,
            ORDERS_START_DATE=str(self.first),
            ORDERS_END_DATE=str(ahead(self.first, 5 * 364 - 1)),
        )

    def prepare(self) -> None:
        super().prepare()
        made = (
            "from orders_platform.cli.setup import prepare; from orders_platform.settings import settings; prepare(settings())"
        )
        subprocess.run([self.python, "-W", "ignore", "-c", made], cwd=PROJECT, env=self.environ, check=True)

    def land(self, days: int, orders: int, *, first: date | None = None, seed: int = 1) -> None:
        """Land days of orders in the workspace; the bar of the child process shows the progress."""
        words = [self.python, "-W", "ignore", "-m", "benchmarks.landed", "--first", str(first or self.first)]
        words += ["--days", str(days), "--orders", str(orders), "--seed", str(seed)]
        subprocess.run(words, cwd=PROJECT, env=self.environ, check=True)

    def materialize(self, assets: Sequence[str], first: date, last: date) -> Command:
        words = [self.python, "-W", "ignore", "-m", "benchmarks.ours", "asset", "materialize", "--select", ",".join(assets)]
        words += ["--partition", str(first)] if first == last else ["--partition-range", f"{first}...{last}"]
        return Command(words, self.environ, PROJECT)

    def replace(self, first: date, last: date) -> Command:
        return self.materialize((*self.assets, "customer_features") if self.features else self.assets, first, last)

    def restate_features(self, first: date, last: date) -> Command:
        return self.materialize(["customer_features"], first, last)


class Unchecked(Ours):
    """The same without checks."""

    name = "orders_platform, no checks"
    module = "benchmarks.unchecked"


class OnLake(Ours):
    """The same on a DuckLake, which takes its catalog's address before anything else."""

    name = "orders_platform on DuckLake"
    catalog = ""

    @property
    def environ(self) -> dict[str, str]:
        """The workspace, its warehouse a DuckLake."""
        return {**super().environ, "ORDERS_WAREHOUSE_URL": f"ducklake:postgres:{self.catalog}"}


def install(names: Sequence[str], say: Callable[[str], None]) -> None:
    """Make the environments that are not there, or whose requirements changed."""
    for name in names:
        wanted = (HERE / f"requirements/{name}.txt").read_text()
        ours = importlib.metadata.version("duckdb")
        if name == "floor":
            wanted = f"duckdb=={ours}\n"  # the floor is the same engine, whichever this environment has
        folder = WORK / "env" / name
        mark = folder / "installed.txt"
        if mark.exists() and mark.read_text() == wanted:
            continue
        say(f"Installing {name} into {folder.relative_to(PROJECT)}")
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        listed = folder / "requirements.txt"
        listed.write_text(wanted)
        pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(listed)]
        subprocess.run(pip, check=True)
        mark.write_text(wanted)


def versions(names: Sequence[str]) -> dict[str, str]:
    """What is compared, by version."""
    found = {"duckdb": importlib.metadata.version("duckdb"), "dagster": importlib.metadata.version("dagster")}
    shown = {
        "floor": ("duckdb",),
        "dbt": ("dbt-core", "dbt-duckdb", "duckdb"),
        "sqlmesh": ("sqlmesh", "duckdb"),
        "stock": ("dagster-duckdb-pandas", "pandas", "duckdb"),
    }
    for name in names:
        code = "import importlib.metadata as m, sys; print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
        words = [str(WORK / "env" / name / "bin/python"), "-c", code, *shown[name]]
        found[name] = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    return found
