"""finance_delivery_sensor. Belongs here: gathering the facts for delivery/decide.py and launching what it proposes.

Not here: the decision. No cursor and no run key: what was done is in the ledger and in the run records.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial

import dagster as dg

from orders_platform.automation.jobs import DELIVERY_LIMIT_SECONDS, deliver_finance_export
from orders_platform.delivery.decide import Decision, decide, pending
from orders_platform.delivery.ledger import Ledger
from orders_platform.delivery.readiness import Week, contents, read_weeks
from orders_platform.delivery.states import Delivery
from orders_platform.settings import settings
from orders_platform.warehouse.io_managers import marked
from orders_platform.warehouse.session import Warehouse

TAG = "delivery_key"
QUEUED = (dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED)
UNFINISHED = (*QUEUED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING)


@dg.sensor(
    job=deliver_finance_export,
    minimum_interval_seconds=60,
    description="Proposes a delivery for each week whose file is ready and not sent; says what every other week waits for.",
)
def finance_delivery_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """Propose what is ready; the ledger decides whether anything is sent."""
    decision = decision_now(context.instance, datetime.now(UTC))
    if not decision.proposals:
        return dg.SkipReason(decision.reason())
    for week, text in decision.waiting.items():
        context.log.info(f"{week}: {text}")
    return dg.SensorResult(
        run_requests=[dg.RunRequest(partition_key=week, tags={TAG: key}) for week, key in decision.proposals.items()]
    )


def decision_now(instance: dg.DagsterInstance, now: datetime) -> Decision:
    """The decision on what the ledger, the warehouse and the run records say now."""
    values = settings()
    latest = Ledger(values.ledger_url).latest()
    ended = values.calendar.weeks(now)
    with Warehouse.from_settings(values).read() as con:
        built = contents(con, ended)
        keys = {week: pending(built.get(week), latest.get(week)) for week in ended}
        open_weeks = [week for week in ended if keys[week] or week not in built]
        facts = {week.week: week for week in read_weeks(con, values.calendar, open_weeks, partial(marked, instance))}
    weeks = [facts.get(week) or Week(week, built.get(week)) for week in ended]
    naive = now.astimezone(UTC).replace(tzinfo=None)
    unfinished, failed = runs_of(instance, {k: latest.get(w) for w, k in keys.items() if k}, naive)
    return decide(weeks, latest, unfinished, failed, naive, values.delivery_failed_runs)


def runs_of(
    instance: dg.DagsterInstance, keys: Mapping[str, Delivery | None], now: datetime
) -> tuple[Collection[str], Mapping[str, int]]:
    """Keys that an unfinished run carries, and failed runs of each key since a person last released it.

    A started run that is older than any delivery can take has been killed; the default launcher never notices.
    """
    unfinished: set[str] = set()
    failed: Counter[str] = Counter()
    for key, record in _records(instance, keys):
        status, created = record.dagster_run.status, record.create_timestamp.astimezone(UTC).replace(tzinfo=None)
        touched = record.update_timestamp.astimezone(UTC).replace(tzinfo=None)
        delivery = keys[key]
        if status in QUEUED or (status in UNFINISHED and touched > now - timedelta(seconds=DELIVERY_LIMIT_SECONDS)):
            unfinished.add(key)
        elif status == dg.DagsterRunStatus.FAILURE or status in UNFINISHED:
            released = delivery.released_at if delivery and delivery.idempotency_key == key else None
            failed[key] += released is None or created > released
    return unfinished, failed


def _records(instance: dg.DagsterInstance, keys: Iterable[str]) -> Iterable[tuple[str, dg.RunRecord]]:
    for key in keys:
        for record in instance.get_run_records(dg.RunsFilter(tags={TAG: key}), limit=100):
            yield key, record
