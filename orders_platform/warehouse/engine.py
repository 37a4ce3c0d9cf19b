"""The engine. Belongs here: keeping one DuckDB alive between sessions, with nothing attached to it.

Not here: who may have the file when (session.py). Starting an engine takes 11 to 16 ms, attaching a file to one 1 ms (measured).
"""

import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import portalocker

from orders_platform.warehouse.contract import literal

CATALOG = "warehouse"
SPILL = "duckdb_spill_"


@dataclass(frozen=True)
class Means:
    """What an engine may use; one that spilled to disk cannot take another temporary folder, so another engine is made.

    Attributes:
        temp_directory: In which each engine makes a folder of its own.
    """

    temp_directory: str = ""
    threads: int | None = None
    memory_limit: str = ""


@dataclass
class _Engine:
    """A database in memory to which one warehouse is attached for as long as some session has it."""

    means: Means
    con: Any
    sessions: int = 0
    is_sound: bool = True


_lock = threading.Lock()
_attached: dict[Hashable, _Engine] = {}
_idle: list[_Engine] = []
_inherited: list[_Engine] = []
"""Engines of the process this one was forked from: their threads are not here, and closing one would wait for them for ever."""


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    _inherited.extend([*_attached.values(), *_idle])
    _attached.clear()
    _idle.clear()


os.register_at_fork(after_in_child=_after_fork)


def attach(key: Hashable, means: Means, attaching: Callable[[Any], object]) -> Any:
    """A connection to what `attaching` attaches as CATALOG; sessions of one key share the attachment.

    Raises:
        duckdb.Error: It is held by somebody else, or cannot be opened.
    """
    with _lock:
        engine = _attached.get(key) or _take(means)
        try:
            if not engine.sessions:
                attaching(engine.con)
            con = engine.con.cursor()
            con.execute(f"use {CATALOG}")
        except BaseException:
            if not engine.sessions:
                engine.con.close()
            raise
        engine.sessions += 1
        _attached[key] = engine
        return con


def release(key: Hashable, con: Any, *, is_sound: bool) -> None:
    """Close a session's connection; the last one detaches the file, and an engine in which something failed is not used again."""
    with _lock:
        engine = _attached[key]
        con.close()
        engine.sessions -= 1
        engine.is_sound &= is_sound
        if engine.sessions:
            return
        del _attached[key]
        if engine.is_sound and not _idle:
            try:
                engine.con.execute(f"detach {CATALOG}")
            except duckdb.Error:  # the checkpoint failed; what was committed stays in the write-ahead log, as after a kill
                engine.con.close()
            else:
                _idle.append(engine)
        else:
            engine.con.close()


def forget() -> None:
    """Close the engine that is kept; the next session starts one."""
    with _lock:
        while _idle:
            _idle.pop().con.close()


def start(means: Means) -> Any:
    """A new engine."""
    con = duckdb.connect()
    if means.temp_directory:
        con.execute(f"set temp_directory = {literal(_own_folder(Path(means.temp_directory), con))}")
    if means.threads:
        con.execute(f"set threads = {means.threads:d}")
    if means.memory_limit:
        con.execute(f"set memory_limit = {literal(means.memory_limit)}")
    return con


def _own_folder(root: Path, con: Any) -> str:
    """Where this engine spills to, locked until it is gone; empty where the disk is full. Folders of dead engines are removed.

    DuckDB gives the same names to the files of every engine: of two that spilled to one folder at the same time one read the
    other's rows, and one crashed (measured).
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        with (root / f"{SPILL}lock").open("a+") as guard:  # a new folder must not be taken for one left behind
            portalocker.lock(guard, portalocker.LockFlags.EXCLUSIVE)
            for left in root.glob(f"{SPILL}*/lock"):
                with suppress(portalocker.LockException), left.open("a+") as file:
                    portalocker.lock(file, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
                    shutil.rmtree(left.parent)
            own = Path(tempfile.mkdtemp(prefix=SPILL, dir=root))
            lock = (own / "lock").open("a+")
            weakref.finalize(con, lock.close)
            portalocker.lock(lock, portalocker.LockFlags.EXCLUSIVE)
    except OSError:  # what was published stays readable, as far as memory goes
        return ""
    return str(own / "rows")


def _take(means: Means) -> _Engine:
    while _idle:
        engine = _idle.pop()
        if engine.means == means:
            return engine
        engine.con.close()
    return _Engine(means, start(means))
