import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orders_platform.source.sample import SAMPLE

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def orders(tmp_path: Path) -> Run:
    """The command in a process of its own, in an empty workspace, without a terminal."""

    def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        settings = {"PATH": "/usr/bin:/bin", "ORDERS_HOME": str(tmp_path), "ORDERS_END_DATE": "2026-02-01", **environ}
        code = "from orders_platform.cli.main import main; main()"
        return subprocess.run(
            [sys.executable, "-c", code, "source", *arguments],
            env=settings, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip

    return run


def test_init_loads_the_sample_once_and_check_counts_what_no_interval_selects(orders: Run) -> None:
    rows = len(SAMPLE.read_text().splitlines()) - 1
    first, again = orders("init", "--json"), orders("init", "--json")
    assert [json.loads(done.stdout)[0]["changed"] for done in (first, again)] == [True, False]
    found = orders("check", "--json")
    assert found.returncode == 0
    assert json.loads(found.stdout) == [{"total": rows, "before": 1, "within": rows - 5, "after": 1, "unselectable": 3}]
    assert orders("check", "--strict").returncode == 1


def test_rows_are_replaced_only_when_somebody_said_so(orders: Run) -> None:
    assert orders("init").returncode == 0
    refused = orders("generate", "--days", "1", "--orders-per-day", "10")
    assert refused.returncode == 1
    assert "--yes" in refused.stderr
    done = orders("generate", "--days", "2", "--orders-per-day", "10", "--seed", "3", "--yes", "--json")
    assert json.loads(done.stdout)[0] | {"rows": 20, "from": "2026-01-05", "to": "2026-01-06"} == json.loads(done.stdout)[0]
    assert orders("check", "--strict").returncode == 0


def test_check_without_a_source_says_how_to_make_one_and_makes_nothing(orders: Run, tmp_path: Path) -> None:
    done = orders("check")
    assert done.returncode == 1
    assert "orders source init" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "source.db").exists()


def test_a_custom_query_leaves_the_total_unknown_and_strict_says_so(orders: Run) -> None:
    orders("init")
    query = "select * from orders where status = 'paid' and ordered_at >= :start and ordered_at < :end"
    found = orders("check", "--json", "--strict", ORDERS_SOURCE_QUERY=query)
    assert found.returncode == 1
    assert json.loads(found.stdout)[0]["unselectable"] is None
    assert "ORDERS_SOURCE_TOTAL_QUERY" in orders("check", ORDERS_SOURCE_QUERY=query).stdout


def test_typing_it_wrong_exits_with_2(orders: Run) -> None:
    assert orders("generate", "--days", "0", "--orders-per-day", "1").returncode == 2
    assert orders("generate").returncode == 2


def test_the_sample_needs_sqlite(orders: Run) -> None:
    done = orders("init", ORDERS_SOURCE_URL="postgresql://ann:s3cret@127.0.0.1:1/shop")
    assert done.returncode == 1
    assert "orders source generate" in done.stderr
    assert "s3cret" not in done.stderr + done.stdout
