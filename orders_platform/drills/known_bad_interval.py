"""known-bad-interval: a day is known to be wrong on the evening before the week's file goes out."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from orders_platform.automation.finance_delivery_sensor import decision_now
from orders_platform.drills.drill import Drill, Side
from orders_platform.drills.partner import WebhookPartner
from orders_platform.drills.usual import UsualBuild, replaced_orders, revenue, weekly_file
from orders_platform.drills.week import DAYS, WEEK, deliver, partner
from orders_platform.drills.workspace import Source, Workspace
from orders_platform.recovery import interventions
from orders_platform.warehouse.publications import Pair

BAD = DAYS[2]
REASON = "the till wrote 1000.00"


def spoil(source: Source) -> None:
    """The shop's till writes one order a hundred times too high."""
    source.put_days(*DAYS, orders=6)
    source.sql_source("update orders set gross_amount = '1000.00' where order_id = ?", f"{BAD}-2")


def mend(source: Source) -> None:
    """On the next day the shop corrects it."""
    source.sql_source(
        "update orders set gross_amount = '10.00', updated_at = '2026-01-27 09:00:00' where order_id = ?", f"{BAD}-2"
    )


def usual(build: UsualBuild) -> Side:
    """Everybody in the channel knows; the schedule does not."""
    spoil(build)
    with partner(build) as there:
        build.materialize([replaced_orders, revenue], DAYS[0], DAYS[-1])
        build.materialize([weekly_file], WEEK)
        early, waits = there.done.total(), there.done.total() == 0
        mend(build)
        build.materialize([replaced_orders, revenue], BAD)
        build.materialize([weekly_file], WEEK)
        return side(there, early, waits)


def ours(workspace: Workspace) -> Side:
    """The day is quarantined: whatever reads it is refused, and the refusal says who, since when and why."""
    spoil(workspace)
    with partner(workspace) as there:
        workspace.materialize(DAYS[0], DAYS[-1])
        hold(workspace, interventions.quarantine, REASON)
        deliver(workspace)
        early = there.done.total()
        waiting = decision_now(workspace.instance, datetime.now(UTC)).waiting[WEEK]
        mend(workspace)
        hold(workspace, interventions.release, "the shop has corrected it")
        workspace.repair("revenue_daily", BAD, reason="the shop has corrected it", recapture=True)
        deliver(workspace)
        return side(there, early, REASON in waiting)


def hold(workspace: Workspace, act: Callable[[Any, list[Pair], str, str], str], reason: str) -> None:
    """Quarantine or release the bad day of the facts."""
    with workspace.warehouse.write("a drill") as con:
        act(con, [("fct_orders", BAD)], "ada", reason)


def side(there: WebhookPartner, early: int, waits: bool) -> Side:
    """What the partner was sent."""
    return Side.of(
        ("files sent with the bad day", 0, early),
        ("the week waits, and says why", True, waits),
        ("revenue in EUR in the partner's books", "133.00", there.books("EUR")),
    )


DRILL = Drill(
    "What people know about data is not in the data, so schedules and readers go on as if it were right.",
    rule=6,
    file="warehouse/gates.py",
    usual=usual,
    ours=ours,
)
