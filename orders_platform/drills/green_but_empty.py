"""green-but-empty: the shop's export is late, the run finds nothing and is green."""

import dagster as dg
from dagster_duckdb import DuckDBResource

from orders_platform.drills.drill import Drill, Side
from orders_platform.drills.usual import Context, UsualBuild, extract, revenue
from orders_platform.drills.workspace import Source, Workspace
from orders_platform.partitions import DAILY

DAYS = ("2026-01-19", "2026-01-20", "2026-01-21")
LATE = DAYS[1]


@dg.asset(partitions_def=DAILY)
def orders(context: Context, duckdb: DuckDBResource) -> None:
    """Everything since the last success, which this run then is, whatever it found."""
    with duckdb.get_connection() as con:
        con.execute("create table if not exists successes (day date)")
        last = con.execute("select coalesce(max(day), '2026-01-18')::varchar from successes").fetchall()[0][0]
        for day in DAYS:
            if last < day <= context.partition_key and (rows := extract(day)):
                con.executemany("insert into orders values (?, ?, ?, ?, ?, ?)", rows)
        con.execute("insert into successes values (?)", [context.partition_key])


def usual(build: UsualBuild) -> Side:
    """The late day is behind the mark when its orders arrive, and is never read."""
    build.put_days(DAYS[0], orders=6)
    build.materialize([orders, revenue], DAYS[0])
    green = build.materialize([orders, revenue], LATE).success
    build.put_days(LATE, DAYS[2], orders=6)
    build.materialize([orders, revenue], DAYS[2])
    return side(build, green)


def ours(workspace: Workspace) -> Side:
    """A day without rows fails the check `arrived`; nothing that reads it runs, and the same day is run again later."""
    workspace.put_days(DAYS[0], orders=6)
    workspace.materialize(DAYS[0])
    green = workspace.materialize(LATE).success
    workspace.put_days(LATE, DAYS[2], orders=6)
    workspace.materialize(LATE, DAYS[2])
    return side(workspace, green)


def side(found: Source, green: bool) -> Side:
    """What is known of the late day, then and in the end."""
    return Side.of(
        ("the run that found nothing is green", False, green),
        (f"orders of {LATE} in the end", 6, found.count_orders(LATE)),
        ("revenue in EUR of the three days", "57.00", found.revenue(DAYS[0], DAYS[2])),
    )


DRILL = Drill(
    "A run that found nothing counts as a success, and what comes after it starts from there.",
    rule=7,
    file="checks/arrival.py",
    usual=usual,
    ours=ours,
)
