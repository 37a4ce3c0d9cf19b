"""Sessions. Belongs here: how a process gets at the warehouse: short, exclusive to write, shared to read, bounded in wait.

Not here: what is written (swap.py). Sessions never nest, and their settings are SET after connecting.
"""

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import duckdb
import portalocker

from orders_platform.calendar import Calendar
from orders_platform.errors import OrdersError
from orders_platform.settings import Settings
from orders_platform.warehouse import publications
from orders_platform.warehouse.contract import literal

POLL_SECONDS = 0.01
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

    url: str
    calendar: Calendar
    locks: Path
    wait_seconds: float = 120.0
    threads: int | None = None
    memory_limit: str = ""

    @classmethod
    def from_settings(cls, settings: Settings) -> "Warehouse":
        """The warehouse that these settings describe."""
        return cls(
            settings.warehouse_url,
            settings.calendar,
            settings.locks_root,
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
        if not Path(self.url).exists():
            with self.write("creating the warehouse"):
                pass
        with self._single(), self._locked(exclusive=False), self._connected(read_only=True) as con:
            if publications.is_prepared(con, self.calendar):
                yield con
                return
        with self.write("completing the platform schema"):
            pass
        with self.read() as con:
            yield con

    @contextmanager
    def write(self, holder: str) -> Iterator[Any]:
        """A connection that nobody else reads or writes beside; `holder` names its purpose to whoever waits.

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
        path = self.locks / f"warehouse.{name}"
        kind = portalocker.LockFlags.EXCLUSIVE if exclusive else portalocker.LockFlags.SHARED
        file = path.open("a+")
        while True:
            try:
                portalocker.lock(file, kind | portalocker.LockFlags.NON_BLOCKING)
            except portalocker.LockException:
                if time.monotonic() > deadline:
                    file.close()
                    raise WarehouseBusy(
                        f"The warehouse was held for longer than {self.wait_seconds:g} s{_signature(self.locks)}.",
                        "Wait for that process or stop it, then try again; ORDERS_LOCK_WAIT_SECONDS sets the wait.",
                    ) from None
                time.sleep(POLL_SECONDS)
            except BaseException:
                file.close()
                raise
            else:
                return file

    @contextmanager
    def _connected(self, *, read_only: bool) -> Iterator[Any]:
        con = self._connect(read_only=read_only)
        try:
            con.execute("set TimeZone = 'UTC'")
            con.execute(f"set temp_directory = {literal(str(Path(self.url).resolve().parent / 'tmp'))}")
            if self.threads:
                con.execute(f"set threads = {self.threads:d}")
            if self.memory_limit:
                con.execute(f"set memory_limit = {literal(self.memory_limit)}")
            yield con
        finally:
            con.close()

    def _connect(self, *, read_only: bool) -> Any:
        """Connect; a foreign process (a DuckDB shell, a stock I/O manager) that holds the file is waited for, too."""
        path = Path(self.url)
        path.parent.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + self.wait_seconds
        while True:
            try:
                return duckdb.connect(str(path), read_only=read_only)
            except duckdb.IOException as error:
                if "lock" not in str(error).lower():
                    raise OrdersError(f"The warehouse {path.name} cannot be opened: {error}", "See the message.") from error
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


def _signature(locks: Path) -> str:
    try:
        found = json.loads((locks / "warehouse.lock").read_text())
    except (OSError, ValueError):
        return ", by readers"
    return f" by process {found['pid']} ({found['for']}, since {found['since']})"
