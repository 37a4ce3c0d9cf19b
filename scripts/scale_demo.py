"""`make scale-demo`: a backfill by two workers, one of which is killed. Belongs here: what is launched, struck, and checked after.

Not here: the servers and processes (cluster.py). It is a script, not a command of the package: it needs the development environment.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import click
import dagster as dg
import psycopg
from dagster._core.scheduler.instigation import TickStatus
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG
from rich.console import Console

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from orders_platform.settings import SOURCE_QUERY, settings  # noqa: E402
from orders_platform.warehouse.session import Warehouse  # noqa: E402
from scripts.cluster import Cluster, cluster  # noqa: E402
from scripts.scale_report import Outcome, problems, show  # noqa: E402

FIRST = date(2026, 1, 5)
SOURCE_POOL = "source"
ASSETS = "raw_orders,stg_orders,fct_orders,revenue_daily,revenue_to_date,customer_features"
WORKERS = ("1", "2")
SLOW_SOURCE = SOURCE_QUERY.replace("from orders", "from orders, pg_sleep(0.5)")
"""A source that takes its time, so that captures meet."""
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


class Demo:
    """One backfill on one cluster, watched from outside by what Dagster, the lake and the source say."""

    def __init__(self, made: Cluster, days: int, assets: list[str], patience: int) -> None:
        self.cluster, self.assets, self.patience = made, assets, patience
        self.days = [(FIRST + timedelta(days=n)).isoformat() for n in range(days)]
        self.started = time.monotonic()
        self.seconds: dict[str, float] = {}
        self.connections = self.waited = 0

    def lap(self, name: str) -> None:
        """Note when something happened."""
        self.seconds[name] = round(time.monotonic() - self.started, 1)
        console.print(f"{self.seconds[name]:6.1f} s  {name}")

    def prepare(self, orders: int) -> None:
        """A workspace in Postgres and S3, a source, and the processes of the units; the daemon last."""
        filling = ("source", "generate", "--yes", "--days", str(len(self.days)), "--orders-per-day", str(orders))
        with ThreadPoolExecutor(1) as pool:
            filled = pool.submit(self.cluster.run, "orders", *filling)
            self.cluster.start("orders-code")
            self.cluster.run("orders", "setup")
            filled.result()
        for number in WORKERS:
            self.cluster.start("orders-worker@", number)
        self.cluster.wait_for_code()
        self.lap("servers, workspace, source and two workers are up")

    def launch(self) -> str:
        """Launch the backfill through the API that the UI uses; its id.

        Raises:
            RuntimeError: Dagster refuses it.
        """
        # By asset: days named once for all of them would reach, through customer_features' window, the 27 days after them.
        span = {"range": {"start": self.days[0], "end": self.days[-1]}}
        params = {"partitionsByAssets": [{"assetKey": {"path": [name]}, "partitions": span} for name in self.assets]}
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
                    self.connections = max(self.connections, row[0] if row else 0)

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
        if time.monotonic() - self.started > self.patience:
            raise RuntimeError(f"not done after {self.patience} s: {self.cluster.logs} of --home says why")
        self.waited = max(self.waited, self.pool(instance).pending_step_count)
        return Counter(run.status.value for run in instance.get_runs())

    def pool(self, instance: Any) -> Any:
        """Who holds the source's pool and who waits for it."""
        return instance.event_log_storage.get_concurrency_info(SOURCE_POOL)

    def strike(self, instance: Any, share: float) -> int:
        """Wait until this share of the runs is through, and kill a worker whose runs are all under way; how many it had."""
        while True:
            found = self.statuses(instance)
            runs = [run for run in instance.get_runs() if run.status.value == "STARTED"]
            if found["SUCCESS"] >= share * sum(found.values()) and runs:
                under_way = {run.tags.get(DAGSTER_CELERY_TASK_ID_TAG) for run in runs}
                active = instance.run_launcher.celery.control.inspect(timeout=2, limit=len(WORKERS)).active() or {}
                tasks = {worker: {task["id"] for task in held} for worker, held in active.items()}
                busy = [worker for worker, held in tasks.items() if held and held <= under_way]
                if busy:
                    busiest = max(busy, key=lambda worker: len(tasks[worker]))
                    number, held = busiest.split("@")[0].removeprefix("worker"), len(tasks[busiest])
                    pids = self.cluster.kill(f"orders-worker@{number}")
                    self.lap(f"worker {number} is killed with -9, all {len(pids)} processes, with {held} runs under way")
                    return held
            time.sleep(0.1)

    def wait(self, instance: Any, backfill: str, *, backfill_too: bool) -> None:
        """Until no run is unfinished, and the backfill is not; the daemon looks at it every 30 s."""
        said = -30.0
        while True:
            found = self.statuses(instance)
            if time.monotonic() - said > 10:
                said = time.monotonic()
                shown = ", ".join(f"{count} {status.lower()}" for status, count in sorted(found.items()))
                console.print(f"{said - self.started:6.1f} s  runs: {shown}")
            is_over = instance.get_backfill(backfill).status.value.startswith(("COMPLETED", "FAILED")) or not backfill_too
            if is_over and set(found) <= {"SUCCESS", "FAILURE"} and not self.awaiting_retry(instance):
                return
            time.sleep(0.5)

    def awaiting_retry(self, instance: Any) -> int:
        """Failed runs that the daemon will retry and has not yet."""
        runs = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]))
        will = [run.run_id for run in runs if run.tags.get("dagster/will_retry") == "true"]
        return len(set(will) - {run.parent_run_id for run in instance.get_runs()})

    def retried(self, instance: Any) -> int:
        """Failed runs whose retry, or its retry, succeeded."""
        runs = instance.get_runs()
        good = {run.root_run_id for run in runs if run.status.value == "SUCCESS"}
        return sum(run.status.value == "FAILURE" and (run.root_run_id or run.run_id) in good for run in runs)

    def outcome(self, instance: Any, backfill: str, killed: int) -> Outcome:
        """Look at everything once more, after the end."""
        runs = instance.get_runs()
        pool = self.pool(instance)
        return Outcome(
            {table: self.times(rows) for table, rows in self.publications().items()},
            dict(Counter(run.status.value for run in runs)),
            self.retried(instance),
            killed,
            instance.get_backfill(backfill).status.value,
            self.connections,
            self.waited,
            pool.slot_count,
            pool.active_slot_count,
            self.states(),
            self.failed_ticks(instance),
            self.seconds,
        )

    def states(self) -> dict[str, int]:
        """What `orders status` says of the days: state -> intervals. `orders audit` has to come to a verdict too."""
        self.cluster.run("orders", "audit", "--json", allowed=(0, 1))
        rows = json.loads(self.cluster.run("orders", "status", "--json"))
        return dict(Counter(row["state"] for row in rows if row["asset"] in self.assets and row["interval"] in self.days))

    def failed_ticks(self, instance: Any) -> int:
        """Ticks of sensors and schedules that failed."""
        failed = [TickStatus.FAILURE]
        states = instance.all_instigator_state()
        return sum(len(instance.get_ticks(s.instigator_origin_id, s.selector_id, statuses=failed)) for s in states)

    def publications(self) -> dict[str, dict[str, list[str]]]:
        """Table -> interval -> digests, oldest first."""
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


