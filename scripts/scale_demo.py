"""`make scale-demo`: a backfill by two workers, one of which is killed. Belongs here: what is launched, struck, and checked after.

Not here: the servers and processes (cluster.py). It is a script, not a command of the package: it needs the development environment.
"""

import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import click
import psycopg
from rich.console import Console
from rich.table import Table

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from scripts.cluster import Cluster, cluster  # noqa: E402

FIRST = date(2026, 1, 5)
ASSETS = "raw_orders,stg_orders,fct_orders,revenue_daily,revenue_to_date,customer_features"
WORKERS = ("1", "2")
PATIENCE_SECONDS = 1500
MUTATION = """
mutation ($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
  }
}
"""
console = Console(stderr=True)


@dataclass
class Outcome:
    """What is true at the end; `problems` reads it.

    Attributes:
        tables: Table -> how many intervals were published so many times: "once", "again" (a second time, with equal
            content), "differently" (a second time, with other content), "missing".
        runs: Run status -> runs.
        retried: Runs that failed and whose retry succeeded.
        slots: Places of the source's pool still taken.
    """

    tables: dict[str, dict[str, int]]
    runs: dict[str, int]
    retried: int
    killed: int
    backfill: str
    connections: int
    limit: int
    slots: int
    seconds: dict[str, float] = field(default_factory=dict)


def problems(found: Outcome) -> list[str]:
    """What should not be so, in words; nothing when every interval was published once and nothing hangs.

    >>> good = Outcome({"fct_orders": {"once": 3}}, {"SUCCESS": 3, "FAILURE": 1}, 1, 1, "COMPLETED_SUCCESS", 2, 2, 0)
    >>> problems(good)
    []
    """
    said = [
        f"{table}: {count} intervals {what}"
        for table, counts in found.tables.items()
        for what, count in counts.items()
        if what in ("differently", "missing") and count
    ]
    said += [f"{count} runs are {status}" for status, count in found.runs.items() if status not in ("SUCCESS", "FAILURE")]
    if found.runs.get("FAILURE", 0) != found.retried:
        said.append(f"{found.runs.get('FAILURE', 0)} runs failed and {found.retried} of them were retried with success")
    if not found.killed:
        said.append("the worker was killed while it had no run")
    if found.backfill != "COMPLETED_SUCCESS":
        said.append(f"the backfill is {found.backfill}")
    if found.connections > found.limit:
        said.append(f"the source had {found.connections} readers at once, {found.limit} are allowed")
    if found.slots:
        said.append(f"{found.slots} places of the source's pool are still taken")
    return said


