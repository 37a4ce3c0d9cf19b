"""A workspace a test: its own ORDERS_HOME, source, warehouse and Dagster instance."""

import os

for name in [name for name in os.environ if name.startswith("ORDERS_") and name not in ("ORDERS_PROOF", "ORDERS_TEST_DATA")]:
    del os.environ[name]
os.environ.update(
    DAGSTER_DISABLE_TELEMETRY="yes",
    ORDERS_START_DATE="2026-01-05",
    ORDERS_END_DATE="2026-02-01",
    ORDERS_BUSINESS_TIMEZONE="UTC",
)

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from orders_platform.cli.setup import prepare
from orders_platform.definitions import defs
from orders_platform.settings import Settings, settings
from orders_platform.warehouse import publications
from orders_platform.warehouse.publications import Publication
from orders_platform.warehouse.session import Warehouse

DAILY = ("raw_orders", "stg_orders", "fct_orders", "revenue_daily")
PROJECT = Path(__file__).parent.parent


@dataclass
class Workspace:
    """What a test does with a workspace. Commands run as real processes with `run`, everything else in this process."""

    home: Path
    instance: dg.DagsterInstance

    @property
    def settings(self) -> Settings:
        return settings()

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse.from_settings(settings())

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
        """A few plain paid orders a day; the last one of each day has no customer."""
        self.put(
            *(
                (f"{day}-{n}", f"c{n}" if n < orders - 1 else None, f"{day} {n % 24:02d}:00:00", f"{day} {n % 24:02d}:30:00",
                 "GB" if n % 2 else "DE", "GBP" if n % 2 else "EUR", "paid" if n % 5 else "cancelled", gross, "0.50")
                for day in days
                for n in range(orders)
            )
        )  # fmt: skip

    def sql_source(self, statement: str, *values: Any) -> None:
        with sqlite3.connect(self.home / "source.db") as con:
            con.execute(statement, values)
        con.close()

    def materialize(self, first: str, last: str | None = None, assets: tuple[str, ...] = DAILY) -> dg.ExecuteInProcessResult:
        """Run these assets for one interval, or for the range first...last as one run; never raises."""
        job = defs.resolve_implicit_global_asset_job_def()
        tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last} if last else {}
        return job.execute_in_process(
            partition_key=None if last else first,
            tags=tags,
            instance=self.instance,
            asset_selection=[dg.AssetKey(name) for name in assets],
            raise_on_error=False,
        )

    def query(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with self.warehouse.read() as con:
            return con.execute(sql, list(parameters)).fetchall()

    def tamper(self, sql: str, *parameters: Any) -> None:
        """Change the warehouse by hand, past every rule."""
        with self.warehouse.write("a test") as con:
            con.execute(sql, list(parameters))

    def current(self) -> dict[tuple[str, str], Publication]:
        with self.warehouse.read() as con:
            return publications.all_current(con)

    def digests(self) -> dict[tuple[str, str], str]:
        return {pair: p.digest for pair, p in self.current().items()}

    @property
    def environ(self) -> dict[str, str]:
        """The environment for a real process in this workspace."""
        return {
            **os.environ,
            "ORDERS_HOME": str(self.home),
            "DAGSTER_HOME": str(self.home / "dagster"),
        }

    def run(self, *command: str, timeout: float = 120, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run `orders …`, `dagster …` or `python …` of this environment as a real process from the project's folder."""
        program = sys.executable if command[0] == "python" else str(Path(sys.executable).with_name(command[0]))
        return subprocess.run(
            [program, *command[1:]],
            cwd=PROJECT,
            env={**self.environ, **environ},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


def failure_of(result: dg.ExecuteInProcessResult, asset: str) -> str:
    """The message of the step that failed."""
    for event in result.all_events:
        if event.is_step_failure and event.step_key == asset:
            data = event.event_specific_data
            texts = []
            error = data.error
            while error is not None:
                texts.append(error.message)
                error = error.cause
            if data.user_failure_data:
                texts.append(data.user_failure_data.description or "")
            return "\n".join(texts)
    raise AssertionError(f"{asset} did not fail")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long proofs run where asked for: ORDERS_PROOF=1, or `make proof`."""
    if not os.environ.get("ORDERS_PROOF"):
        for item in items:
            if item.get_closest_marker("proof"):
                item.add_marker(pytest.mark.skip(reason="a long proof; run make proof"))


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A fresh workspace with an empty source, on the sample's calendar (28 days from 2026-01-05, UTC)."""
    monkeypatch.setenv("ORDERS_HOME", str(tmp_path))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    settings.cache_clear()
    prepare(settings())
    with dg.DagsterInstance.from_config(str(tmp_path / "dagster")) as instance:
        made = Workspace(tmp_path, instance)
        made.put()
        yield made
    settings.cache_clear()
