"""Immutable files. Belongs here: making a file appear whole, under a name that nobody had, or not at all; reading it back.

Not here: what is in it (landing.py, exports.py, delivery/). Nothing here overwrites or deletes a finished file.
"""

import hashlib
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orders_platform.errors import OrdersError

ABANDONED_SECONDS = 86_400


class FileCorrupt(OrdersError):
    """A recorded file that is missing, whose bytes are not those recorded, or whose location leads out of its root."""


@contextmanager
def part_of(folder: Path) -> Iterator[Path]:
    """A hidden, not yet existing file in the folder (created if need be), removed at the end whatever happened.

    A process that is killed leaves its part behind; the next one that comes here a day later removes it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for abandoned in folder.glob(".*.part"):
        with suppress(FileNotFoundError):  # finished meanwhile
            if time.time() - abandoned.stat().st_mtime > ABANDONED_SECONDS:
                abandoned.unlink()
    part = folder / f".{uuid.uuid4().hex}.part"
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


def place(part: Path, final: Path) -> bool:
    """Give the finished, flushed part its name in one step; False when the name is taken, which stays as it is."""
    try:
        os.link(part, final)
    except FileExistsError:
        return False
    descriptor = os.open(final.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return True


def write_once(final: Path, data: bytes) -> bool:
    """Create the file with these bytes; False when the name is taken, which stays as it is."""
    with part_of(final.parent) as part:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return place(part, final)


def sha256_of(path: Path) -> str:
    """SHA-256 of the file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def safe_path(root: Path, location: str) -> Path:
    """The path of a recorded location.

    Raises:
        FileCorrupt: The location leads out of its root.
    """
    path = (root / location).resolve()
    if not path.is_relative_to(root.resolve()):
        raise FileCorrupt(f"The recorded location {location!r} leads out of {root}.", "Restore the warehouse from a backup.")
    return path
