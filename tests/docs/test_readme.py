"""The README: every command it names is there and works as written."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import sqlalchemy as sa

from orders_platform.settings import PROJECT
from tests.docs.pages import Command, environ, failures, is_whole, run

TEXT = (PROJECT / "README.md").read_text()
ELSEWHERE = ("make test", "make dev", "source .venv/bin/activate")
"""The suite itself, a server that does not end (tests/scenarios/test_ui_backfill.py starts one), the reader's own shell."""
SHOP = """
create schema shop;
create table shop.orders (id text, buyer text, placed_at timestamptz, changed_at timestamptz, country_code text, currency text,
  state text, total numeric(18,2), rebate numeric(18,2));
insert into shop.orders values ('1', 'B', '2026-01-05 10:00+00', '2026-01-05 10:00+00', 'GB', 'GBP', 'paid', 12.50, 0);
"""


def typed(text: str) -> list[Command]:
    """The commands of the indented blocks, comments taken off."""
    found, waiting = [], ""
    for line in re.findall(r"^    (.*)$", text, re.MULTILINE):
        waiting += ("\n" if waiting else "") + re.sub(r"\s{2,}# .*$", "", line)
        if is_whole(waiting):
            found.append(Command(waiting, ()))
            waiting = ""
    assert not waiting
    return found


def test_its_commands_work_in_its_order(tmp_path: Path) -> None:
    start, _, rest = TEXT.partition("## Your own source")
    wrong = rest.partition("## When something goes wrong")[2].partition("\n## ")[0]
    found = [command for command in typed(start + wrong) if command.text not in ELSEWHERE]
    found = [replace(c, text=f"{c.text} || test $? = 1") if c.text == "orders audit" else c for c in found]  # it has findings
    assert found[0].text == "make demo" and len(found) > 5
    results = run(found, PROJECT, environ(tmp_path / "home"), tmp_path / "commands")
    assert not failures(found, results), "\n\n".join(failures(found, results))


def test_its_own_source_works_on_a_real_postgres(postgres: str, tmp_path: Path) -> None:
    with sa.create_engine(postgres).begin() as con:
        con.exec_driver_sql(SHOP)
    section = TEXT.partition("## Your own source")[2].partition("\n## ")[0]
    found = [Command(c.text.replace("postgresql+psycopg://reader@db/shop", postgres), ()) for c in typed(section)]
    day = "dagster asset materialize --select raw_orders,stg_orders,fct_orders,revenue_daily --partition 2026-01-05"
    shown = ("│ 12.50 │",)
    found += [
        Command("orders setup", ()),
        Command(day, ()),
        Command('orders query "select sum(revenue) as total from published.revenue_daily"', shown),
    ]
    results = run(found, PROJECT, environ(tmp_path / "home"), tmp_path / "commands")
    assert not failures(found, results), "\n\n".join(failures(found, results))


def test_every_make_target_it_names_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", TEXT)) <= targets


def test_every_promise_names_tests_that_are_there() -> None:
    commands = set(re.findall(r"`pytest ([^`]+)`", TEXT))
    words = {word for command in commands for word in command.split()}
    assert words
    assert all((PROJECT / word).exists() for word in words if word.startswith("tests/"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *sorted(words)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert [word for word in words if not any(line.startswith(word) for line in done.stdout.splitlines())] == []
