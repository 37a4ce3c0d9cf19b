"""The source's connection budget. Belongs here: a semaphore over all processes of this machine, and who holds it.

Not here: the connections. The kernel frees a slot when its process ends, however it ends.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import portalocker

from orders_platform.source.errors import SourceUnavailable


def _holder(slot: Path) -> str:
    try:
        held = json.loads(slot.read_text())
        return f"process {held['pid']} reads {held['what']} since {held['since']} UTC"
    except (OSError, ValueError, KeyError):
        return f"{slot.name}: holder not readable"


@contextmanager
def slot(folder: Path, name: str, count: int, wait_seconds: float, what: str) -> Iterator[None]:
    """Hold one of `count` slots called `name` while the block runs.

    Args:
        folder: Where the slot files live; made when absent. Slot files must not be deleted while in use.
        name: Processes that share the name share the budget.
        count: Holders at once.
        wait_seconds: How long to wait for a free slot.
        what: What the slot is taken for; shown to those who wait in vain.

    Raises:
        SourceUnavailable: No slot became free; the message names every holder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    semaphore = portalocker.NamedBoundedSemaphore(count, name, directory=str(folder), timeout=wait_seconds, check_interval=0.1)
    try:
        lock = semaphore.acquire()
    except portalocker.AlreadyLocked:
        holders = "; ".join(_holder(path) for path in semaphore.get_filenames())
        raise SourceUnavailable(
            f"{what}: all {count} source connections are in use after {wait_seconds:g} s of waiting: {holders}.",
            "Wait, end that process, or raise ORDERS_SOURCE_CONNECTIONS or ORDERS_SOURCE_WAIT_SECONDS.",
        ) from None
    try:
        if lock is not None and lock.fh is not None:
            lock.fh.seek(0)
            lock.fh.truncate()
            since = datetime.now(UTC).isoformat(" ", "seconds")[:19]
            lock.fh.write(json.dumps({"pid": os.getpid(), "what": what, "since": since}))
            lock.fh.flush()
        yield
    finally:
        semaphore.release()
