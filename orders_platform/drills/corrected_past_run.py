"""corrected-past-run: a day of a week that was sent is corrected, and the week is built again."""

from orders_platform.delivery.ledger import Ledger
from orders_platform.drills.drill import Drill, Side
from orders_platform.drills.partner import WebhookPartner
from orders_platform.drills.usual import UsualBuild, replaced_orders, revenue, weekly_file
from orders_platform.drills.week import DAYS, WEEK, deliver, partner, sent
from orders_platform.drills.workspace import Source, Workspace


def correct(source: Source) -> None:
    """The shop doubles an order of the second day."""
    source.sql_source("update orders set gross_amount = '19.50' where order_id = ?", f"{DAYS[1]}-2")


def usual(build: UsualBuild) -> Side:
    """The week is run again, and so is its sending; nothing says what the new file replaces."""
    build.put_days(*DAYS, orders=6)
    with partner(build) as there:
        build.materialize([replaced_orders, revenue], DAYS[0], DAYS[-1])
        build.materialize([weekly_file], WEEK)
        correct(build)
        build.materialize([replaced_orders, revenue], DAYS[1])
        build.materialize([weekly_file], WEEK)
        return side(there, unasked=there.done.total() - 1)


def ours(workspace: Workspace) -> Side:
    """Other content is a new revision, which waits for a person and says what it supersedes."""
    workspace.put_days(*DAYS, orders=6)
    with partner(workspace) as there:
        sent(workspace)
        correct(workspace)
        workspace.repair("raw_orders", DAYS[1], reason="the shop corrected an order")
        deliver(workspace)
        unasked = there.done.total() - 1
        Ledger(workspace.settings.ledger_url).act("approve", WEEK, "ada", "agreed with finance")
        for _ in range(2):
            workspace.materialize(WEEK, assets=("finance_delivery",))
        return side(there, unasked)


def side(there: WebhookPartner, unasked: int) -> Side:
    """What the partner holds."""
    return Side.of(
        ("corrections sent before anybody agreed", 0, unasked),
        ("files that the partner was sent", 2, there.done.total()),
        ("revenue in EUR in the partner's books", "142.50", there.books("EUR")),
    )


DRILL = Drill(
    "The partner cannot tell a correction from another week's worth of sales, and books both.",
    rule=5,
    file="delivery/states.py",
    usual=usual,
    ours=ours,
)
