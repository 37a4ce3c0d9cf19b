"""The swap. Belongs here: replacing exactly some intervals of some tables, with their publications, in one transaction.

Not here: Dagster (io_managers.py), sessions and claims (session.py). It commits or raises; never half.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from orders_platform.calendar import Calendar, describe
from orders_platform.warehouse import publications
from orders_platform.warehouse.contract import ContractViolation, identifier
from orders_platform.warehouse.inputs import (
    Input,
    create_run_intervals,
    create_views,
    of_intervals,
    portions,
    reads_of,
    resolve,
    verify_landed,
    verify_moved,
)
from orders_platform.warehouse.publications import Pair, Publication
from orders_platform.warehouse.tables import Output, delete_rows, ensure_table, insert_rows, measure


@dataclass(frozen=True)
class Swap:
    """One atomic replacement of `intervals` in every output, by one run.

    Attributes:
        fence: Raises when the asking run may no longer write; asked before the work and again before COMMIT.
        landing_root: Where landed files lie.
    """

    outputs: Sequence[Output]
    intervals: Sequence[str]
    inputs: Sequence[Input]
    run_id: str
    code_version: str
    calendar: Calendar
    landing_root: Path
    git_commit: str | None = None
    fence: Callable[[], None] = field(default=lambda: None)

    def run(self, con: Any) -> list[Publication]:
        """Replace the intervals; returns one publication an output and interval, outputs in order.

        Raises:
            MissingInput, gates.InputRefused, InputMoved: An input cannot be read as asked.
            SchemaMismatch, BadQuery, ContractViolation: The rows cannot be published.
        """
        started = time.monotonic()
        self.fence()
        written = {(output.table, interval) for output in self.outputs for interval in self.intervals}
        with publications.transaction(con):  # the inputs too: on DuckLake others replace them beside us, and see one snapshot
            read = resolve(con, self.inputs, written, f"{self.outputs[0].table} {describe(self.intervals)}")
            verify_moved(self.inputs, read)
            verify_landed(self.inputs, read, self.landing_root)
            made = self._write(con, read, started)
            self.fence()
        self._forget(con)
        return made

    def _write(self, con: Any, read: Mapping[Pair, Publication], started: float) -> list[Publication]:
        for output in self.outputs:
            ensure_table(con, output.table, output.contract)
        previous = publications.current(con, [(o.table, i) for o in self.outputs for i in self.intervals])
        step = self.outputs[0].contract.step_days
        made: dict[Pair, Publication] = {}
        for output in self.outputs:
            for interval in self.intervals:
                old = previous.get((output.table, interval))
                made[output.table, interval] = Publication(
                    output.table, interval, self.run_id, self.code_version, digest="", row_count=0, git_commit=self.git_commit,
                    revision=old.revision + 1 if old else 1, companion_of=output.companion_of, step_days=step,
                    digest_columns=tuple(output.contract.columns),
                )  # fmt: skip
            delete_rows(con, output, self.intervals)
        inserted = dict.fromkeys((output.table for output in self.outputs), 0)
        parts = self._portions(read)
        for portion in parts:
            create_views(con, of_intervals(self.inputs, portion), read, self.landing_root, is_verified=True)
            create_run_intervals(con, self.calendar, portion, step)
            for output in self.outputs:
                ids = {i: made[output.table, i].publication_id for i in portion}
                inserted[output.table] += insert_rows(con, output, ids)
        findings: dict[str, list[str]] = {}
        for output in self.outputs:
            measured, wrong = measure(con, output, parts, inserted[output.table])
            for interval, texts in wrong.items():
                findings.setdefault(interval, []).extend(texts)
            for interval, facts in measured.items():
                made[output.table, interval] = replace(made[output.table, interval], **facts)
        if findings:
            raise ContractViolation(self.outputs[0].table, findings, self.intervals, step)
        seconds = (time.monotonic() - started) / len(made)
        known = {**read, **made}  # of its own table an interval reads what this very swap writes
        done = [
            replace(p, inputs=reads_of(self.inputs, p.interval, known), duration_seconds=round(seconds, 6))
            for p in made.values()
        ]
        publications.append(con, done)
        return done

    def _portions(self, read: Mapping[Pair, Publication]) -> Sequence[Sequence[str]]:
        """The intervals as they are inserted: all at once where rows are here already, or follow from each other."""
        tables = {output.table for output in self.outputs}
        if any(item.asset in tables for item in self.inputs) or not all(
            isinstance(output.rows, str) for output in self.outputs
        ):
            return [self.intervals]
        return list(portions(self.intervals, self.inputs, read))

    def _forget(self, con: Any) -> None:
        for name in ("run_intervals", *(identifier(item.name) for item in self.inputs)):
            con.execute(f"drop view if exists temp.{name}")
