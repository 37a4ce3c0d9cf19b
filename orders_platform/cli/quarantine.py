"""orders quarantine. Belongs here: add, release, list. Not here: who obeys it (warehouse/gates.py, recovery/states.py)."""

import click

from orders_platform.cli.output import console, json_option, print_json, print_table
from orders_platform.cli.world import reason_option, spans, who_option, world


@click.group()
def quarantine() -> None:
    """Hold intervals back: gone from published.*, refused by everything that reads them, skipped by repairs.

    \b
    orders quarantine add fct_orders 2026-01-06 --reason "currency looks wrong"
    orders quarantine list
    orders quarantine release fct_orders 2026-01-06 --reason "checked with the shop: it is right"
    """


@quarantine.command()
@click.argument("asset")
@click.argument("intervals", nargs=-1, required=True, metavar="INTERVAL...")
@reason_option
@who_option
def add(asset: str, intervals: tuple[str, ...], reason: str, who: str) -> None:
    """Quarantine intervals of an asset, published or not; whatever is made from them is held with them."""
    from orders_platform.recovery.closure import closure
    from orders_platform.recovery.interventions import quarantine as hold
    from orders_platform.recovery.interventions import require_reason, whoami

    require_reason("quarantine", asset, reason)
    with world() as found:
        pairs = found.graph.require(asset, intervals)
        with found.warehouse.write(f"quarantine of {asset}") as con:
            hold(con, pairs, whoami(who), reason)
        reached = len(closure(found.graph, pairs)) - len(pairs)
        listed = spans(found.graph, asset, [i for _, i in pairs])
        console().print(f"{asset} {listed} is quarantined; {reached} intervals made from it are held with it.")


@quarantine.command()
@click.argument("asset")
@click.argument("intervals", nargs=-1, required=True, metavar="INTERVAL...")
@reason_option
@who_option
def release(asset: str, intervals: tuple[str, ...], reason: str, who: str) -> None:
    """Release intervals; what was built without them, or from an earlier version of them, is stale from now on."""
    from orders_platform.recovery.closure import closure
    from orders_platform.recovery.interventions import release as free
    from orders_platform.recovery.interventions import require_reason, whoami

    require_reason("release", asset, reason)
    with world() as found:
        pairs = found.graph.require(asset, intervals)
        with found.warehouse.write(f"release of {asset}") as con:
            free(con, pairs, whoami(who), reason)
        _, states = found.look()
        wrong = [p for p in closure(found.graph, pairs) if p in states and states[p].name in ("stale", "missing")]
        listed = spans(found.graph, asset, [i for _, i in pairs])
        console().print(f"{asset} {listed} is released.")
        if wrong:
            console().print(
                f"{len(wrong)} intervals made from it are stale or missing: orders repair {asset} {pairs[0][1]} --reason …"
            )


@quarantine.command(name="list")
@json_option
def list_holds(as_json: bool) -> None:
    """What is quarantined now, by whom, since when and why."""
    from orders_platform.recovery.interventions import holds
    from orders_platform.settings import settings
    from orders_platform.warehouse.session import Warehouse

    with Warehouse.from_settings(settings()).read() as con:
        rows = [vars(hold) for hold in holds(con).values()]
    if as_json:
        print_json(rows)
    elif rows:
        print_table("quarantined", ["asset", "interval", "who", "reason", "recorded_at"], [tuple(r.values()) for r in rows])
    else:
        console().print("Nothing is quarantined.")
