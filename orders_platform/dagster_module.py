"""`dagster asset …` without -m. Belongs here: naming our module to the Dagster CLI, from a .pth file that `orders setup` writes.

`dagster dev` and `dg` read pyproject.toml; `dagster asset materialize` (1.13) reads only -m or DAGSTER_MODULE_NAME.
"""

import os
import sys
from collections.abc import MutableMapping, Sequence
from pathlib import Path

MODULE = "orders_platform.definitions"
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


name_module(getattr(sys, "argv", []), os.environ, Path.cwd())
