"""orders interventions. Belongs here: the list of what people did. Not here: recording it (recovery/interventions.py)."""

import click

from orders_platform.cli.output import console, json_option, print_json, print_table
from orders_platform.cli.world import world


@click.command()
@click.option("--kind", metavar="KIND", default="", help="Only repair, quarantine, release, approve, launch, backfill, mark, …")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="The newest so many.")
@json_option
def interventions(kind: str, limit: int, as_json: bool) -> None:
    """Everything a person did, newest first: who, when, why, and how it ended.

    Repairs, quarantines, releases, approvals and resolutions are recorded with a reason. Runs, backfills and marks made past
    them (from the UI or the command line) are found in Dagster and listed with "no reason given".

    \b
    orders interventions
    orders interventions --kind mark --json
    """
    from orders_platform.recovery.dagster_facts import by_hand
    from orders_platform.recovery.interventions import recorded

    with world() as found:
        with found.warehouse.read() as con:
            ours = recorded(con)
        everything = [*ours, *by_hand(found.instance)]
    chosen = sorted((i for i in everything if not kind or i.kind == kind), key=lambda i: i.recorded_at, reverse=True)[:limit]
    if as_json:
        print_json(vars(item) for item in chosen)
    elif chosen:
        columns = ["when (UTC)", "kind", "asset", "intervals", "who", "why", "outcome"]
        rows = [
            (f"{i.recorded_at:%Y-%m-%d %H:%M}", i.kind, i.asset, i.interval_text(), i.who, i.reason, i.outcome) for i in chosen
        ]
        print_table("interventions", columns, rows)
    else:
        console().print("Nobody intervened.")
