"""Sessions. Belongs here: how a process gets at the warehouse: short, exclusive to write, shared to read, bounded in wait.

Not here: what is written (swap.py). Sessions never nest, and their settings are SET after connecting.
"""

import json
import os
import threading
import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import duckdb
import portalocker

from orders_platform.calendar import Calendar
from orders_platform.errors import OrdersError, SettingsError
from orders_platform.settings import Settings
from orders_platform.warehouse import engine, publications
from orders_platform.warehouse.contract import literal

POLL_SECONDS = 0.01
STORAGE = "v1.4.0"
"""Version that can open a new file. Text is compressed in one way since 1.3: an insert of 11 columns takes a third less time than in
the version that DuckDB writes by default, for a file a sixth larger (measured, 3 M orders)."""
HELD = ("Could not set lock", "different configuration", "Unique file handle conflict")
"""How DuckDB says that another process, or another connection of this one, has the file open."""
_open = threading.local()


class WarehouseBusy(OrdersError):
    """The warehouse could not be had within the wait; names who holds it."""

    retryable = True


class NestedSession(OrdersError):
    """A session opened inside another of the same thread, which would wait for itself."""


@dataclass(frozen=True)
class Warehouse:
    """One DuckDB file, reached only through short sessions.

    A writer excludes everyone; readers share. A waiting writer holds the gate file, so that new readers queue behind it
    instead of starving it. Locks are flock on a fresh descriptor, which the kernel frees however a process ends.
    """

    url: str = field(repr=False)  # a DuckLake's may hold a password
    calendar: Calendar
    locks: Path
    wait_seconds: float = 120.0
    threads: int | None = None
    memory_limit: str = ""

    @classmethod
    def from_settings(cls, settings: Settings, url: str = "") -> "Warehouse":
        """The warehouse that these settings describe, or another file of the same calendar.

        Locks lie beside the file they guard, so that everybody who names that file takes the same ones.
        """
        found = url or settings.warehouse_url
        if found.startswith("ducklake:"):
            from orders_platform.warehouse.lake import Lake

            return Lake(
                found,
                settings.calendar,
                settings.locks_root,
                settings.lock_wait_seconds,
                settings.threads,
                settings.memory_limit,
                data_path=settings.lake_data_path,
            )
        path = _file(found)
        return cls(
            str(path),
            settings.calendar,
            path.parent / "locks",
            settings.lock_wait_seconds,
            settings.threads,
            settings.memory_limit,
        )

    @contextmanager
    def read(self) -> Iterator[Any]:
        """A read-only connection; a warehouse that does not exist yet is created empty.

        Raises:
            WarehouseBusy: A writer held it for longer than the wait.
        """
        if not self._is_there():
            with self.write("creating the warehouse"):
                pass
        with self._single(), self._locked(exclusive=False) as lock, self._connected(read_only=True) as con:
            _sign(lock, None)  # what a killed writer left
            if publications.is_prepared(con, self.calendar):
                yield con
                return
        with self.write("completing the platform schema"):
            pass
        with self.read() as con:
            yield con

    @contextmanager
    def write(self, holder: str, tables: Sequence[str] = ()) -> Iterator[Any]:
        """A connection that nobody else reads or writes beside; `holder` names its purpose to whoever waits.

        Args:
            holder: Shown to whoever waits.
            tables: What is replaced; a file is claimed whole, DuckLake (lake.py) a table at a time.

        Raises:
            WarehouseBusy: It could not be had within the wait.
            CalendarMismatch: The warehouse was built with another calendar.
        """
        with self._single(), self._locked(exclusive=True) as lock:
            _sign(lock, holder)
            try:
                with self._connected(read_only=False) as con:
                    if not publications.is_prepared(con, self.calendar):
                        publications.prepare(con, self.calendar)
                    yield con
            finally:
                _sign(lock, None)

    @property
    def name(self) -> str:
        """What tells it from other warehouses, without a secret."""
        return self.url

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders that its tables are read from; none for a file, which is open already."""
        return ()

    @contextmanager
    def _single(self) -> Iterator[None]:
        held: set[str] = _open.__dict__.setdefault("urls", set())
        if self.url in held:
            raise NestedSession("A warehouse session was opened inside another one.", "Close the first; sessions do not nest.")
        held.add(self.url)
        try:
            yield
        finally:
            held.discard(self.url)

    @contextmanager
    def _locked(self, *, exclusive: bool) -> Iterator[IO[Any]]:
        self.locks.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + self.wait_seconds
        with self._flock("gate", deadline, exclusive=exclusive) as gate:
            lock = self._flock("lock", deadline, exclusive=exclusive)
            gate.close()
        with lock:
            yield lock

    def _flock(self, name: str, deadline: float, *, exclusive: bool) -> IO[Any]:
        path = self.locks / f"{Path(self.url).stem}.{name}"
        kind = portalocker.LockFlags.EXCLUSIVE if exclusive else portalocker.LockFlags.SHARED
        file = path.open("a+")
        while True:
            try:
                portalocker.lock(file, kind | portalocker.LockFlags.NON_BLOCKING)
            except portalocker.LockException:
                if time.monotonic() > deadline:
                    file.close()
                    holder = _signature(path.with_suffix(".lock"))
                    raise WarehouseBusy(
                        f"The warehouse was held for longer than {self.wait_seconds:g} s{holder}.",
                        "Wait for that process or stop it, then try again; ORDERS_LOCK_WAIT_SECONDS sets the wait.",
                    ) from None
                time.sleep(POLL_SECONDS)
            except BaseException:
                file.close()
                raise
            else:
                return file

    def _is_there(self) -> bool:
        path = Path(self.url)
        return path.exists() and path.stat().st_size > 0

    def _create(self) -> None:
        """Make the file under another name and rename it: DuckDB refuses a file whose making was interrupted (measured)."""
        path = Path(self.url)
        part = path.with_name(f".{path.name}.part")
        for leftover in (part, Path(f"{part}.wal"), Path(f"{path}.wal")):
            leftover.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        con = duckdb.connect(str(part), config={"storage_compatibility_version": STORAGE})
        try:
            publications.prepare(con, self.calendar)
        finally:
            con.close()
        part.rename(path)

    @contextmanager
    def _connected(self, *, read_only: bool) -> Iterator[Any]:
        con = self._connect(read_only=read_only)
        is_sound = False
        try:
            con.execute("set TimeZone = 'UTC'")
            yield con
            is_sound = True
        finally:
            self._close(con, read_only=read_only, is_sound=is_sound)

    def _means(self) -> engine.Means:
        return engine.Means(str(Path(self.url).resolve().parent / "tmp"), self.threads, self.memory_limit)

    def _attachment(self, *, read_only: bool) -> Hashable:
        """What sessions of this process share; readers do, so that closing one frees no lock of another."""
        return self.url, read_only

    def _close(self, con: Any, *, read_only: bool, is_sound: bool) -> None:
        engine.release(self._attachment(read_only=read_only), con, is_sound=is_sound)

    def _connect(self, *, read_only: bool) -> Any:
        """Connect; a foreign process (a DuckDB shell, a stock I/O manager) that holds the file is waited for, too."""
        path = Path(self.url)
        if not self._is_there():
            self._create()
        key = self._attachment(read_only=read_only)
        attaching = f"attach {literal(str(path))} as {engine.CATALOG}{' (read_only)' if read_only else ''}"
        deadline = time.monotonic() + self.wait_seconds
        while True:
            try:
                return engine.attach(key, self._means(), lambda con: con.execute(attaching))
            except duckdb.Error as error:
                if not any(sign in str(error) for sign in HELD):
                    raise OrdersError(
                        f"The warehouse {path} cannot be opened: {error}", "Free disk space, or restore the file from a backup."
                    ) from error
                if time.monotonic() > deadline:
                    raise WarehouseBusy(
                        f"Another program holds {path.name}: {str(error).splitlines()[0]}", "Close it, then try again."
                    ) from None
                time.sleep(10 * POLL_SECONDS)


def _sign(lock: IO[Any], holder: str | None) -> None:
    lock.seek(0)
    lock.truncate()
    if holder:
        json.dump({"pid": os.getpid(), "for": holder, "since": datetime.now(UTC).isoformat(timespec="seconds")}, lock)
    lock.flush()


def _file(url: str) -> Path:
    """The file, symbolic links resolved: DuckDB keeps the write-ahead log under the name the file was opened by.

    Raises:
        SettingsError: A database in memory, which would forget every publication with its session, or a name with "?".
    """
    if "?" in url:  # DuckDB would look for the write-ahead log at another place
        raise SettingsError(
            "ORDERS_WAREHOUSE_URL is neither a file without a question mark nor ducklake:postgres:…", "Choose another one."
        )  # not shown: it may be a database's, with its password
    if url.startswith(":memory:"):
        raise SettingsError("A warehouse in memory would be empty in every session.", "Set ORDERS_WAREHOUSE_URL to a file.")
    return Path(url).expanduser().resolve()


def _signature(lock: Path) -> str:
    try:
        found = json.loads(lock.read_text())
    except (OSError, ValueError):
        return ", by readers"
    return f" by process {found['pid']} ({found['for']}, since {found['since']})"