@click.command()
@click.option("--days", type=click.IntRange(1, 365), default=60, show_default=True)
@click.option("--orders", type=click.IntRange(1), default=200, show_default=True, help="Orders a day.")
@click.option("--per-run", type=click.IntRange(1), default=2, show_default=True, help="Intervals a run.")
@click.option("--strike-after", type=float, default=0.33, show_default=True, help="Share of the runs done when it strikes.")
@click.option("--backfill-end/--no-backfill-end", default=True, help="Wait until the daemon has closed the backfill.")
@click.option("--patience", type=int, default=1500, show_default=True, help="Seconds until it gives up.")
@click.option("--assets", default=ASSETS, show_default=True)
@click.option("--home", type=click.Path(path_type=Path), help="An empty folder that is kept. [default: one that is removed]")
def main(
    days: int, orders: int, per_run: int, strike_after: float, backfill_end: bool, patience: int, assets: str, home: Path | None
) -> None:
    """Backfill with two workers, kill one of them midway, and exit 0 only if every interval was published."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that what was started is stopped too
    folder = home or Path(tempfile.mkdtemp(prefix="orders-scale-"))
    folder.mkdir(parents=True, exist_ok=True)
    end = FIRST + timedelta(days=6 + 7 * ((days - 1) // 7))
    try:
        given = {
            "ORDERS_END_DATE": end.isoformat(),
            "ORDERS_INTERVALS_PER_RUN": str(per_run),
            "ORDERS_SOURCE_QUERY": SLOW_SOURCE,
        }
        with cluster(folder, **given) as made:
            found = rehearse(Demo(made, days, assets.split(","), patience), orders, strike_after, backfill_too=backfill_end)
    finally:
        if not home:
            shutil.rmtree(folder, ignore_errors=True)
    show(console, found, days)
    said = problems(found)
    click.echo(json.dumps({**asdict(found), "problems": said}))
    sys.exit("\n".join(said) if said else 0)


def rehearse(demo: Demo, orders: int, share: float, *, backfill_too: bool) -> Outcome:
    """The whole story on a cluster that is up."""
    os.environ.clear()
    os.environ |= demo.cluster.environ
    demo.prepare(orders)
    with demo.watching_source():
        backfill = demo.launch()
        with dg.DagsterInstance.get() as instance:
            killed = demo.strike(instance, share)
            demo.wait(instance, backfill, backfill_too=backfill_too)
            demo.lap("the backfill is over")
            return demo.outcome(instance, backfill, killed)


if __name__ == "__main__":
    main()