class Demo:
    """One backfill on one cluster, watched from outside by what Dagster, the lake and the source say."""

    def __init__(self, made: Cluster, days: int, assets: list[str]) -> None:
        self.cluster, self.assets = made, assets
        self.days = [(FIRST + timedelta(days=n)).isoformat() for n in range(days)]
        self.started = time.monotonic()
        self.seconds: dict[str, float] = {}
        self.peak = 0

    def lap(self, name: str) -> None:
        """Note when something happened."""
        self.seconds[name] = round(time.monotonic() - self.started, 1)
        console.print(f"{self.seconds[name]:6.1f} s  {name}")

    def prepare(self, orders: int) -> None:
        """A workspace in Postgres and S3, a source, and the processes of the units; the daemon last."""
        self.cluster.start("orders-code")
        self.cluster.run("orders", "setup")
        for number in WORKERS:
            self.cluster.start("orders-worker@", number)
        self.cluster.run("orders", "source", "generate", "--yes", "--days", str(len(self.days)), "--orders-per-day", str(orders))
        self.cluster.wait_for_code()
        self.lap("servers, workspace, source and two workers are up")

    def launch(self) -> str:
        """Launch the backfill by the call that the UI's button makes; its id.

        Raises:
            RuntimeError: Dagster refuses it.
        """
        params = {
            "partitionNames": self.days,
            "assetSelection": [{"path": [name]} for name in self.assets],
            "allPartitions": False,
            "fromFailure": False,
        }
        asked = ("dagster-graphql", "--workspace", "deploy/workspace.yaml", "--text", MUTATION)
        answer = self.cluster.run(*asked, "--variables", json.dumps({"params": params}))
        found = json.loads(answer[answer.index("{") :])["data"]["launchPartitionBackfill"]
        if "backfillId" not in found:
            raise RuntimeError(f"the backfill was not launched: {found}")
        self.cluster.start("orders-daemon")
        self.lap(f"a backfill of {len(self.days)} days of {len(self.assets)} assets is launched")
        return str(found["backfillId"])

    @contextmanager
    def watching_source(self) -> Iterator[None]:
        """Count the source's readers, twenty times a second."""
        done = threading.Event()

        def watch() -> None:
            with psycopg.connect(dbname="postgres", autocommit=True) as con:
                while not done.wait(0.05):
                    row = con.execute("select count(*) from pg_stat_activity where datname = 'shop'").fetchone()
                    self.peak = max(self.peak, row[0] if row else 0)

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def statuses(self, instance: Any) -> Counter[str]:
        """Run status -> runs."""
        dead = self.cluster.dead()
        if dead:
            raise RuntimeError(f"{', '.join(dead)} ended; see {self.cluster.logs}")
        if time.monotonic() - self.started > PATIENCE_SECONDS:
            raise RuntimeError(f"not done after {PATIENCE_SECONDS} s; see {self.cluster.logs}")
        return Counter(run.status.value for run in instance.get_runs())

    def strike(self, instance: Any) -> int:
        """Wait until a third of the intervals are through, and kill the worker that has the most runs; how many it had."""
        while True:
            found = self.statuses(instance)
            if found["SUCCESS"] * 3 >= sum(found.values()) and found["STARTED"]:
                active = instance.run_launcher.celery.control.inspect(timeout=2, limit=len(WORKERS)).active() or {}
                busiest = max(active, key=lambda worker: len(active[worker]), default="")
                if busiest and active[busiest]:
                    number = busiest.split("@")[0].removeprefix("worker")
                    pids = self.cluster.kill(f"orders-worker@{number}")
                    self.lap(f"worker {number} is killed with -9, {len(pids)} processes, in the middle of {len(active[busiest])} runs")
                    return len(active[busiest])
            time.sleep(0.2)

    def wait(self, instance: Any, backfill: str, *, to_the_end: bool) -> None:
        """Until no run is unfinished, and the backfill is either, where it is waited for."""
        said = -30.0
        while True:
            found = self.statuses(instance)
            if time.monotonic() - said > 10:
                said = time.monotonic()
                shown = ", ".join(f"{count} {status.lower()}" for status, count in sorted(found.items()))
                console.print(f"{said - self.started:6.1f} s  runs: {shown}")
            is_over = instance.get_backfill(backfill).status.value.startswith(("COMPLETED", "FAILED")) or not to_the_end
            if is_over and set(found) <= {"SUCCESS", "FAILURE"} and not self.waiting_for_retry(instance):
                return
            time.sleep(0.5)

    def waiting_for_retry(self, instance: Any) -> int:
        """Failed runs that have no retry that succeeded."""
        runs = instance.get_runs()
        good = {run.parent_run_id for run in runs if run.status.value == "SUCCESS"}
        return sum(run.status.value == "FAILURE" and run.run_id not in good for run in runs)

    def outcome(self, instance: Any, backfill: str, killed: int) -> Outcome:
        """Look at everything once more, after the end."""
        runs = instance.get_runs()
        failed = sum(run.status.value == "FAILURE" for run in runs)
        pool = instance.event_log_storage.get_concurrency_info("source")
        return Outcome(
            {table: self.times(rows) for table, rows in self.publications().items()},
            dict(Counter(run.status.value for run in runs)),
            failed - self.waiting_for_retry(instance),
            killed,
            instance.get_backfill(backfill).status.value,
            self.peak,
            pool.slot_count,
            pool.active_slot_count,
            self.seconds,
        )

    def publications(self) -> dict[str, dict[str, list[str]]]:
        """Table -> interval -> digests, oldest first."""
        from orders_platform.settings import settings
        from orders_platform.warehouse.session import Warehouse

        found: dict[str, dict[str, list[str]]] = {name: {} for name in self.assets}
        asked = 'select asset, "interval", digest from platform.publications order by asset, "interval", revision'
        with Warehouse.from_settings(settings()).read() as con:
            for asset, interval, digest in con.execute(asked).fetchall():
                found.setdefault(asset, {}).setdefault(interval, []).append(digest)
        return found

    def times(self, published: dict[str, list[str]]) -> dict[str, int]:
        """How often the intervals of a table were published."""
        counts = Counter({"once": 0, "again": 0, "differently": 0, "missing": 0})
        for day in self.days:
            digests = published.get(day, [])
            what = "missing" if not digests else "once" if len(digests) == 1 else "again"
            counts["differently" if len(set(digests)) > 1 else what] += 1
        return dict(counts)


