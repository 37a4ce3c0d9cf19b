"""Every setting. Belongs here: each environment variable, its type, default and meaning, read once.

Not here: what the settings are used for. Secrets are read from the environment and never shown by repr.
"""

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from dotenv import dotenv_values

from orders_platform.calendar import Calendar, ClosedDays
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


def _share(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 1:
        raise ValueError("between 0 and 1")
    return number


def _policy(text: str) -> str:
    if text not in ("off", "report", "repair"):
        raise ValueError("off, report or repair")
    return text


def _home(text: str) -> Path:
    if "?" in text:
        raise ValueError("a folder without a question mark, which database URLs and DuckDB read as an end of the path")
    return Path(text).expanduser().resolve()


def _memory(text: str) -> str:
    if not re.fullmatch(r"\d+(\.\d+)? ?([KMGT]i?B|B|%)", text):
        raise ValueError("a number with KB, MB, GB, KiB, MiB, GiB or %")
    return text


def _yes_or_no(text: str) -> bool:
    answers = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
    if text.lower() not in answers:
        raise ValueError("yes or no")
    return answers[text.lower()]


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
        "ORDERS_WAREHOUSE_URL",
        "",
        str,
        "a DuckDB file, or ducklake:postgres:…; default warehouse.duckdb under ORDERS_HOME",
        secret=True,
    )
    lake_path: str = setting(
        "ORDERS_LAKE_DATA_PATH", "", str, "folder or s3:// prefix of a DuckLake's files; default lake under ORDERS_HOME"
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
    closed_days: ClosedDays = setting(
        "ORDERS_CLOSED_DAYS", ClosedDays(), ClosedDays.parse, "days that may be empty: weekdays and dates, as in sun,2026-12-25"
    )
    volume_warn: float = setting("ORDERS_VOLUME_WARN", 4.0, _seconds, "rows this many deviations from usual are a warning")
    volume_fail: float = setting("ORDERS_VOLUME_FAIL", 8.0, _seconds, "rows this many deviations from usual are an error")
    rejected_share: float = setting("ORDERS_REJECTED_SHARE", 0.1, _share, "share of an interval's rows that may be rejected")
    attempts: int = setting("ORDERS_ATTEMPTS", 2, _count, "attempts at an interval before a green one is a warning")
    deadline_hours: float = setting(
        "ORDERS_DEADLINE_HOURS", 8.0, _seconds, "hours after the end of an interval by which it has to be published"
    )
    openlineage_url: str = setting("OPENLINEAGE_URL", "", str, "receiver of lineage events; off when unset", secret=True)
    openlineage_api_key: str = setting("OPENLINEAGE_API_KEY", "", str, "key for that receiver", secret=True)
    lineage_namespace: str = setting("OPENLINEAGE_NAMESPACE", "orders_platform", str, "namespace of lineage jobs and datasets")
    alert_url: str = setting("ORDERS_ALERT_URL", "", str, "where alarms are posted, as JSON; unset: only recorded", secret=True)
    corrections: str = setting(
        "ORDERS_CORRECTIONS",
        "report",
        _policy,
        "a day whose source moved is left alone (off), reported or repaired: off, report, repair",
    )
    corrections_days: int = setting(
        "ORDERS_CORRECTIONS_DAYS", 14, _count, "newest days whose source is compared with what was landed"
    )
    corrections_per_tick: int = setting("ORDERS_CORRECTIONS_PER_TICK", 5, _count, "days recaptured and repaired at once")
    snapshot_days: float = setting(
        "ORDERS_SNAPSHOT_DAYS", 7.0, _seconds, "days for which maintenance keeps the past states of a DuckLake"
    )
    unnamed_file_days: float = setting(
        "ORDERS_UNNAMED_FILE_DAYS",
        2.0,
        _seconds,
        "days for which maintenance keeps files that nothing names (any more, or yet)",
    )
    memory_limit: str = setting("ORDERS_DUCKDB_MEMORY_LIMIT", "", _memory, "DuckDB memory, such as 4GB; default DuckDB's own")
    ledger: str = setting("ORDERS_LEDGER_URL", "", str, "SQLite or Postgres; default ledger.db under ORDERS_HOME", secret=True)
    delivery_url: str = setting(
        "ORDERS_DELIVERY_URL",
        "",
        str,
        "file://, s3://, https:// or sftp://; default the folder outbox under ORDERS_HOME",
        secret=True,
    )
    delivery_contact: str = setting("ORDERS_DELIVERY_CONTACT", "", str, "whom to tell about a correction of what was sent")
    delivery_may_repeat: bool | None = setting(
        "ORDERS_DELIVERY_MAY_REPEAT",
        None,
        _yes_or_no,
        "no: the partner forgets keys or takes files away; default the channel's own",
    )
    delivery_attempts: int = setting("ORDERS_DELIVERY_ATTEMPTS", 5, _count, "times one run sends a key")
    delivery_backoff_seconds: float = setting("ORDERS_DELIVERY_BACKOFF_SECONDS", 1.0, _seconds, "first wait; doubles each time")
    delivery_failed_runs: int = setting(
        "ORDERS_DELIVERY_FAILED_RUNS", 3, _count, "failed runs before the sensor waits for a person"
    )
    delivery_lease_seconds: float = setting("ORDERS_DELIVERY_LEASE_SECONDS", 300.0, _seconds, "how long a claim holds")
    delivery_timeout_seconds: float = setting(
        "ORDERS_DELIVERY_TIMEOUT_SECONDS", 30.0, _seconds, "wait for the partner's answer"
    )
    webhook_secret: str = setting("ORDERS_WEBHOOK_SECRET", "", str, "signs webhook deliveries (HMAC-SHA256)", secret=True)
    sftp_password: str = setting("ORDERS_SFTP_PASSWORD", "", str, "password of the SFTP user", secret=True)
    sftp_key_file: Path | None = setting("ORDERS_SFTP_KEY_FILE", None, _home, "private key of the SFTP user")
    sftp_known_hosts: Path | None = setting("ORDERS_SFTP_KNOWN_HOSTS", None, _home, "host keys; default ~/.ssh/known_hosts")

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
    def lake_data_path(self) -> str:
        """Folder or s3:// prefix of a DuckLake's Parquet files, ending in a slash."""
        return (self.lake_path or str(self.home / "lake")).rstrip("/") + "/"

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
    def ledger_url(self) -> str:
        """SQLAlchemy URL of the delivery ledger."""
        return self.ledger or f"sqlite:///{self.home / 'ledger.db'}"

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


def dagster_home() -> Path:
    """Dagster's home: DAGSTER_HOME, else the one under ORDERS_HOME."""
    return Path(os.environ.get("DAGSTER_HOME") or settings().home / "dagster")


@cache
def git_commit() -> str | None:
    """The commit of the checkout this code runs from; None outside a checkout."""
    found = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=PROJECT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None
