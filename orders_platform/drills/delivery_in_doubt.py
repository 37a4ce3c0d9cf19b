"""delivery-in-doubt: the partner takes the file, and the connection breaks before its answer."""

from orders_platform.delivery.ledger import Ledger
from orders_platform.drills.drill import Drill, Side
from orders_platform.drills.partner import WebhookPartner
from orders_platform.drills.usual import UsualBuild, orders, revenue, weekly_file
from orders_platform.drills.week import DAYS, WEEK, partner, sent
from orders_platform.drills.workspace import Workspace

KNOWS, FORGETS = True, False


def usual(build: UsualBuild) -> Side:
    """The task failed, so it is tried again, and the partner is sent a second file."""
    build.put_days(*DAYS, orders=6)
    build.materialize([orders, revenue], DAYS[0], DAYS[-1])
    books = []
    for honours in (KNOWS, FORGETS):
        with partner(build, honours=honours) as there:
            there.script = ["cut after"]
            green = build.materialize([weekly_file], WEEK).success
            books.append(there)
    return side(books, is_asked=not green)


def ours(workspace: Workspace) -> Side:
    """A partner that knows keys is asked again under the same one; for another, a person finds out first."""
    workspace.put_days(*DAYS, orders=6)
    books = []
    for honours in (KNOWS, FORGETS):
        with partner(workspace, honours=honours) as there:
            there.script = ["cut after"]
            sent(workspace)
            workspace.materialize(WEEK, assets=("finance_delivery",))
            books.append(there)
            last = Ledger(workspace.settings.ledger_url).history(WEEK)[-1]
        if honours:  # the second partner starts with an empty ledger
            workspace.settings.home.joinpath("ledger.db").rename(workspace.home / "first.db")
    return side(books, is_asked=last.state == "in_doubt")


def side(books: list[WebhookPartner], is_asked: bool) -> Side:
    """What both partners hold."""
    knows, forgets = books
    return Side.of(
        ("files booked by a partner that knows keys", 1, knows.done.total()),
        ("files booked by a partner that forgets them", 1, forgets.done.total()),
        ("revenue in EUR in the first one's books", "133.00", knows.books("EUR")),
        ("a person is asked what the second one has", True, is_asked),
    )


DRILL = Drill(
    "That no answer came does not say that nothing happened, and a retry acts as if it did.",
    rule=5,
    file="delivery/deliver.py",
    usual=usual,
    ours=ours,
)
