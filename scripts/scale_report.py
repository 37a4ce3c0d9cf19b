"""What a scale demo ends in. Belongs here: the facts, what is wrong with them, how they are shown. Not here: getting them."""

from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table


@dataclass
class Outcome:
    """What is true at the end; `problems` reads it.

    Attributes:
        tables: Table -> how many intervals were published so many times: "once", "again" (a second time, with equal
            content), "differently" (a second time, with other content), "missing".
        runs: Run status -> runs.
        retried: Runs that failed and whose retry succeeded.
        killed: Runs that the killed worker had.
        connections: Readers that the source had at once, at most.
        waited: Captures that waited for the source's pool at once, at most.
        limit: Places of the pool.
        slots: Places of the source's pool still taken.
        states: State by `orders status` -> intervals.
        failed_ticks: Ticks of sensors and schedules that failed.
    """

    tables: dict[str, dict[str, int]]
    runs: dict[str, int]
    retried: int
    killed: int
    backfill: str
    connections: int
    waited: int
    limit: int
    slots: int
    states: dict[str, int]
    failed_ticks: int
    seconds: dict[str, float] = field(default_factory=dict)


def problems(found: Outcome) -> list[str]:
    """What should not be so, in words; nothing when every interval was published once and nothing hangs.

    >>> good = Outcome({"fct_orders": {"once": 3}}, {"SUCCESS": 3, "FAILURE": 1}, 1, 1, "COMPLETED_SUCCESS", 2, 1, 2, 0, {"current": 3}, 0)
    >>> problems(good)
    []
    """
    said = [
        f"{table}: {count} intervals {what}"
        for table, counts in found.tables.items()
        for what, count in counts.items()
        if what in ("differently", "missing") and count
    ]
    said += [f"{count} runs are {status}" for status, count in found.runs.items() if status not in ("SUCCESS", "FAILURE")]
    if found.runs.get("FAILURE", 0) != found.retried:
        said.append(f"{found.runs.get('FAILURE', 0)} runs failed and {found.retried} of them were retried with success")
    if not found.killed:
        said.append("the worker was killed while it had no run")
    if found.backfill not in ("COMPLETED_SUCCESS", "REQUESTED"):
        said.append(f"the backfill is {found.backfill}")
    if found.connections > found.limit:
        said.append(f"the source had {found.connections} readers at once, {found.limit} are allowed")
    if found.slots:
        said.append(f"{found.slots} places of the source's pool are still taken")
    said += [f"`orders status` has {count} intervals as {state}" for state, count in found.states.items() if state != "current"]
    if found.failed_ticks:
        said.append(f"{found.failed_ticks} ticks of sensors or schedules failed")
    return said


def show(console: Console, found: Outcome, days: int) -> None:
    """The tables on the terminal."""
    table = Table("table", "intervals", "published once", "again, equal", "differently", "missing", title=f"{days} days")
    for name, counts in found.tables.items():
        table.add_row(name, str(days), *(str(counts[what]) for what in ("once", "again", "differently", "missing")))
    console.print(table)
    facts = Table("what", "found", "wanted", title_justify="left")
    facts.add_row("runs", ", ".join(f"{n} {status.lower()}" for status, n in sorted(found.runs.items())), "success, failure")
    facts.add_row("runs the killed worker had", str(found.killed), "at least 1")
    facts.add_row("failed runs whose retry succeeded", str(found.retried), str(found.runs.get("FAILURE", 0)))
    facts.add_row("backfill", found.backfill.lower(), "completed_success")
    facts.add_row("readers of the source at once", str(found.connections), f"at most {found.limit}")
    facts.add_row("captures that waited for a place", str(found.waited), "any")
    facts.add_row("places of the pool still taken", str(found.slots), "0")
    facts.add_row("states", ", ".join(f"{n} {state}" for state, n in sorted(found.states.items())), "current")
    facts.add_row("failed ticks of sensors and schedules", str(found.failed_ticks), "0")
    console.print(facts)
