"""A throw-away workspace. Belongs here: its own ORDERS_HOME, source, warehouse and Dagster instance, for drills and tests.

Not here: the calendar, which Dagster's partitions fix at import: whoever opens a workspace sets it in the environment first.
"""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import dagster as dg

from orders_platform.automation.repair import Request, carry_out, plan_of
from orders_platform.checks.tables import tables_of
from orders_platform.cli.setup import prepare
from orders_platform.definitions import ASSETS, defs
from orders_platform.recovery.dagster_facts import World
from orders_platform.recovery.repair import Outcome
from orders_platform.settings import PROJECT, Settings, settings
from orders_platform.warehouse import publications
from orders_platform.warehouse.publications import Pair, Publication
from orders_platform.warehouse.session import Warehouse

DAILY = ("raw_orders", "stg_orders", "fct_orders", "revenue_daily")
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""Run configuration that keeps Dagster's log off the terminal; the instance has it all the same."""


def execute(
    definitions: dg.Definitions,
    instance: dg.DagsterInstance,
    keys: list[dg.AssetKey],
    first: str,
    last: str | None = None,
    run_config: Any = None,
) -> dg.ExecuteInProcessResult:
    """Run these assets in this process for one interval, or for the range first...last as one run; never raises."""
    job = definitions.resolve_implicit_global_asset_job_def()
    tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last} if last else {}
    return job.execute_in_process(
        partition_key=None if last else first,
        tags=tags,
        instance=instance,
        asset_selection=keys,
        run_config=run_config,
        raise_on_error=False,
    )


