"""The tour's screenshots: a fresh workspace, a real `dagster dev`, a real browser. Belongs here: what docs/tour.md shows.

python scripts/tour.py            writes docs/tour/*.png; needs chromium and playwright
"""

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

PROJECT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
SHOTS = PROJECT / "docs" / "tour"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WEEK, BAD_DAY, CORRECTED = "2026-01-05", "2026-01-14", "2026-01-07"
BUSY = ("QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING")
RUNS = "{ runsOrError(limit: 200) { ... on Runs { results { runId status jobName } } } }"
BACKFILLS = "{ partitionBackfillsOrError(limit: 20) { ... on PartitionBackfills { results { id status } } } }"


class Tour:
    """One walk through the UI; every step leaves a picture and waits for what it started."""

    def __init__(self, home: Path, url: str, page: Page) -> None:
        self.home, self.url, self.page = home, url, page

    def shot(self, name: str) -> None:
        """Write docs/tour/<name>.png."""
        self.page.wait_for_timeout(6000)
        self.page.screenshot(path=SHOTS / f"{name}.png")
        print(f"docs/tour/{name}.png", flush=True)

    def open(self, path: str) -> None:
        """Go to a page of the UI."""
        self.page.goto(self.url + path)
        self.page.wait_for_load_state("networkidle")

    def ask(self, query: str) -> Any:
        """The results of one query to the UI's own GraphQL."""
        body = json.dumps({"query": query}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", body, {"Content-Type": "application/json"})  # noqa: S310
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return next(iter(json.load(answer)["data"].values()))["results"]

    def wait_for_runs(self, before: set[str], seconds: float = 600) -> list[dict[str, str]]:
        """The runs started since `before`, once there is one and every one has ended, and so has every backfill."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            runs = [run for run in self.ask(RUNS) if run["runId"] not in before]
            open_backfills = [b for b in self.ask(BACKFILLS) if b["status"] in ("REQUESTED", "CANCELING")]
            if runs and not open_backfills and all(run["status"] not in BUSY for run in runs):
                return runs
            time.sleep(2)
        raise TimeoutError("the runs did not end")

    def materialize(self, path: str, partitions: str, name: str = "") -> list[dict[str, str]]:
        """Press Materialize on a page, type the partitions, launch, and wait."""
        before = {run["runId"] for run in self.ask(RUNS)}
        self.open(path)
        self.page.get_by_role("button", name="Materialize").first.click()
        dialog = self.page.get_by_role("dialog")
        if partitions:
            field = dialog.get_by_placeholder("ex: ")
            field.fill(partitions)
            field.press("Enter")
        if name:
            self.shot(name)
        if partitions:
            dialog.get_by_role("button", name="Launch", exact=False).last.click()
        return self.wait_for_runs(before)

    def orders(self, *command: str) -> None:
        """Run an `orders` command and show what it said."""
        done = subprocess.run([BIN / "orders", *command], cwd=PROJECT, capture_output=True, text=True, check=False)
        print(f"$ orders {' '.join(command)}\n{done.stdout}{done.stderr}", flush=True)

    def source(self, sql: str) -> None:
        """Change the source, as the shop would."""
        with sqlite3.connect(self.home / "source.db") as con:
            con.execute(sql)
        con.close()

    def walk(self) -> None:
        """The tour, in the order of docs/tour.md."""
        page, daily = self.page, "/locations/orders_platform/jobs/daily_orders"
        self.materialize(daily, WEEK, "materialize")
        self.open("/assets/revenue_daily?view=overview")
        self.shot("asset")
        self.materialize(daily, "[2026-01-06...2026-02-01]", "backfill")
        self.open("/assets/revenue_to_date?view=partitions")
        self.shot("partitions")
        self.materialize("/assets/customer_features", "[2026-01-05...2026-02-01]")
        self.open("/assets/customer_features?view=lineage&lineageScope=neighbors")
        self.shot("features")
        self.open("/assets/fct_orders?view=lineage&lineageScope=neighbors&lineageDepth=5")
        page.wait_for_timeout(4000)
        page.mouse.dblclick(600, 700)  # on the background: fits the graph into the window
        self.shot("lineage")

        self.source("create table aside as select * from orders")
        self.source(f"delete from orders where ordered_at like '{BAD_DAY}%'")
        self.materialize("/assets/raw_orders", BAD_DAY)
        self.open("/assets/raw_orders?view=checks&checkDetail=arrived")
        self.shot("failed-check")
        self.materialize("/assets/executive_dashboard", "")
        page.goto((self.home / "dashboard" / "index.html").as_uri())
        self.shot("dashboard")

        self.source("delete from orders")
        self.source("insert into orders select * from aside")
        before = {run["runId"] for run in self.ask(RUNS)}
        self.orders("repair", "raw_orders", BAD_DAY, "--recapture", "--yes", "--reason", "the shop's export was late")
        self.wait_for_runs(before)
        self.open("/runs")
        self.shot("repair")

        self.materialize("/assets/finance_export", WEEK)
        self.materialize("/assets/finance_delivery", WEEK)
        paid = f"select min(order_id) from orders where ordered_at like '{CORRECTED}%' and status = 'paid'"
        self.source(f"update orders set gross_amount = '111.11' where order_id = ({paid})")
        self.orders("repair", "raw_orders", CORRECTED, "--recapture", "--yes", "--reason", "the shop corrected an order")
        (waiting,) = self.materialize("/assets/finance_delivery", WEEK)
        self.orders("deliveries", "show", WEEK)
        self.open(f"/runs/{waiting['runId']}")
        self.shot("awaiting-approval")
        self.orders("deliveries", "approve", WEEK, "--reason", "late refund, agreed with finance")
        self.materialize("/assets/finance_delivery", WEEK)
        self.open("/assets/finance_delivery?view=events")
        self.shot("approved")


@contextmanager
def workspace() -> Iterator[tuple[Path, str]]:
    """A workspace of its own, filled with the sample, with `dagster dev` on a free port of loopback."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        home = Path(folder)
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        os.environ.update(
            ORDERS_HOME=folder, DAGSTER_HOME=f"{folder}/dagster", ORDERS_START_DATE="2026-01-05", ORDERS_END_DATE="2026-02-01"
        )
        subprocess.run([BIN / "orders", "setup"], cwd=PROJECT, check=True)
        subprocess.run([BIN / "orders", "source", "init", "--yes"], cwd=PROJECT, check=True)
        probe.close()
        with (home / "dev.log").open("w") as log:
            command = [BIN / "dagster", "dev", "--host", "127.0.0.1", "--port", str(port)]
            served = subprocess.Popen(command, cwd=PROJECT, stdout=log, stderr=log, start_new_session=True)
        try:
            wait_for(f"http://127.0.0.1:{port}/server_info")
            yield home, f"http://127.0.0.1:{port}"
        finally:
            os.killpg(served.pid, signal.SIGTERM)
            served.wait(60)


def wait_for(url: str, seconds: float = 180) -> None:
    """Until the address answers."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(url, timeout=2).close()  # noqa: S310
        except OSError:
            time.sleep(1)
        else:
            return
    raise TimeoutError(url)


def main() -> None:
    """Walk, and leave stopped-here.png where it could not go on."""
    if CHROMIUM is None:
        sys.exit("error: no chromium; on Debian: apt-get install chromium")
    SHOTS.mkdir(parents=True, exist_ok=True)
    with workspace() as (home, url), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(60_000)
        tour = Tour(home, url, page)
        try:
            tour.walk()
        except Exception:
            page.screenshot(path=SHOTS / "stopped-here.png")
            raise
        browser.close()


if __name__ == "__main__":
    main()
