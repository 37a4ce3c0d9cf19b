"""Every setting. Belongs here: each environment variable, its type, default and meaning, read once.

Not here: what the settings are used for. Secrets are read from the environment and never shown by repr.
"""

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from dotenv import dotenv_values

from orders_platform.calendar import Calendar
from orders_platform.errors import SettingsError

PROJECT = Path(__file__).resolve().parent.parent

SOURCE_QUERY = """
select order_id, customer_id, ordered_at, updated_at, country, currency, status, gross_amount, discount_amount
from orders
where ordered_at >= :start and ordered_at < :end
"""


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("at least 1")
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise ValueError("more than 0")
    return number


def _home(text: str) -> Path:
    return Path(text).expanduser().resolve()


def setting(name: str, default: Any, parse: Callable[[str], Any], meaning: str, *, secret: bool = False) -> Any:
    """A field read from the environment variable `name`; an empty value counts as unset."""
    return field(default=default, repr=not secret, metadata={"name": name, "parse": parse, "meaning": meaning})


@dataclass(frozen=True)
class Settings:
    """What a workspace is made of. Two workspaces (two ORDERS_HOME) share nothing.

    Raises:
        SettingsError: A value that cannot be used; the message names the variable, never the value of a secret.
    """

    home: Path = setting("ORDERS_HOME", PROJECT / "data", _home, "everything generated lives here")
    timezone: str = setting("ORDERS_BUSINESS_TIMEZONE", "UTC", str, "IANA zone whose days are the intervals")
    start_date: date = setting("ORDERS_START_DATE", date(2026, 1, 5), date.fromisoformat, "first business day, a Monday")
    end_date: date | None = setting("ORDERS_END_DATE", None, date.fromisoformat, "last business day, a Sunday; open when unset")
    warehouse: str = setting(
        "ORDERS_WAREHOUSE_URL", "", str, "a DuckDB file; default warehouse.duckdb under ORDERS_HOME", secret=True
    )
    source: str = setting(
        "ORDERS_SOURCE_URL", "", str, "SQLAlchemy URL; default SQLite source.db under ORDERS_HOME", secret=True
    )
    source_query: str = setting("ORDERS_SOURCE_QUERY", SOURCE_QUERY, str, "one SELECT with :start and :end")
    source_total_query: str = setting(
        "ORDERS_SOURCE_TOTAL_QUERY", "", str, "one SELECT counting every source row; default count(*) of table orders"
    )
    source_connections: int = setting("ORDERS_SOURCE_CONNECTIONS", 4, _count, "captures at once, over all processes")
    source_wait_seconds: float = setting("ORDERS_SOURCE_WAIT_SECONDS", 600.0, _seconds, "wait for a free source connection")
    intervals_per_run: int | None = setting(
        "ORDERS_INTERVALS_PER_RUN", None, _count, "backfill: intervals a run; unset = one run a range"
    )
    lock_wait_seconds: float = setting("ORDERS_LOCK_WAIT_SECONDS", 120.0, _seconds, "wait for the warehouse")
    threads: int | None = setting("ORDERS_DUCKDB_THREADS", None, _count, "DuckDB threads; default all cores")
    memory_limit: str = setting("ORDERS_DUCKDB_MEMORY_LIMIT", "", str, "DuckDB memory, such as 4GB; default DuckDB's own")

    def __post_init__(self) -> None:
        _ = self.calendar

    @property
    def calendar(self) -> Calendar:
        """The business calendar these settings describe."""
        return Calendar(self.start_date, self.end_date, self.timezone)

    @property
    def warehouse_url(self) -> str:
        """Path of the DuckDB file, or the DuckLake URL."""
        return self.warehouse or str(self.home / "warehouse.duckdb")

    @property
    def source_url(self) -> str:
        """SQLAlchemy URL of the source database."""
        return self.source or f"sqlite:///{self.home / 'source.db'}"

    @property
    def landing_root(self) -> Path:
        """Folder of the immutable landed files."""
        return self.home / "landing"

    @property
    def exports_root(self) -> Path:
        """Folder of the immutable exported files."""
        return self.home / "exports"

    @property
    def locks_root(self) -> Path:
        """Folder of lock and semaphore files."""
        return self.home / "locks"

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> "Settings":
        """Settings from a mapping of environment variables.

        >>> Settings.read({"ORDERS_START_DATE": "2026-01-12"}).start_date
        datetime.date(2026, 1, 12)
        """
        values = {}
        for item in fields(cls):
            name = item.metadata["name"]
            text = environ.get(name, "").strip()
            if not text:
                continue
            try:
                values[item.name] = item.metadata["parse"](text)
            except ValueError as error:
                shown = f"={text!r}" if item.repr else ""
                raise SettingsError(f"{name}{shown} cannot be read: {item.metadata['meaning']}.", f"({error})") from None
        return cls(**values)


@cache
def settings() -> Settings:
    """The settings of this process: the environment, then `.env` of the working folder, then of the project."""
    environ = dict(os.environ)
    for folder in dict.fromkeys([Path.cwd(), PROJECT]):
        for name, value in dotenv_values(folder / ".env").items():
            environ.setdefault(name, value or "")
    return Settings.read(environ)


@cache
def git_commit() -> str | None:
    """The commit of the checkout this code runs from; None outside a checkout."""
    found = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=PROJECT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None
