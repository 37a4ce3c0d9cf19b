"""Claims. Belongs here: one Postgres advisory lock a table, so that of a DuckLake's table one swap comes after the other.

Not here: the session around it (lake.py); on a DuckDB file the exclusive session is the claim (session.py).
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from orders_platform.warehouse.session import POLL_SECONDS, WarehouseBusy

if TYPE_CHECKING:
    import psycopg

LOCK_SPACE = 20260105
"""First half of the advisory lock's key; the second is the hash of the table's name."""
WAIT = "Wait for it or stop it, then try again; ORDERS_LOCK_WAIT_SECONDS sets the wait."
IN_FLIGHT = """
select pid, backend_xid::text from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and backend_xid is not null
"""


class LakeUnavailable(WarehouseBusy):
    """The catalog or the data path cannot be reached, or refused the commit; the message never shows the password."""


class Claim:
    """What one connection to the catalog holds; Postgres frees it when the connection or its process ends."""

    def __init__(self, lock: "psycopg.Connection", wait_seconds: float) -> None:
        self.lock = lock
        self.wait_seconds = wait_seconds
        self.lock.execute(f"set lock_timeout = {int(wait_seconds * 1000):d}")

    def take(self, tables: Sequence[str]) -> None:
        """Wait for the tables, in name order, and for what a writer that died may still have in flight.

        Raises:
            WarehouseBusy: Names the table and who has it.
        """
        import psycopg

        for table in sorted(tables):
            try:
                self.lock.execute("select pg_advisory_lock(%s, hashtext(%s))", (LOCK_SPACE, table))
            except psycopg.errors.LockNotAvailable:
                held = f"{table} was held for longer than {self.wait_seconds:g} s by {self._holder(table)}."
                raise WarehouseBusy(held, WAIT) from None
        self._settle()

    def verify(self) -> None:
        """Refuse to go on when the connection broke: somebody else may have the tables by now."""
        self.lock.execute("select 1")

    def _settle(self) -> None:
        """Until what is being committed now has ended: a killed writer's lock is free while Postgres still commits for it.

        Measured: two copies of a day first loaded by a writer that was killed during its COMMIT, and by the next one.
        """
        found = set(self.lock.execute(IN_FLIGHT).fetchall())
        deadline = time.monotonic() + self.wait_seconds
        while found := found & set(self.lock.execute(IN_FLIGHT).fetchall()):
            if time.monotonic() > deadline:
                pids = ", ".join(str(pid) for pid, _ in sorted(found))
                raise WarehouseBusy(f"The catalog's backend {pids} did not end its transaction.", WAIT)
            time.sleep(POLL_SECONDS)

    def _holder(self, table: str) -> str:
        row = self.lock.execute(
            "select a.application_name, a.pid, a.backend_start from pg_locks l join pg_stat_activity a using (pid) "
            "where l.locktype = 'advisory' and l.granted and l.classid = %s "
            "and l.objid::bigint = (hashtext(%s)::bigint & 4294967295)",
            (LOCK_SPACE, table),
        ).fetchone()
        return f"{row[0]} (backend {row[1]}, since {row[2]:%Y-%m-%d %H:%M:%S})" if row else "somebody who has just let it go"


class Claimed:
    """A DuckDB connection that commits only what is still claimed."""

    def __init__(self, con: Any, claim: Claim) -> None:
        self._con, self._claim = con, claim

    def execute(self, sql: str, *parameters: Any) -> Any:
        """Run the statement; before a COMMIT, ask whether the claim still holds."""
        if sql == "commit":
            self._claim.verify()
        return self._con.execute(sql, *parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._con, name)


@contextmanager
def claimed(conninfo: str, holder: str, tables: Sequence[str], wait_seconds: float) -> Iterator[Claim]:
    """The tables, for as long as the block runs; `holder` is shown to whoever waits.

    Raises:
        WarehouseBusy: They could not be had within the wait.
        LakeUnavailable: The catalog cannot be reached, or the connection that held the claim broke.
    """
    import psycopg

    try:
        with psycopg.connect(conninfo, autocommit=True, application_name=holder[:63]) as lock:
            claim = Claim(lock, wait_seconds)
            claim.take(tables)
            yield claim
    except psycopg.OperationalError:
        raise LakeUnavailable("The catalog of the warehouse cannot be reached.", "See ORDERS_WAREHOUSE_URL.") from None
