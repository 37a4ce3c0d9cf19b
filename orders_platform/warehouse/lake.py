"""DuckLake. Belongs here: the warehouse on many machines: attaching the catalog, one advisory lock a table as the claim.

Not here: what is written: every statement is the one the DuckDB file gets.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb

from orders_platform.errors import OrdersError, SettingsError
from orders_platform.warehouse import engine, publications
from orders_platform.warehouse.contract import literal
from orders_platform.warehouse.session import Warehouse, WarehouseBusy

PREFIX = "ducklake:postgres:"
LOCK_SPACE = 20260105
"""First half of the advisory lock's key; the second is the hash of the table's name."""


class LakeUnavailable(OrdersError):
    """The catalog or the data path cannot be reached; the message never shows the connection string."""

    retryable = True


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
        with self._single(), self._claimed(holder, tables) as claim, self._connected(read_only=False) as con:
            if not self._prepared(con):
                claim(["schema"])
                if not self._prepared(con):
                    publications.prepare(con, self.calendar)
            yield con

    def _prepared(self, con: Any) -> bool:
        return publications.is_prepared(con, self.calendar)

    @contextmanager
    def _claimed(self, holder: str, tables: Sequence[str]) -> Iterator[Any]:
        import psycopg

        try:
            lock = psycopg.connect(self._conninfo, autocommit=True, application_name=holder[:63])
        except psycopg.OperationalError:
            raise LakeUnavailable("The catalog of the warehouse cannot be reached.", "See ORDERS_WAREHOUSE_URL.") from None

        def claim(names: Sequence[str]) -> None:
            for name in sorted(names):
                try:
                    lock.execute("select pg_advisory_lock(%s, hashtext(%s))", (LOCK_SPACE, name))
                except psycopg.errors.LockNotAvailable:
                    raise WarehouseBusy(
                        f"{name} was held for longer than {self.wait_seconds:g} s by {_holder(lock, name)}.",
                        "Wait for it or stop it, then try again; ORDERS_LOCK_WAIT_SECONDS sets the wait.",
                    ) from None

        with lock:
            lock.execute(f"set lock_timeout = {int(self.wait_seconds * 1000):d}")
            claim(tables)
            yield claim

    @property
    def _conninfo(self) -> str:
        return self.url.removeprefix(PREFIX)

    def _connect(self, *, read_only: bool) -> Any:
        con = engine.start(self._means())
        try:
            for extension in ("ducklake", "postgres_scanner", *(["httpfs"] if self.data_path.startswith("s3://") else [])):
                load(con, extension)
            if self.data_path.startswith("s3://"):
                con.execute(s3_secret())
            mode = ", read_only" if read_only else ""
            con.execute(f"attach {literal(self.url)} as warehouse (data_path {literal(self.data_path)}{mode})")
            con.execute("use warehouse")
        except duckdb.Error as error:
            con.close()
            if read_only and "does not exist" in str(error):
                return self._connect(read_only=False)
            # The text may hold the connection string, so neither it nor its cause is shown.
            raise LakeUnavailable(
                f"The warehouse cannot be attached ({type(error).__name__}).",
                "See ORDERS_WAREHOUSE_URL and ORDERS_LAKE_DATA_PATH.",
            ) from None
        return con

    def _close(self, con: Any, *, read_only: bool, is_sound: bool) -> None:
        con.close()

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

            import_extension(extension)
            con.execute(f"load {extension}")
        except Exception as wheel:
            try:
                con.execute(f"install {extension}")
                con.execute(f"load {extension}")
            except duckdb.Error:
                raise SettingsError(
                    f"DuckDB's extension {extension} cannot be loaded ({wheel}).", "pip install 'orders-platform[scale]'"
                ) from None


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


def _holder(lock: Any, table: str) -> str:
    row = lock.execute(
        "select a.application_name, a.pid, a.backend_start from pg_locks l join pg_stat_activity a using (pid) "
        "where l.locktype = 'advisory' and l.granted and l.classid = %s and l.objid::bigint = (hashtext(%s)::bigint & 4294967295)",
        (LOCK_SPACE, table),
    ).fetchone()
    return f"{row[0]} (backend {row[1]}, since {row[2]:%Y-%m-%d %H:%M:%S})" if row else "somebody who has just let it go"
