"""The sensors of recovery. Belongs here: noticing failures, blocked intervals and corrections, and saying so once.

Not here: what an alarm says (recovery/alarms.py). What was said is in the warehouse, never in a cursor.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import duckdb

from orders_platform.automation.repair import repair_job
from orders_platform.errors import OrdersError
from orders_platform.recovery import alarms, dagster_facts
from orders_platform.recovery.alarms import Alarm
from orders_platform.recovery.dagster_facts import REPAIR_JOB, World
from orders_platform.recovery.states import State
from orders_platform.settings import settings
from orders_platform.source.fingerprint import Fingerprint, fingerprint_of_landed
from orders_platform.source.reader import Reader, reader_of
from orders_platform.warehouse import publications
from orders_platform.warehouse.files import safe_path
from orders_platform.warehouse.publications import Pair, Publication

UNFINISHED = (
    dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)  # fmt: skip


def world_of(repository: dg.RepositoryDefinition | None, instance: dg.DagsterInstance) -> World:
    """The world a sensor sees."""
    if repository is None:
        raise OrdersError("The sensor was evaluated outside a code location.", "Run it from `dagster dev` or the daemon.")
    return World.of(repository, instance)


def raise_alarms(world: World, found: Iterable[Alarm], log: Any) -> list[Alarm]:
    """Record what was not said before, then post whatever nobody has been given yet; a post that fails holds nothing up."""
    found, url, now = list(found), settings().alert_url, datetime.now(UTC).replace(tzinfo=None)
    fresh: list[Alarm] = []
    if found:
        with world.warehouse.write("recording alarms") as con:
            fresh = alarms.record(con, found)
    if not url:
        return fresh
    with world.warehouse.read() as con:
        waiting = alarms.unposted(con, now)
    for alarm in waiting:
        trouble = alarms.post(url, alarm.message(world.graph.nodes[alarm.asset].step_days))
        if trouble:
            log.warning(f"{alarm.asset} {alarm.kind}: {trouble}; tried again at the next look")
        with world.warehouse.write("recording a posted alarm") as con:
            alarms.record_post(con, alarm, trouble)
    return fresh


# A run of the command line or of a repair names no code location, so only a sensor of all locations is told of it (1.13.27).
@dg.run_failure_sensor(
    monitor_all_code_locations=True,
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Records what failed with everything downstream as it is then, and posts one message to ORDERS_ALERT_URL.",
)
def failure_alarm(context: dg.RunFailureSensorContext) -> None:
    """One alarm a failed asset of the run."""
    world = world_of(context.repository_def, context.instance)
    raise_alarms(world, failures(world, context.dagster_run.run_id), context.log)


def failures(world: World, run_id: str) -> list[Alarm]:
    """The alarms of a run that failed: each asset whose step failed, with the intervals it did not publish."""
    facts, states = world.look()
    found = []
    for asset, (intervals, error) in dagster_facts.failures(world.instance, run_id, world.graph).items():
        left = [i for i in intervals if (v := facts.current.get((asset, i))) is None or v.run_id != run_id or error.is_check]
        if left:
            found.append(alarms.failed(world.graph, states, asset, left, error.text, run_id))
    return found


@dg.sensor(
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Alarms for intervals that never ran because of another, and the states of every asset as its metadata.",
)
def recovery_watch(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """Raise alarms for blocked pairs, post what could not be posted, and report states where they changed."""
    world = world_of(context.repository_def, context.instance)
    _, states = world.look()
    fresh = raise_alarms(
        world, alarms.blocked(world.graph, states, dagster_facts.attempts(context.instance, world.graph)), context.log
    )
    summaries = summary(states)
    known = json.loads(context.cursor or "{}")
    prints = {asset: hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16] for asset, rows in summaries.items()}
    changed = [asset for asset, value in prints.items() if known.get(asset) != value]
    if not changed and not fresh:
        return dg.SkipReason("Every state is as it was.")
    return dg.SensorResult(cursor=json.dumps(prints), asset_events=[observation(a, summaries[a]) for a in changed])


def summary(states: Mapping[Pair, State]) -> dict[str, list[tuple[str, str, str]]]:
    """Asset -> (interval, state, reason), in order."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for (asset, interval), state in states.items():
        found.setdefault(asset, []).append((interval, state.name, state.reason))
    return found