class Source:
    """A source database of one table, orders, what happens to it, and what a reader sees of what was made from it."""

    home: Path
    orders_table: ClassVar[str]
    revenue_table: ClassVar[str]

    @property
    def settings(self) -> Settings:
        """The settings of this process."""
        return settings()

    def put(self, *rows: tuple[Any, ...], replace: bool = False) -> None:
        """Rows into the source's table orders, in the column order of the default query; `replace` empties it first."""
        with sqlite3.connect(self.home / "source.db") as con:
            con.execute(
                "create table if not exists orders (order_id text, customer_id text, ordered_at text, updated_at text, "
                "country text, currency text, status text, gross_amount text, discount_amount text)"
            )
            if replace:
                con.execute("delete from orders")
            con.executemany("insert into orders values (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        con.close()

    def put_days(self, *days: str, orders: int = 5, gross: str = "10.00") -> None:
        """A few plain orders a business day, one an hour, every fifth of them cancelled; the last one has no customer."""
        start = {day: self.settings.calendar.window(day)[0] for day in days}
        self.put(
            *(
                (f"{day}-{n}", f"c{n}" if n < orders - 1 else None,
                 f"{start[day] + timedelta(hours=n % 23):%Y-%m-%d %H:%M:%S}",
                 f"{start[day] + timedelta(hours=n % 23, minutes=30):%Y-%m-%d %H:%M:%S}",
                 "GB" if n % 2 else "DE", "GBP" if n % 2 else "EUR", "paid" if n % 5 else "cancelled", gross, "0.50")
                for day in days
                for n in range(orders)
            )
        )  # fmt: skip

    def query(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Rows of a statement on the warehouse that is made from this source."""
        raise NotImplementedError

    def value(self, sql: str, *parameters: Any) -> Any:
        """The first value of its first row."""
        return self.query(sql, *parameters)[0][0]

    def count_orders(self, first: str, last: str = "") -> int:
        """Orders of the day, or of the days first to last, as a reader sees them."""
        return int(
            self.value(f"select count(*) from {self.orders_table} where order_date between ? and ?", first, last or first)
        )

    def revenue(self, first: str, last: str = "") -> Decimal | str:
        """Revenue in EUR of the day, or of the days first to last, as a reader sees it; "none" when there is none."""
        found = self.value(
            f"select sum(revenue) from {self.revenue_table} where order_date between ? and ? and currency = 'EUR'",
            first,
            last or first,
        )
        return "none" if found is None else Decimal(found)

    def sql_source(self, statement: str, *values: Any) -> None:
        """Change the source."""
        with sqlite3.connect(self.home / "source.db") as con:
            con.execute(statement, values)
        con.close()


@dataclass
class Workspace(Source):
    """What is done with a workspace. Commands run as real processes with `run`, everything else in this process."""

    home: Path
    instance: dg.DagsterInstance
    run_config: Any = None
    orders_table = "published.fct_orders"
    revenue_table = "published.revenue_daily"

    @property
    def warehouse(self) -> Warehouse:
        """The warehouse of the settings."""
        return Warehouse.from_settings(settings())

    def materialize(self, first: str, last: str | None = None, assets: tuple[str, ...] = DAILY) -> dg.ExecuteInProcessResult:
        """Run these assets for one interval, or for the range first...last as one run; never raises."""
        return execute(defs, self.instance, [dg.AssetKey(name) for name in assets], first, last, self.run_config)

    def query(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Rows of a SELECT."""
        with self.warehouse.read() as con:
            rows: list[tuple[Any, ...]] = con.execute(sql, list(parameters)).fetchall()
            return rows

    def world(self) -> World:
        """What recovery looks at."""
        return World.of(defs.get_repository_def(), self.instance)

    def states(self) -> dict[Pair, str]:
        """The state of every pair."""
        return {pair: state.name for pair, state in self.world().look()[1].items()}

    def repair(self, asset: str, *intervals: str, reason: str = "a drill", **options: Any) -> Outcome:
        """What `orders repair` does, in this process."""
        request, world = Request(asset, intervals, reason, "ada", **options), self.world()
        return carry_out(world, request, plan_of(world, request), tables_of(ASSETS))[1]

    def tamper(self, sql: str, *parameters: Any) -> None:
        """Change the warehouse by hand, past every rule."""
        with self.warehouse.write("a test") as con:
            con.execute(sql, list(parameters))

    def current(self) -> dict[tuple[str, str], Publication]:
        """Every current publication."""
        with self.warehouse.read() as con:
            return publications.all_current(con)

    def digests(self) -> dict[tuple[str, str], str]:
        """Digest of every current publication."""
        return {pair: p.digest for pair, p in self.current().items()}

    @property
    def environ(self) -> dict[str, str]:
        """The environment for a real process in this workspace."""
        return {**os.environ, "ORDERS_HOME": str(self.home), "DAGSTER_HOME": str(self.home / "dagster")}

    def run(
        self, *command: str, timeout: float = 120, folder: Path = PROJECT, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Run `orders …`, `dagster …` or `python …` of this environment as a real process, from the project's folder."""
        program = sys.executable if command[0] == "python" else str(Path(sys.executable).with_name(command[0]))
        return subprocess.run(
            [program, *command[1:]],
            cwd=folder,
            env={**self.environ, **environ},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


@contextmanager
def opened(home: Path, run_config: Any = None) -> Iterator[Workspace]:
    """A workspace made under `home`, with an empty source; ORDERS_HOME names it already."""
    settings.cache_clear()
    prepare(settings())
    try:
        with dg.DagsterInstance.from_config(str(home / "dagster")) as instance:
            made = Workspace(home, instance, run_config)
            made.put()
            yield made
    finally:
        settings.cache_clear()


def failure_of(result: dg.ExecuteInProcessResult, asset: str) -> str:
    """The message of the step that failed.

    Raises:
        AssertionError: It did not fail.
    """
    for event in result.all_events:
        if event.is_step_failure and event.step_key == asset:
            data: Any = event.event_specific_data
            texts = []
            error = data.error
            while error is not None:
                texts.append(error.message)
                error = error.cause
            if data.user_failure_data:
                texts.append(data.user_failure_data.description or "")
            return "\n".join(texts)
    raise AssertionError(f"{asset} did not fail")
