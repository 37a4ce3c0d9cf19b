"""The start of our programs. Belongs here: what a .pth file that `orders setup` writes does to Dagster's commands.

`dagster dev` and `dg` read pyproject.toml; `dagster asset materialize` (1.13) reads only -m or DAGSTER_MODULE_NAME.
"""

import atexit
import gc
import os
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

MODULE = "orders_platform.definitions"
PROGRAMS = ("dagster", "dagster-daemon", "dagster-webserver", "dg", "orders")
POINTERS = ("-m", "-f", "-a", "-w", "--module-name", "--python-file", "--package-name", "--workspace", "--grpc")


def name_module(argv: Sequence[str], environ: MutableMapping[str, str], folder: Path) -> None:
    """Set DAGSTER_MODULE_NAME for `dagster asset` and `dagster job`, run in the project's folder with no other pointer.

    >>> environ = {}
    >>> name_module(["dagster", "asset", "materialize", "-f", "x.py"], environ, Path(__file__).parent.parent)
    >>> environ
    {}
    """
    if len(argv) < 2 or Path(argv[0]).name != "dagster" or argv[1] not in ("asset", "job"):
        return
    if any(word.startswith(POINTERS) for word in argv[2:]) or not (folder / "orders_platform" / "definitions.py").is_file():
        return
    environ.setdefault("DAGSTER_MODULE_NAME", MODULE)


def collect_rarely(argv: Sequence[str]) -> None:
    """Let Python look for garbage less often in the programs of this environment that import Dagster.

    Importing Dagster makes half a million objects that all stay. Measured, `dagster asset materialize` of one day: 2.6 s of
    processor time with Python's own threshold of 700, 2.25 s with 50,000; one that ends with its run collects hardly ever: 2.1 s.
    At its end Python goes through all of them several times more, 0.5 s, unless they are frozen: what counts is stored by then (a
    temporary file that only a cycle refers to stays behind).

    >>> before = gc.get_threshold()
    >>> collect_rarely(["/usr/bin/ls"]), gc.get_threshold() == before
    (None, True)
    >>> collect_rarely([".venv/bin/dagster", "dev"]), gc.get_threshold()[0], gc.set_threshold(*before)
    (None, 50000, None)
    """
    if argv and Path(argv[0]).name in PROGRAMS:
        gc.set_threshold(1_000_000 if argv[1:2] == ["asset"] else 50_000, 20, 20)
        atexit.register(gc.freeze)


def speak_plainly(argv: Sequence[str], environ: Mapping[str, str]) -> None:
    """Let `dagster asset` and `dg launch` end with a sentence where they refuse what was asked of this project's assets."""
    program = (Path(argv[0]).name, argv[1]) if len(argv) > 1 else ()
    is_ours = environ.get("DAGSTER_MODULE_NAME", MODULE) == MODULE and not any(word.startswith(POINTERS) for word in argv[2:])
    if program not in (("dagster", "asset"), ("dg", "launch")) or not is_ours:
        return
    otherwise = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        found = None
        with suppress(BaseException):  # whatever fails here, the error itself is shown
            from datetime import UTC, datetime

            from orders_platform.dagster_refusals import refusal

            found = refusal(argv, error, datetime.now(UTC))
        if found is None:
            otherwise(kind, error, trace)
        else:
            sys.stderr.write(f"error: {found.message}\n" + (f"remedy: {found.remedy}\n" if found.remedy else ""))

    sys.excepthook = show


collect_rarely(getattr(sys, "argv", []))
name_module(getattr(sys, "argv", []), os.environ, Path.cwd())
speak_plainly(getattr(sys, "argv", []), os.environ)