def observation(asset: str, rows: list[tuple[str, str, str]]) -> dg.AssetObservation:
    """The states of an asset as the UI shows them: how many of each, and those that are not current."""
    counts = Counter(state for _, state, _ in rows)
    records = [dg.TableRecord({"interval": i, "state": s, "why": w}) for i, s, w in rows if s != "current"][:100]
    metadata: dict[str, Any] = {f"intervals {state}": count for state, count in sorted(counts.items())}
    if records:
        metadata["not current"] = dg.MetadataValue.table(records)
    return dg.AssetObservation(asset, metadata=metadata)


@dg.sensor(
    job=repair_job,
    minimum_interval_seconds=600,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Compares the newest days of the source with what was landed; reports what moved, or recaptures and repairs.",
)
def corrections_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """Say once a fingerprint that a day moved; by ORDERS_CORRECTIONS, recapture it and repair what it reaches."""
    values = settings()
    if values.corrections == "off":
        return dg.SkipReason("ORDERS_CORRECTIONS is off.")
    is_repairing = values.corrections == "repair"
    if is_repairing and context.instance.get_runs(dg.RunsFilter(job_name=REPAIR_JOB, statuses=list(UNFINISHED)), limit=1):
        return dg.SkipReason("A repair is under way; what moved is looked at after it.")
    world = world_of(context.repository_def, context.instance)
    try:
        found = corrections(world, reader_of(values), datetime.now(UTC))
    except OrdersError as error:
        return dg.SkipReason(f"The source could not be compared: {error}")
    with world.warehouse.read() as con:
        unsaid = alarms.unsaid(con, found)
    fresh = raise_alarms(world, unsaid[: values.corrections_per_tick] if is_repairing else unsaid, context.log)
    if not fresh:
        return dg.SkipReason(f"{len(found)} days have moved, and were said before." if found else "No day has moved.")
    requests = [
        repair_request(asset, [a for a in fresh if a.asset == asset]) for asset in dict.fromkeys(a.asset for a in fresh)
    ]
    return dg.SensorResult(run_requests=requests if is_repairing else [])


def repair_request(asset: str, found: list[Alarm]) -> dg.RunRequest:
    """One repair of the days that moved, which captures them again."""
    days = sorted(day for alarm in found for day in alarm.intervals)
    reason = f"the source moved: {'; '.join(f'{a.intervals[0]} {a.detail}' for a in found)}"[:900]
    config = {"asset": asset, "intervals": days, "reason": reason, "who": "corrections_sensor"}
    return dg.RunRequest(run_config={"ops": {"repair_closure": {"config": config}}})


def corrections(world: World, reader: Reader, now: datetime) -> list[Alarm]:
    """The newest days whose source is no longer what was landed, oldest first.

    Raises:
        SourceError, SourceUnavailable: The source cannot answer.
    """
    values = settings()
    days = values.calendar.days(now)[-values.corrections_days :]
    sources = [node.asset for node in world.graph.nodes.values() if node.is_source and node.is_table]
    _, states = world.look()
    with world.warehouse.read() as con:
        landed = publications.current(con, [(asset, day) for asset in sources for day in days])
    found = []
    for (asset, day), publication in sorted(landed.items()):
        live = reader.fingerprint(day, *values.calendar.window(day))
        moved = live.moved(landed_fingerprint(publication))
        if not moved or states[asset, day].name == "held":
            continue
        key = hashlib.sha256(f"{values.corrections}/{asset}/{day}/{live}".encode()).hexdigest()[:32]
        closure = alarms.reached(world.graph, states, [(asset, day)])
        remedy = f'orders repair {asset} {day} --reason "the source moved"'
        found.append(Alarm("correction", asset, (day,), key, f"{moved}.", remedy, closure, publication.run_id))
    return found


def landed_fingerprint(publication: Publication) -> Fingerprint:
    """The fingerprint of what was landed."""
    with duckdb.connect() as con:
        return fingerprint_of_landed(con, [str(safe_path(settings().landing_root, publication.location or ""))])
