import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from orders_platform.source.errors import SourceUnavailable
from orders_platform.source.reader import Reader
from orders_platform.source.slots import slot

Day = tuple[str, datetime, datetime]
HOLD = """
import sys, time
from datetime import UTC, datetime
from pathlib import Path
from orders_platform.settings import SOURCE_QUERY
from orders_platform.source.reader import Reader
reader = Reader(sys.argv[1], SOURCE_QUERY, "", 1, 5.0, Path(sys.argv[2]))
capture = reader.capture("2026-01-05", datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 6, tzinfo=UTC))
next(capture)
print("holding", flush=True)
time.sleep(60)
"""


def test_a_full_budget_names_the_holder_and_a_killed_process_frees_it(
    source: Callable[..., Reader], order: Callable[..., Any], day: Day
) -> None:
    reader = source([order()], connections=1)
    arguments = [sys.executable, "-c", HOLD, reader.url, str(reader.locks_root)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "holding\n"
            with pytest.raises(SourceUnavailable, match=f"process {holder.pid} reads raw_orders 2026-01-05 since 20") as caught:
                list(reader.capture("2026-01-06", *day[1:]))
            assert "raw_orders 2026-01-06" in caught.value.message
            assert "ORDERS_SOURCE_CONNECTIONS" in caught.value.remedy
        finally:
            os.kill(holder.pid, signal.SIGKILL)
    assert len(list(reader.capture(*day))) == 1


def test_a_waiting_capture_starts_as_soon_as_a_slot_is_free(tmp_path: Path) -> None:
    waited: list[float] = []

    def wait() -> None:
        began = time.monotonic()
        with slot(tmp_path, "s", 1, 10, "second"):
            waited.append(time.monotonic() - began)

    with slot(tmp_path, "s", 1, 1, "first"):
        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.4)
        assert not waited
    thread.join()
    assert 0.3 < waited[0] < 2


def test_as_many_at_once_as_the_budget_allows_and_no_more(tmp_path: Path) -> None:
    running, most, done, guard = 0, 0, 0, threading.Lock()

    def work() -> None:
        nonlocal running, most, done
        with slot(tmp_path, "s", 3, 20, "work"):
            with guard:
                running += 1
                most = max(most, running)
            time.sleep(0.05)
            with guard:
                running, done = running - 1, done + 1

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, done) == (3, 12)


def test_an_error_while_reading_gives_the_slot_back(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), slot(tmp_path, "s", 1, 0.2, "failing"):
        _ = 1 / 0
    with slot(tmp_path, "s", 1, 0.2, "next"):
        pass


def test_two_sources_do_not_share_a_budget(source: Callable[..., Reader], order: Callable[..., Any], day: Day) -> None:
    one = source([order()], connections=1)
    other = replace(one, url=f"{one.url}?timeout=3")
    capture = one.capture(*day)
    next(capture)
    assert len(list(other.capture(*day))) == 1
    assert len(list(one.locks_root.iterdir())) == 2
