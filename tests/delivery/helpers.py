"""What the tests of exports and deliveries share: published days, verdicts on them, exports built without a Dagster run."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

import pyarrow as pa

from orders_platform.assets import finance_export as finance
from orders_platform.assets import revenue_daily as revenue
from orders_platform.calendar import Calendar
from orders_platform.warehouse.exports import FileExport
from orders_platform.warehouse.inputs import Input
from orders_platform.warehouse.publications import Publication
from orders_platform.warehouse.swap import Swap
from orders_platform.warehouse.tables import Output
from orders_platform.warehouse.values import Export
from tests.conftest import Workspace

CALENDAR = Calendar(date(2026, 1, 5), date(2026, 2, 1))
WEEKS = ("2026-01-05", "2026-01-12", "2026-01-19", "2026-01-26")
WEEK = WEEKS[0]
DAYS = CALENDAR.days_of(WEEK)
SQL = """select date_trunc('week', order_date)::date as week, order_date, country, currency,
         orders, revenue_orders, cancelled_orders, revenue from revenue_daily"""


def publish_days(workspace: Workspace, days: Sequence[str] = DAYS, revenue_of_gb: str = "19.00") -> None:
    """revenue_daily of these days, through the real swap: one line in EUR, one in GBP."""
    lines = [(day, "DE", "EUR", "19.00") for day in days] + [(day, "GB", "GBP", revenue_of_gb) for day in days]
    rows = [
        {
            "order_date": date.fromisoformat(day), "country": country, "currency": currency,
            "orders": 3, "revenue_orders": 2, "cancelled_orders": 1, "revenue": Decimal(amount),
        }
        for day, country, currency, amount in lines
    ]  # fmt: skip
    output = Output("revenue_daily", revenue.CONTRACT, pa.Table.from_pylist(rows))
    swap = Swap([output], list(days), [], "a-test", "v1", CALENDAR, workspace.home / "landing")
    with workspace.warehouse.write("a test") as con:
        swap.run(con)


def judge(workspace: Workspace, *intervals: str, passed: bool = True, except_for: Sequence[str] = ()) -> None:
    """A `reconciles` verdict on every current publication that has none, or a new one on revenue_daily of `intervals`."""
    workspace.tamper(
        """insert into platform.verdicts (publication_id, asset, "interval", check_name, attempt, passed, blocking, judged_at)
           select publication_id, asset, "interval", 'reconciles',
             1 + coalesce((select max(attempt) from platform.verdicts v where v.publication_id = p.publication_id), 0),
             ?, true, published_at
           from platform.current_publications p
           where "interval" not in (select unnest(?::varchar[])) and case when len(?::varchar[]) = 0
             then publication_id not in (select publication_id from platform.verdicts where check_name = 'reconciles')
             else list_contains(?::varchar[], "interval") and asset = 'revenue_daily' end""",
        passed, list(except_for), list(intervals), list(intervals),
    )  # fmt: skip


def build(workspace: Workspace, week: str = WEEK) -> Publication:
    """The week's export, built by the real writer outside any Dagster run, and judged."""
    needs = {week: CALENDAR.days_of(week)}
    files = FileExport(
        "finance_export", finance.CONTRACT, Export(SQL), [week], [Input("revenue_daily", "revenue_daily", "order_date", needs)],
        "a-test", "v1", workspace.home / "landing", workspace.home / "exports",
    )  # fmt: skip
    with workspace.warehouse.write("a test") as con:
        (made,) = files.run(con)
    judge(workspace)
    return made


def ready_week(workspace: Workspace, week: str = WEEK, revenue_of_gb: str = "19.00") -> Publication:
    """A week whose days and export are published, current and reconciled."""
    publish_days(workspace, CALENDAR.days_of(week), revenue_of_gb)
    judge(workspace)
    return build(workspace, week)
