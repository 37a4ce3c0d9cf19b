"""Faults. Belongs here: a statement that fails, a process that is killed, processes that run at once; the same for both sides.

Not here: mocks. The fault strikes real DuckDB connections, whoever opens them; what follows is what follows.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import duckdb

from orders_platform.warehouse import engine

FORK = multiprocessing.get_context("fork")
"""Children start warm: no import, 10 ms. Drills run in a process of one thread, so that forking is safe."""
PATIENCE_SECONDS = 60


class NeverStruck(Exception):
    """A fault that did not happen, so that the drill would show nothing."""


class Connection:
    """A DuckDB connection that tells each statement before it runs."""

    def __init__(self, con: Any, tell: Callable[[str], None]) -> None:
        self._con, self._tell = con, tell

    def execute(self, sql: str, *parameters: Any) -> Any:
        """Tell the statement, then run it."""
        self._tell(sql)
        return self._con.execute(sql, *parameters)

    def executemany(self, sql: str, *parameters: Any) -> Any:
        """Tell the statement, then run it."""
        self._tell(sql)
        return self._con.executemany(sql, *parameters)

    def cursor(self) -> "Connection":
        """Another connection to the same database, which tells too."""
        return Connection(self._con.cursor(), self._tell)

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self._con.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._con, name)


@contextmanager
def at_statement(begins: str, act: Callable[[], None], *times: int) -> Iterator[None]:
    """Call `act` just before the statements of these numbers (1 is the first) among those that begin with this text.

    Raises:
        NeverStruck: There were fewer such statements.
    """
    connect, count, wanted = duckdb.connect, 0, times or (1,)

    def tell(sql: str) -> None:
        nonlocal count
        if " ".join(sql.split()).startswith(begins):
            count += 1
            if count in wanted:
                act()

    def connecting(*args: Any, **kwargs: Any) -> Any:
        return Connection(connect(*args, **kwargs), tell)

    engine.forget()
    duckdb.connect = connecting
    try:
        yield
    finally:
        duckdb.connect = connect
        engine.forget()
    if count < max(wanted):
        raise NeverStruck(f"{count} statements began with {begins!r}, so the fault of number {max(wanted)} never struck.")


def broken_disk() -> None:
    """What DuckDB raises when the disk fails in the middle of its work."""
    raise duckdb.IOException("IO Error: Could not write all bytes to file: disk I/O error")


def killed_at(begins: str, work: Callable[[], object], number: int = 1) -> None:
    """Do the work in a process that is killed with -9 just before that statement.

    Raises:
        NeverStruck: It ended by itself.
    """

    def doomed() -> None:
        with at_statement(begins, lambda: os.kill(os.getpid(), signal.SIGKILL), number):
            work()

    (code,) = together(doomed)
    if code != -signal.SIGKILL:
        raise NeverStruck(f"The process was not killed before {begins!r}: it ended with {code}.")


def together(*works: Callable[[], object]) -> list[int | None]:
    """Do each work in a process of its own, all at the same time; their exit codes."""
    processes = [FORK.Process(target=work) for work in works]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE_SECONDS)
        if process.exitcode is None:
            process.kill()
            process.join()
    return [process.exitcode for process in processes]
