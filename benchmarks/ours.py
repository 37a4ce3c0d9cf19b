"""`dagster` with a stop-watch. Belongs here: timing the swaps and events of an unchanged command. Not here: what it runs.

    python -m benchmarks.ours asset materialize --select … --partition …

is that very `dagster` command in that very process; five functions are wrapped, nothing is replaced.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

STARTED = time.monotonic()

from orders_platform.dagster_module import collect_rarely  # noqa: E402

collect_rarely(["dagster"])  # as the .pth file does for the command of that name

from dagster import DagsterInstance  # noqa: E402
from dagster._cli import main  # noqa: E402

from benchmarks.measure import reported  # noqa: E402
from orders_platform.warehouse import landing  # noqa: E402
from orders_platform.warehouse.session import Warehouse  # noqa: E402
from orders_platform.warehouse.swap import Swap  # noqa: E402

spent = {"swap": 0.0, "session": 0.0, "publishing": 0.0, "events": 0.0, "landing": 0.0}
count = dict.fromkeys(spent, 0)


def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        started = time.monotonic()
        try:
            return function(*args, **kwargs)
        finally:
            spent[name] += time.monotonic() - started
            count[name] += 1

    return wrapper


def session(function: Callable[..., Any]) -> Callable[..., Any]:
    """Times a write session from asking for the lock to the file being closed, checkpoint included.

    A session in which a swap ran counts as publishing, too: that is what the bare script is compared with.
    """

    @contextmanager
    def wrapper(*args: Any, **kwargs: Any) -> Iterator[Any]:
        started, swaps = time.monotonic(), count["swap"]
        with function(*args, **kwargs) as con:
            yield con
        for name in ("session", "publishing") if count["swap"] > swaps else ("session",):
            spent[name] += time.monotonic() - started
            count[name] += 1

    return wrapper


landing.land = timed("landing", landing.land)
Swap.run = timed("swap", Swap.run)  # type: ignore[method-assign]
Warehouse.write = session(Warehouse.write)  # type: ignore[method-assign]
DagsterInstance.handle_new_event = timed("events", DagsterInstance.handle_new_event)  # type: ignore[method-assign]

if __name__ == "__main__":
    try:
        main()
    finally:
        whole = time.monotonic() - STARTED
        reported(seconds=spent, counts=count, whole=whole)
