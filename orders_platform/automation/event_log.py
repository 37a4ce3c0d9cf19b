"""Dagster's event log and runs, kept open. Belongs here: how their SQLite files are connected to. Not here: what is stored: stock.

Dagster 1.13 builds an engine, connects, compiles, commits and closes for every event. Measured for each of 98 events of a run:
10 ms, 50 ms on a busy disk; with connections kept open and synchronous = normal 2 to 5 ms.
"""

import os
import shutil
import uuid
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME
from dagster._core.storage.runs import SqliteRunStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from sqlalchemy import Connection, Engine, NullPool, StaticPool, create_engine, event, make_url

from orders_platform.settings import dagster_home

KEPT = 8
"""Files kept open: the index and the runs last used."""
File = tuple[int, int] | None
"""Device and inode of a file that is there."""


class WorkspaceEventLog(SqliteEventLogStorage):
    """The stock SQLite event log under DAGSTER_HOME (else ORDERS_HOME/dagster), same files, connections kept open.

    In WAL mode synchronous = normal loses nothing when a process is killed; a power cut may lose the last events, which are
    claims: what is published is committed in the warehouse, and `orders audit` names publications without an event.
    """

    def __init__(self, base_dir: str, inst_data: Any = None) -> None:
        self._engines: dict[str, Engine] = {}
        self._opened: dict[str, File] = {}
        self._there: set[str] = set()
        super().__init__(base_dir, inst_data)
        _open.add(self)

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """No configuration: the place follows from the workspace, so a copied workspace keeps its events to itself."""
        return {}

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> "WorkspaceEventLog":
        """The event log of the workspace."""
        return cls(str(dagster_home() / "history" / "runs"), inst_data)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock:
            if shard not in self._initialized_dbs and shard != INDEX_SHARD_NAME:
                self._make(shard)
            engine = self._engine(shard)
            if shard not in self._initialized_dbs:
                self._initdb(engine)
                self._initialized_dbs.add(shard)
            with engine.connect() as connection, connection.begin():
                yield connection

    def has_table(self, table_name: str) -> bool:
        """Whether the index has the table; one found once is not looked for at every event, 1 ms each."""
        return self._found(table_name, partial(super().has_table, table_name))

    def _has_asset_key_col_on_connection(self, conn: Connection, column_name: str) -> bool:
        look = partial(super()._has_asset_key_col_on_connection, conn, column_name)
        return self._found(f"asset_keys.{column_name}", look)

    def _found(self, name: str, look: Callable[[], bool]) -> bool:
        if name not in self._there and look():
            self._there.add(name)
        return name in self._there

    def _make(self, shard: str) -> None:
        """Start a new run's file as a copy of an empty one: making tables and asking for migrations costs each run 50 ms."""
        path = Path(self.path_for_shard(shard))
        if path.exists():
            return
        empty = Path(self._base_dir).parent / f"empty-{dg.__version__}.db"
        part = path.with_name(f".{shard}.{uuid.uuid4().hex}.part")
        if not empty.exists():
            engine = create_engine(f"sqlite:///{part}", poolclass=NullPool)
            self._initdb(engine)
            part.rename(empty)
        shutil.copyfile(empty, part)
        with suppress(FileExistsError):  # another process made it meanwhile
            os.link(part, path)
        part.unlink()
        self._initialized_dbs.add(shard)

    def _engine(self, shard: str) -> Engine:
        path = self.path_for_shard(shard)
        engine = self._engines.pop(shard, None)
        if engine is not None and self._opened.get(shard) != _file(path):  # deleted, and perhaps made anew by somebody else
            engine.dispose()
            self._initialized_dbs.discard(shard)
            self._there.clear()
            engine = None
        if engine is None:
            arguments = {"timeout": SQLITE_BUSY_TIMEOUT_SECONDS, "check_same_thread": False}
            engine = create_engine(self.conn_string_for_shard(shard), poolclass=StaticPool, connect_args=arguments)
            event.listen(engine, "connect", _configure)
            event.listen(engine, "connect", lambda *_: self._opened.update({shard: _file(path)}))
        self._engines[shard] = engine
        while len(self._engines) > KEPT:
            self._engines.pop(next(iter(self._engines))).dispose()
        return engine

    def dispose(self) -> None:
        """Close the files."""
        super().dispose()
        self.close()

    def close(self) -> None:
        """Close the files; the next event opens its own again."""
        with self._db_lock:
            while self._engines:
                self._engines.popitem()[1].dispose()


class WorkspaceRuns(SqliteRunStorage):
    """The stock SQLite run storage under DAGSTER_HOME (else ORDERS_HOME/dagster), same file, connections kept in a pool."""

    _engine: Engine | None = None
    _opened: File = None

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """No configuration, as for the event log."""
        return {}

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> "WorkspaceRuns":
        """The runs of the workspace."""
        return cls.from_local(str(dagster_home() / "history"), inst_data)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """A connection in a transaction, closed by giving it back."""
        found = _file(str(make_url(self._conn_string).database))
        if self._engine is None or self._opened != found:
            self.close()
            self._engine, self._opened = create_engine(self._conn_string), found
            event.listen(self._engine, "connect", _configure)
            _open.add(self)
        with self._engine.connect() as connection, connection.begin():
            yield connection

    def dispose(self) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file; what is asked next opens it again."""
        if self._engine is not None:
            self._engine.dispose()


_open: "weakref.WeakSet[WorkspaceEventLog | WorkspaceRuns]" = weakref.WeakSet()


def _close_all() -> None:
    """Before a fork: SQLite in the child would take locks of the parent for its own, and what it stored be lost (measured)."""
    for storage in list(_open):
        storage.close()


os.register_at_fork(before=_close_all)


def _file(path: str) -> File:
    try:
        found = Path(path).stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _configure(connection: Any, _: Any) -> None:
    connection.execute("pragma journal_mode = wal")  # as stock, but before the tables of a new run are made: 40 fsyncs fewer
    connection.execute("pragma synchronous = normal")
