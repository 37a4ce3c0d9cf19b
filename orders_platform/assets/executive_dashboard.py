"""executive_dashboard: the page people look at. Belongs here: when it is built and where it goes. Not here: dashboard/.

It declares deps= and reads no Slice, for it has to draw the days that no reader of a Slice is given: stale, held, missing.
"""

import base64
import os
from collections.abc import Callable
from datetime import UTC
from pathlib import Path

import dagster as dg

from orders_platform.calendar import Calendar
from orders_platform.dashboard import facts, page
from orders_platform.dashboard.charts import standalone
from orders_platform.dashboard.facts import Facts
from orders_platform.recovery import states
from orders_platform.recovery.dagster_facts import claims, graph_of
from orders_platform.settings import settings
from orders_platform.warehouse.files import part_of
from orders_platform.warehouse.session import Warehouse

TABLE = "revenue_daily"


def dashboard(repository: Callable[[], dg.RepositoryDefinition]) -> dg.AssetsDefinition:
    """The asset executive_dashboard; the repository's graph and partitions say which days there should be."""

    @dg.asset(
        deps=[TABLE],
        group_name="finance",
        owners=["team:finance"],
        kinds={"html"},
        tags={"audience": "executives"},
    )
    def executive_dashboard(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        """One self-contained HTML page: revenue by day and country, week on week, top movers, cancellations.

        Every number names the days it covers and when they were published; stale, held, divergent, claimed and missing days
        are drawn as such, never as zero and never as another day. **Units**: each currency by itself.
        """
        known = read(repository(), context.instance, settings().calendar)
        file = settings().home / "dashboard" / "index.html"
        replace(file, page.render(known))
        return dg.MaterializeResult(metadata=describe(known, file))

    return executive_dashboard


def read(repository: dg.RepositoryDefinition, instance: dg.DagsterInstance, calendar: Calendar) -> Facts:
    """What is known up to the newest published day."""
    warehouse = Warehouse.from_settings(settings())
    with warehouse.read() as con:
        newest = facts.newest_day(con)
    if newest is None:
        return Facts((), calendar.timezone)
    graph = graph_of(repository, calendar.window(newest)[1].astimezone(UTC))
    claimed = claims(instance, graph)
    with warehouse.read() as con:
        return facts.read(con, states.compute(con, graph, claimed), TABLE, calendar.timezone)


def replace(file: Path, text: str) -> None:
    """Put the text in place of the file in one step: who opens it finds the old page or the new one, whole."""
    with part_of(file.parent) as part:
        with part.open("w", encoding="utf-8", newline="\n") as sink:
            sink.write(text)
            sink.flush()
            os.fsync(sink.fileno())
        part.replace(file)


def describe(known: Facts, file: Path) -> dict[str, dg.MetadataValue]:
    """What the UI shows: the file, the counts of states, and the charts."""
    shown = {}
    for currency, svg in page.revenue_charts(known).items():
        name, stacked = f"revenue {currency}", ", ".join(known.countries(currency))
        shown[name] = dg.MetadataValue.md(f"![{name}]({_data(svg)})\n\nFrom the bottom up: {stacked}")
    if known.days:
        shown["cancellations"] = dg.MetadataValue.md(f"![cancellations]({_data(page.cancellation_chart(known))})")
    counts = {f"days {s}": dg.MetadataValue.int(sum(d.state == s for d in known.days)) for s in page.MEANING}
    return {
        "page": dg.MetadataValue.path(str(file)),
        "covers": dg.MetadataValue.text(page.covered(known.days)),
        **counts,
        **shown,
    }


def _data(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(standalone(svg).encode()).decode()
