"""full-rerun: the whole week is run again, to be safe."""

from orders_platform.drills.drill import Drill, Side
from orders_platform.drills.partner import WebhookPartner
from orders_platform.drills.usual import UsualBuild, orders, revenue, weekly_file
from orders_platform.drills.week import DAYS, WEEK, partner, sent
from orders_platform.drills.workspace import Source, Workspace


def usual(build: UsualBuild) -> Side:
    """Orders are appended, and the file is sent from inside the task."""
    build.put_days(*DAYS, orders=6)
    with partner(build) as there:
        for _ in range(2):
            build.materialize([orders, revenue], DAYS[0], DAYS[-1])
            build.materialize([weekly_file], WEEK)
        return side(build, there)


def ours(workspace: Workspace) -> Side:
    """Every day is replaced by the same day, and the file's key was used already."""
    workspace.put_days(*DAYS, orders=6)
    with partner(workspace) as there:
        sent(workspace)
        sent(workspace)
        return side(workspace, there)


def side(found: Source, there: WebhookPartner) -> Side:
    """What is there after the second run."""
    return Side.of(
        ("orders of the week", 42, found.count_orders(DAYS[0], DAYS[-1])),
        ("revenue of the week in EUR", "133.00", found.revenue(DAYS[0], DAYS[-1])),
        ("files that the partner booked", 1, there.done.total()),
        ("revenue in EUR in the partner's books", "133.00", there.books("EUR")),
    )


DRILL = Drill(
    "Appending is only right the first time, and a task that sends does so at every run.",
    rule=2,
    file="warehouse/tables.py",
    usual=usual,
    ours=ours,
)
