"""Processes that kill themselves with -9 at the n-th step of what they do; run by the tests of the swap and of the landing."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from orders_platform.warehouse import landing, publications
from orders_platform.warehouse.lake import Lake
from orders_platform.warehouse.publications import Publication
from orders_platform.warehouse.session import Warehouse
from tests import lakes
from tests.warehouse.kit import daily, lines, store, swap


class Steps:
    """Counts what is done, and dies at one of it."""

    def __init__(self, fatal: int = -1) -> None:
        self.fatal = fatal
        self.seen: list[str] = []

    def __call__(self, name: str) -> None:
        if len(self.seen) == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        self.seen.append(name)

    def around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*args: Any, **kwargs: Any) -> Any:
            self(f"before {name}")
            result = call(*args, **kwargs)
            self(f"after {name}")
            return result

        return stepped


class Connection:
    """A DuckDB connection whose every call is a step."""

    def __init__(self, con: Any, steps: Steps) -> None:
        self._con = con
        self._steps = steps

    def execute(self, sql: str, *parameters: Any) -> Any:
        return self._steps.around(" ".join(sql.split())[:60], self._con.execute)(sql, *parameters)

    def __getattr__(self, name: str) -> Any:
        return self._steps.around(name, getattr(self._con, name))


class MortalWarehouse(Warehouse):
    """A warehouse whose locks, statements and closing are steps."""

    steps: Steps

    def _flock(self, name: str, deadline: float, *, exclusive: bool) -> IO[Any]:
        result: IO[Any] = self.steps.around(f"taking {name}", super()._flock)(name, deadline, exclusive=exclusive)
        return result

    def _connect(self, *, read_only: bool) -> Any:
        return Connection(self.steps.around("connecting", super()._connect)(read_only=read_only), self.steps)

    def _close(self, con: Any, *, read_only: bool, is_sound: bool) -> None:
        self.steps.around("closing", super()._close)(con, read_only=read_only, is_sound=is_sound)


class MortalLake(MortalWarehouse, Lake):
    """The same on DuckLake."""


def mortal(home: Path, steps: Steps) -> MortalWarehouse:
    kind = MortalLake if lakes.chosen() else MortalWarehouse
    warehouse = kind(**vars(store(home, wait_seconds=5.0)))
    object.__setattr__(warehouse, "steps", steps)
    return warehouse


def priced(days: list[str], amount: str) -> Any:
    """The swap under test: a table and its companion from one input, with amounts that tell the versions apart."""
    own = f"select order_date, line, currency, amount + {amount} as amount, note from bought where line <> 'line 0'"
    aside = f"select order_date, line, currency, amount + {amount} as amount, note from bought where line = 'line 0'"
    return swap("sold", own, days, companions={"sold_aside": aside}, reads={"bought": daily(days)})


def write_until(home: Path, fatal: int, days: list[str], amount: str) -> Steps:
    steps = Steps(fatal)
    with mortal(home, steps).write("a run that is killed") as con:
        priced(days, amount).run(con)
    return steps


def write_much(home: Path, days: list[str], count: int) -> None:
    """Enough rows for a kill at a random moment to strike the insert, the commit and the checkpoint."""
    with store(home, wait_seconds=5.0).write("a run that is killed", ["sold"]) as con:
        swap("sold", lines(days, "2.00", count), days).run(con)


def run_until(step: str, arguments: list[str]) -> None:
    """Run the dagster command in this process, which kills itself when it reaches the first step so named."""
    from dagster._cli import main

    class Until(Steps):
        def __call__(self, name: str) -> None:
            if name.startswith(step):
                os.kill(os.getpid(), signal.SIGKILL)

    def connecting(warehouse: Warehouse, *, read_only: bool) -> Any:
        return Connection(connect(warehouse, read_only=read_only), steps)

    steps, connect = Until(), Warehouse._connect
    os.link = steps.around("link", os.link)  # type: ignore[assignment]
    Warehouse._connect = connecting  # type: ignore[method-assign]
    sys.argv = ["dagster", *arguments]
    main()


def land_until(home: Path, fatal: int, day: str, text: str) -> Steps:
    """Land 30 rows in three batches and publish the file, each step mortal."""
    steps = Steps(fatal)
    schema = pa.schema([("line", pa.string()), ("text", pa.string())])

    def batches() -> Iterator[pa.RecordBatch]:
        for first in range(3):
            steps(f"batch {first}")
            yield pa.record_batch([[f"line {first * 10 + n}" for n in range(10)], [text] * 10], schema=schema)

    os.link = steps.around("link", os.link)  # type: ignore[assignment]
    os.fsync = steps.around("fsync", os.fsync)  # type: ignore[assignment]
    file = landing.land(home / "landing", "raw", day, "order_date", batches(), schema)
    steps("landed")
    made = Publication("raw", day, "run", "code", file.digest, file.row_count, location=file.location, sha256=file.sha256)
    with mortal(home, steps).write("a landing that is killed") as con:
        publications.publish(con, made, lambda: None)
    return steps
