"""DuckLake. Belongs here: the warehouse on many machines: attaching the catalog and the data path.

Not here: who may write what (claims.py), and what is written: every statement is the one the DuckDB file gets.
"""

import os
import re
import threading
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb

from orders_platform.errors import SettingsError
from orders_platform.warehouse import engine, publications
from orders_platform.warehouse.claims import Claimed, LakeUnavailable, claimed
from orders_platform.warehouse.contract import literal
from orders_platform.warehouse.session import Warehouse

PREFIX = "ducklake:postgres:"
CATALOG_SECRET = "warehouse_catalog"  # noqa: S105
S3_SHOWN = ("set global s3_secret_access_key = ''", "set global s3_session_token = ''")
"""httpfs takes these from the environment when it is loaded, and shows them in duckdb_settings() (measured)."""
NOT_MADE = "creating a new DuckLake is explicitly disabled"
RETRIES = (
    "set global ducklake_max_retry_count = 40",
    "set global ducklake_retry_wait_ms = 20",
    "set global ducklake_retry_backoff = 1.15",
)
"""Commits of other tables at the same moment make DuckLake try again: at once, and for half a minute in all."""


@dataclass(frozen=True)
class Lake(Warehouse):
    """DuckLake with its catalog in Postgres: many writers, and readers that wait for nobody.

    A swap takes one advisory lock a table before BEGIN and frees it after COMMIT; Postgres frees it when a process dies. Two
    swaps of different tables run side by side; of one table, one after the other, which is what the engine would force by conflicts.

    Attributes:
        data_path: Folder or s3:// prefix of the Parquet files.
    """

    data_path: str = ""

    @contextmanager
    def read(self) -> Iterator[Any]:
        """A connection that sees one snapshot for as long as it is open.

        Raises:
            LakeUnavailable: The catalog cannot be reached.
        """
        with self._single(), self._connected(read_only=True) as con:
            if self._prepared(con):
                con.execute("begin")
                yield con
                return
        with self.write("creating the warehouse"):
            pass
        with self.read() as con:
            yield con

    @contextmanager
    def write(self, holder: str, tables: Sequence[str] = ("platform",)) -> Iterator[Any]:
        """A connection whose tables nobody else swaps meanwhile.

        Raises:
            WarehouseBusy: A table's lock could not be had within the wait; names who has it.
        """
        claiming = claimed(self._catalog[0], holder, tables, self.wait_seconds)
        with self._single(), claiming as claim, self._connected(read_only=False) as con:
            if not self._prepared(con):
                claim.take(["schema"])
                if not self._prepared(con):
                    publications.prepare(con, self.calendar)
            yield Claimed(con, claim)

    def _prepared(self, con: Any) -> bool:
        return publications.is_prepared(con, self.calendar)

    @property
    def _catalog(self) -> tuple[str, str]:
        """The catalog's connection string for psycopg, and what DuckDB may show of it."""
        import psycopg

        text = self.url.removeprefix(PREFIX)
        try:
            parts: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(text)
        except psycopg.ProgrammingError:  # its text holds the whole string
            raise SettingsError("ORDERS_WAREHOUSE_URL names no Postgres.", f"{PREFIX}host=… dbname=… user=…") from None
        return text, psycopg.conninfo.make_conninfo(**{**parts, "password": None})

    @contextmanager
    def _connected(self, *, read_only: bool) -> Iterator[Any]:
        with super()._connected(read_only=read_only) as con:
            try:
                yield con
            except duckdb.Error as error:
                if "DuckLake" not in str(error):
                    raise
                # A catalog that is gone comes as a Binder Error, and would pass for a wrong query (measured).
                said = re.search("(FATAL|ERROR): .*", str(error))
                raise LakeUnavailable(
                    f"The catalog of the warehouse failed: {said.group() if said else str(error).splitlines()[0]}.",
                    "What was there stays; run it again.",
                ) from error

    def _connect(self, *, read_only: bool) -> Any:
        found = self._attached(read_only=read_only)
        if found is None:
            # Two who make the catalog at once would both fail (measured).
            with claimed(self._catalog[0], "creating the warehouse", ["schema"], self.wait_seconds):
                self._close(self._attached(is_made=False), read_only=False, is_sound=True)
            return self._connect(read_only=read_only)
        return found

    def _attached(self, *, read_only: bool = False, is_made: bool = True) -> Any:
        """A connection; None where there is no catalog and none is to be made."""
        text, shown = self._catalog
        made = f"create_if_not_exists {not is_made}{', read_only' if read_only else ''}"
        statement = (
            f"attach {literal(PREFIX + shown)} as {engine.CATALOG} "
            f"(data_path {literal(self.data_path)}, meta_secret {CATALOG_SECRET}, {made})"
        )

        def attaching(con: Any) -> None:
            is_remote = self.data_path.startswith("s3://")
            for extension in ("ducklake", "postgres_scanner", *(["httpfs"] if is_remote else [])):
                load(con, extension)
            give(con, [catalog_secret(text), *(S3_SHOWN if is_remote else ()), *([s3_secret()] if is_remote else [])])
            for setting in RETRIES:
                con.execute(setting)
            con.execute(statement)

        try:
            return engine.attach(self._attachment(read_only=read_only), self._means(), attaching)
        except duckdb.Error as error:
            if is_made and NOT_MADE in str(error):
                return None
            raise LakeUnavailable(
                f"The warehouse cannot be attached: {str(error).splitlines()[0]}",
                "See ORDERS_WAREHOUSE_URL and ORDERS_LAKE_DATA_PATH.",
            ) from error

    @property
    def name(self) -> str:
        """Its catalog; a new password makes no other lake of it."""
        return PREFIX + self._catalog[1]

    @property
    def folders(self) -> tuple[str, ...]:
        """The folder of its files."""
        return (self.data_path,)

    def _attachment(self, *, read_only: bool) -> Hashable:
        """Nothing is shared: every session attaches for itself, for it may write beside the others, and no thread has two."""
        return self.url, threading.get_ident()

    def _means(self) -> engine.Means:
        return engine.Means(str(self.locks.parent / "tmp"), self.threads, self.memory_limit)


