"""Nothing in an asset reads the clock, a random number or the environment: what comes out is a function of the interval."""

import ast
import re
from pathlib import Path

import pytest

import orders_platform.assets

FOLDER = Path(orders_platform.assets.__file__).parent
MODULES = sorted(path for path in FOLDER.glob("*.py") if path.name != "__init__.py")
SQL = re.compile(
    r"\b(now|today|random|setseed|uuid|gen_random_uuid|uuidv4|uuidv7|get_current_timestamp|get_current_time|transaction_timestamp"
    r"|nextval|current_localtimestamp|current_localtime|txid_current|version|current_setting|getenv)\s*\("
    r"|\b(current_date|current_time|current_timestamp|localtime|localtimestamp|tablesample|using\s+sample)\b",
    re.IGNORECASE,
)
CALLS = {
    "now",
    "utcnow",
    "today",
    "time",
    "time_ns",
    "monotonic",
    "perf_counter",
    "uuid1",
    "uuid4",
    "getenv",
    "token_hex",
    "urandom",
}
MODULES_OF_CHANCE = {"random", "secrets", "time", "uuid"}


def offences(source: str) -> list[str]:
    """What in a module's code or SQL would give other rows another time; docstrings are words, not code."""
    tree = ast.parse(source)
    words = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and node.body and isinstance(node.body[0], ast.Expr)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in words:
            found += [f"line {node.lineno}: {match.group()}" for match in SQL.finditer(node.value)]
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            found += [f"line {node.lineno}: {name}()"] * (name in CALLS)
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name for alias in node.names} if isinstance(node, ast.Import) else {node.module or ""}
            found += [f"line {node.lineno}: import {name}" for name in sorted(names & MODULES_OF_CHANCE)]
        if isinstance(node, ast.Attribute) and node.attr == "environ":
            found.append(f"line {node.lineno}: environ")
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_an_asset_reads_no_clock_and_throws_no_dice(path: Path) -> None:
    assert offences(path.read_text()) == []


@pytest.mark.parametrize(
    "line",
    [
        'q = "select now()"',
        'q = f"select {x} from t where d = CURRENT_DATE"',
        'q = "select order_date from t using sample 10"',
        "import random",
        "from uuid import uuid4",
        "x = datetime.now(UTC)",
        "x = date.today()",
        'x = os.environ["HOME"]',
    ],
)
def test_it_would_be_noticed(line: str) -> None:
    assert offences(line)
    assert offences(f'"""In words: {"now() is current_date"}."""') == []
