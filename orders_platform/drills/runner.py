"""Running drills. Belongs here: two at a time, each in a workspace of its own, and none near the real one.

Not here: what a drill does, or how it is shown (cli/drill.py). What imports Dagster is imported after the calendar is set.
"""

import importlib
import multiprocessing
import os
import shutil
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import fields
from pathlib import Path

from orders_platform.drills.drill import Drill, Result
from orders_platform.settings import Settings

AT_ONCE = 2
FIRST_DAY, LAST_DAY = "2026-01-05", "2026-02-01"


def drill_of(name: str) -> Drill:
    """The drill of that name."""
    found: Drill = importlib.import_module(f"orders_platform.drills.{name.replace('-', '_')}").DRILL
    return found


def run(names: Sequence[str], timezone: str, *, keep: bool = False) -> Iterator[Result]:
    """Run the drills, as they end.

    Args:
        names: Names of the catalogue.
        timezone: Business time zone.
        keep: Leave the workspaces in place; each result says where.
    """
    root = Path(tempfile.mkdtemp(prefix="orders-drills-"))
    spawn = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(min(AT_ONCE, len(names)), spawn, isolate, (timezone, str(root / "log"))) as pool:
            waiting = {pool.submit(rehearse, name, root / name, keep): name for name in names}
            for done in as_completed(waiting):
                died = done.exception()
                yield Result(waiting[done], error=f"its process died: {died}") if died else done.result()
    finally:
        if not keep:
            shutil.rmtree(root, ignore_errors=True)


def isolate(timezone: str, log: str) -> None:
    """Forget every setting of the real workspace (empty counts as unset, also against .env), and be quiet."""
    os.environ |= {item.metadata["name"]: "" for item in fields(Settings)}
    os.environ |= {
        "ORDERS_START_DATE": FIRST_DAY,
        "ORDERS_END_DATE": LAST_DAY,
        "ORDERS_BUSINESS_TIMEZONE": timezone,
        "ORDERS_DELIVERY_BACKOFF_SECONDS": "0.01",
        "DAGSTER_DISABLE_TELEMETRY": "yes",
    }
    warnings.simplefilter("ignore")
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(out, 1)
    os.dup2(out, 2)


def rehearse(name: str, root: Path, keep: bool) -> Result:
    """Both sides of one drill, each in its own home."""
    started, result = time.monotonic(), Result(name)
    try:
        from orders_platform.drills.usual import usual_build
        from orders_platform.drills.workspace import QUIET, opened

        drill = drill_of(name)
        with usual_build(at_home(root / "usual")) as usual:
            naive = drill.usual(usual)
        with opened(at_home(root / "platform"), QUIET) as workspace:
            ours = drill.ours(workspace)
        result = Result(name, tuple(naive), tuple(ours), is_broken=not naive.is_right, is_right=ours.is_right)
    except Exception as error:
        traceback.print_exc()
        result.error = f"{type(error).__name__}: {error}"
    finally:
        result.seconds = round(time.monotonic() - started, 1)
        result.kept = str(root) if keep else ""
        if not keep:
            shutil.rmtree(root, ignore_errors=True)
    return result


def at_home(home: Path) -> Path:
    """The folder, named by the environment."""
    os.environ |= {"ORDERS_HOME": str(home), "DAGSTER_HOME": str(home / "dagster")}
    return home