def load(con: Any, extension: str) -> None:
    """Load an extension: the one installed before, the one that came as a Python wheel, or with network DuckDB's own.

    Raises:
        SettingsError: None of the three.
    """
    try:
        con.execute(f"load {extension}")
    except duckdb.Error:
        try:
            from duckdb_extensions import import_extension

            import_extension(extension, con=con)
            con.execute(f"load {extension}")
        except Exception as wheel:
            try:
                con.execute(f"install {extension}")
                con.execute(f"load {extension}")
            except duckdb.Error:
                raise SettingsError(
                    f"DuckDB's extension {extension} cannot be loaded ({wheel}).", "pip install 'orders-platform[scale]'"
                ) from None


def give(con: Any, secrets: Sequence[str]) -> None:
    """Run the statements that hold secrets.

    Raises:
        SettingsError: DuckDB refuses one; its text, which may quote the statement, is not shown.
    """
    try:
        for statement in secrets:
            con.execute(statement)
    except duckdb.Error as error:
        raise SettingsError(
            f"DuckDB refuses the credentials of the warehouse ({type(error).__name__}).",
            "See the password in ORDERS_WAREHOUSE_URL and the AWS_ variables.",
        ) from None


def catalog_secret(conninfo: str) -> str:
    """The statement that gives DuckDB the catalog's password, which it would show in errors were it in the attached string."""
    import psycopg

    password = psycopg.conninfo.conninfo_to_dict(conninfo).get("password")
    option = f", password {literal(str(password))}" if password else ""
    return f"create or replace temporary secret {CATALOG_SECRET} (type postgres{option})"


def s3_secret() -> str:
    """The statement that gives DuckDB the object store's credentials, from the usual AWS_ variables."""
    given = {
        "key_id": os.environ.get("AWS_ACCESS_KEY_ID"),
        "secret": os.environ.get("AWS_SECRET_ACCESS_KEY"),
        "session_token": os.environ.get("AWS_SESSION_TOKEN"),
        "region": os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"),
    }
    options = [f"{name} {literal(value)}" for name, value in given.items() if value]
    if endpoint := os.environ.get("AWS_ENDPOINT_URL"):
        scheme, _, host = endpoint.partition("://")
        options += [f"endpoint {literal(host)}", "url_style 'path'", f"use_ssl {'true' if scheme == 'https' else 'false'}"]
    return f"create or replace temporary secret warehouse_s3 (type s3, {', '.join(options)})"
