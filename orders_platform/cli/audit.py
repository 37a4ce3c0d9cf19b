"""orders audit. Belongs here: collecting the evidence and showing the findings. Not here: judging it (recovery/audit.py)."""

import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from orders_platform.cli.output import console, json_option, print_json, print_table
from orders_platform.cli.world import world
from orders_platform.settings import settings

if TYPE_CHECKING:
    from orders_platform.recovery.audit import Evidence, Sent
    from orders_platform.recovery.dagster_facts import World


@click.command()
@json_option
def audit(as_json: bool) -> None:
    """What needs a person, each with the command to run. Exit code 1 when something does.

    Claims without data and data without claims, failed, blocked, late, stale, divergent and quarantined intervals, rows that no
    publication owns, attempts, deliveries in doubt or unlike what is published. Only worth knowing, because nobody has to act:
    code that changed inside a range (every deployment does that), orphaned files (maintenance removes them), and data whose run
    Dagster does not know (what is current is decided by publications).
    """
    from orders_platform.recovery.audit import audit as judge

    with world() as found:
        findings = judge(evidence_of(found))
    urgent = [item for item in findings if item.needs_person]
    if as_json:
        print_json(vars(item) for item in findings)
    else:
        for title, items in (("needs a person", urgent), ("worth knowing", [f for f in findings if not f.needs_person])):
            if items:
                rows = [(f.finding, f.asset, f.interval, f.detail, f.remedy) for f in items]
                print_table(title, ["finding", "asset", "interval", "detail", "command"], rows)
        if not urgent:
            console().print("[green]Nothing needs a person.[/]")
    if urgent:
        sys.exit(1)


def evidence_of(found: "World") -> "Evidence":
    """Everything the audit goes by, from the warehouse, Dagster, the landing folder and the ledger."""
    from orders_platform.checks.tables import tables_of
    from orders_platform.definitions import ASSETS
    from orders_platform.delivery.readiness import contents
    from orders_platform.recovery import audit, dagster_facts
    from orders_platform.warehouse.maintenance import files_below, orphaned

    values = settings()
    facts, states = found.look()
    tables = [(t.asset, t.contract.partition) for t in tables_of(ASSETS).values()]
    with found.warehouse.read() as con:
        foreign = audit.foreign_rows(con, tables)
        landed = orphaned(con, files_below(values.landing_root))
        content = contents(con, list(found.graph.nodes["finance_export"].intervals))
    return audit.Evidence(
        found.graph, facts, states, values.calendar, datetime.now(UTC).replace(tzinfo=None),
        timedelta(hours=values.deadline_hours), values.attempts,
        dagster_facts.silent(found.instance, found.graph, facts, dagster_facts.claims(found.instance, found.graph)),
        dagster_facts.attempts(found.instance, found.graph), foreign, sent(),
        {week: item.digest for week, item in content.items()}, landed,
    )  # fmt: skip


def sent() -> list["Sent"]:
    """The ledger in brief."""
    from orders_platform.delivery.ledger import Ledger
    from orders_platform.recovery.audit import Sent

    everything = Ledger(settings().ledger_url).all()
    newest = {item.week: item.revision for item in everything}
    return [
        Sent(d.export, d.week, d.idempotency_key, d.state.value, d.digest, d.revision == newest[d.week]) for d in everything
    ]