def show(found: Outcome, days: int) -> None:
    """The tables on the terminal."""
    table = Table("table", "intervals", "published once", "again, equal", "differently", "missing", title=f"{days} days")
    for name, counts in found.tables.items():
        table.add_row(name, str(days), *(str(counts[what]) for what in ("once", "again", "differently", "missing")))
    console.print(table)
    facts = Table("what", "found", "wanted", title_justify="left")
    facts.add_row("runs", ", ".join(f"{n} {status.lower()}" for status, n in sorted(found.runs.items())), "success, failure")
    facts.add_row("runs the killed worker had", str(found.killed), "at least 1")
    facts.add_row("failed runs whose retry succeeded", str(found.retried), str(found.runs.get("FAILURE", 0)))
    facts.add_row("backfill", found.backfill.lower(), "completed_success")
    facts.add_row("readers of the source at once", str(found.connections), f"at most {found.limit}")
    facts.add_row("places of the pool still taken", str(found.slots), "0")
    console.print(facts)


@click.command()
@click.option("--days", type=click.IntRange(1, 365), default=60, show_default=True)
@click.option("--orders", type=click.IntRange(1), default=200, show_default=True, help="Orders a day.")
@click.option("--per-run", type=click.IntRange(1), default=2, show_default=True, help="Intervals a run.")
@click.option("--assets", default=ASSETS, show_default=True)
@click.option("--home", type=click.Path(path_type=Path), help="An empty folder that is kept. [default: one that is removed]")
def main(days: int, orders: int, per_run: int, assets: str, home: Path | None) -> None:
    """Backfill with two workers, kill one of them midway, and exit 0 only if every interval was published."""
    folder = home or Path(tempfile.mkdtemp(prefix="orders-scale-"))
    folder.mkdir(parents=True, exist_ok=True)
    end = FIRST + timedelta(days=6 + 7 * ((days - 1) // 7))
    try:
        with cluster(folder, ORDERS_END_DATE=end.isoformat(), ORDERS_INTERVALS_PER_RUN=str(per_run)) as made:
            found = rehearse(Demo(made, days, assets.split(",")), orders)
    finally:
        if not home:
            shutil.rmtree(folder, ignore_errors=True)
    show(found, days)
    said = problems(found)
    click.echo(json.dumps({**asdict(found), "problems": said}))
    sys.exit("\n".join(said) if said else 0)


def rehearse(demo: Demo, orders: int) -> Outcome:
    """The whole story on a cluster that is up."""
    os.environ.clear()
    os.environ |= demo.cluster.environ
    demo.prepare(orders)
    with demo.watching_source():
        backfill = demo.launch()
        import dagster as dg

        with dg.DagsterInstance.get() as instance:
            killed = demo.strike(instance)
            demo.wait(instance, backfill, to_the_end=True)
            demo.lap("the backfill is over")
            return demo.outcome(instance, backfill, killed)


if __name__ == "__main__":
    main()
