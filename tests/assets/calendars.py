"""A workspace on another calendar: partitions are fixed at import, so whatever imports Dagster runs as its own process."""

import json
import os
import random
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pandas as pd

PROJECT = Path(__file__).parents[2]
MATERIALIZE = """
import json, sys, warnings
warnings.simplefilter("ignore")
import dagster as dg
from orders_platform.cli.setup import prepare
from orders_platform.definitions import defs
from orders_platform.settings import settings
from orders_platform.warehouse import inputs
inputs.PORTION_ROWS = -1000  # so few that ranges of some weeks, too, are made in portions
prepare(settings())
job = defs.resolve_implicit_global_asset_job_def()
with dg.DagsterInstance.ephemeral() as instance:
    for first, last, assets in json.loads(sys.argv[1]):
        tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
        keys = [dg.AssetKey(name) for name in assets]
        job.execute_in_process(tags=tags, instance=instance, asset_selection=keys)
"""


@dataclass
class OtherCalendar:
    """A workspace under `home`, on business days from `start` to `end` in `timezone`."""

    home: Path
    start: date
    end: date
    timezone: str
    closed: tuple[date, ...] = ()

    @property
    def days(self) -> list[date]:
        return [self.start + timedelta(n) for n in range((self.end - self.start).days + 1)]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """`orders …` or `python …` as a real process of this workspace."""
        environ = {
            **os.environ,
            "ORDERS_HOME": str(self.home),
            "DAGSTER_HOME": str(self.home / "dagster"),
            "ORDERS_START_DATE": str(self.start),
            "ORDERS_END_DATE": str(self.end),
            "ORDERS_BUSINESS_TIMEZONE": self.timezone,
            "ORDERS_CLOSED_DAYS": ",".join(map(str, self.closed)),
        }
        program = sys.executable if command[0] == "python" else str(Path(sys.executable).with_name(command[0]))
        return subprocess.run(
            [program, *command[1:]], cwd=PROJECT, env=environ, capture_output=True, text=True, timeout=300, check=False
        )

    def materialize(self, *steps: tuple[str, str, tuple[str, ...]]) -> None:
        """(first, last, assets) one after another, each one run, all in one process."""
        done = self.run("python", "-c", MATERIALIZE, json.dumps(steps))
        assert done.returncode == 0, done.stderr[-4000:]

    def fill(self, seed: int, orders: int, customers: int) -> None:
        """Random orders at any second of the days, none on closed days; one customer comes after 27, 28 and 29 days."""
        made = random.Random(seed)
        local = [day for day in self.days if day not in self.closed]
        rows = [self._order(made, n, made.choice(local), f"c{made.randrange(customers)}") for n in range(orders)]
        for n, gap in enumerate([0, 27, 55, 84][: len(local)]):
            rows.append(self._order(made, orders + n, self.start + timedelta(gap), "regular"))
        with sqlite3.connect(self.home / "source.db") as con:
            con.execute(
                "create table orders (order_id text, customer_id text, ordered_at text, updated_at text, "
                "country text, currency text, status text, gross_amount text, discount_amount text)"
            )
            con.executemany("insert into orders values (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        con.close()

    def _order(self, made: random.Random, number: int, day: date, customer: str) -> tuple[Any, ...]:
        zone = ZoneInfo(self.timezone)
        start, end = (datetime(d.year, d.month, d.day, tzinfo=zone).astimezone(UTC) for d in (day, day + timedelta(1)))
        seconds = int((end - start).total_seconds())
        at = start + timedelta(seconds=made.choice([0, seconds - 1, made.randrange(seconds)]))
        cents, off = made.randrange(1, 99_999), made.randrange(3)
        return (
            f"o{number}", None if made.random() < 0.05 else customer, f"{at:%Y-%m-%d %H:%M:%S}", f"{at:%Y-%m-%d %H:%M:%S}",
            made.choice(["DE", "FR", "GB"]), made.choice(["EUR", "EUR", "GBP"]),
            made.choice(["placed", "paid", "shipped", "delivered", "cancelled", "refunded"]),
            f"{cents / 100:.2f}", f"0.0{off}",
        )  # fmt: skip

    def source_sql(self, statement: str, *values: Any) -> None:
        with sqlite3.connect(self.home / "source.db") as con:
            con.execute(statement, values)
        con.close()

    def source(self) -> pd.DataFrame:
        """The source's orders with their business day, amounts as decimals: the ground that expectations are computed from."""
        with sqlite3.connect(self.home / "source.db") as con:
            frame = pd.read_sql("select * from orders", con)
        con.close()
        frame["day"] = pd.to_datetime(frame.ordered_at, utc=True).dt.tz_convert(self.timezone).dt.date
        frame["net"] = frame.gross_amount.map(Decimal) - frame.discount_amount.map(Decimal)
        frame["is_revenue"] = frame.status.isin(["paid", "shipped", "delivered"])
        return frame

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.home / "warehouse.duckdb"), read_only=True) as con:
            return con.execute(sql).fetchall()

    def digests(self, asset: str) -> dict[str, str]:
        return dict(self.query(f"select \"interval\", digest from platform.current_publications where asset = '{asset}'"))
