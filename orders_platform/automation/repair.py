"""repair: a bounded repair carried out, from the command line or launched from the UI.

Belongs here: the steps around recovery/repair.py: record, run, reconcile, record how it ended. Not here: what is affected.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import portalocker
from pydantic import Field

from orders_platform.checks.tables import tables_of
from orders_platform.errors import OrdersError
from orders_platform.recovery import interventions, repair, states
from orders_platform.recovery.dagster_facts import REPAIR_JOB, USER_TAG, DagsterLauncher, World
from orders_platform.recovery.interventions import Intervention, whoami
from orders_platform.recovery.reconcile import DIVERGENT, Reconciler
from orders_platform.recovery.reconciliation import Table
from orders_platform.recovery.repair import Outcome, Plan, Repair
from orders_platform.settings import settings
from orders_platform.warehouse.publications import Pair


class RepairRunning(OrdersError):
    """Another repair of this workspace is under way."""

    retryable = True


@dataclass(frozen=True)
class Request:
    """What a person asks for.

    Attributes:
        intervals: Intervals or ranges (first...last) of the asset.
        only: Repair these pairs alone, and leave what was made from them stale.
        force: Also when something was made from the version that `only` replaces.
        recapture: Land the source again first.
        processes: 0 runs in this process, otherwise in that many of their own.
    """

    asset: str
    intervals: Sequence[str]
    reason: str = ""
    who: str = ""
    only: bool = False
    force: bool = False
    recapture: bool = False
    processes: int = 0

    def seeds(self, world: World) -> list[Pair]:
        """The pairs that run in any case."""
        named = world.graph.require(self.asset, self.intervals)
        node = world.graph.nodes[self.asset]
        if node.is_effect or not node.is_table:
            raise OrdersError(
                f"{self.asset} is not repaired: it acts on the outside world or shows what is there.",
                "See orders deliveries for what was sent; repair what it is made from.",
            )
        return world.graph.sort({*named, *repair.sources(world.graph, named)} if self.recapture else named)


def plan_of(world: World, request: Request) -> Plan:
    """What the repair would do.

    Raises:
        UnknownPair: The graph has no such asset or interval.
        repair.AlreadyConsumed: `only`, without `force`, for pairs that others were made from.
    """
    seeds = request.seeds(world)
    facts, now = world.look()
    if request.only and not request.force:
        with world.warehouse.read() as con:
            repair.require_unconsumed(seeds, states.consumers(con, world.graph, seeds))
    return repair.plan(world.graph, facts, now, seeds, only=request.only)


@dataclass
class Progress:
    """What a repair tells while it runs."""

    begun: Callable[[Intervention, bool], None] = lambda intervention, is_continued: None
    running: Callable[[str, Sequence[str]], None] = lambda asset, intervals: None
    reconciling: Callable[[int], None] = field(default=lambda count: None)


def carry_out(
    world: World, request: Request, plan: Plan, tables: Mapping[str, Table], progress: Progress | None = None
) -> tuple[Intervention, Outcome]:
    """Record the intervention, repair, reconcile what was repaired, and record how it ended.

    A repair of the same pairs that was interrupted is continued under its own id.

    Raises:
        RepairRunning: Another one is under way.
        interventions.NoReason: No reason was given.
    """
    progress = progress or Progress()
    with _alone(settings().locks_root):
        intervention, is_continued = _begin(world, request, plan)
        progress.begun(intervention, is_continued)
        launcher = DagsterLauncher(
            world.instance, intervention.intervention_id, intervention.who, intervention.reason, request.processes
        )
        try:
            processes = max(1, request.processes)
            work = Repair(world.graph, plan, world.look, launcher, processes, settings().intervals_per_run, progress.running)
            outcome = work.run()
        finally:
            launcher.close()
        progress.reconciling(len(outcome.repaired))
        outcome.divergent = reconcile(world, tables, outcome.repaired)
        outcome.repaired = [pair for pair in outcome.repaired if pair not in outcome.divergent]
        with world.warehouse.write(f"repair {intervention.intervention_id}") as con:
            interventions.record_outcome(con, intervention, outcome.text(), details_of(outcome))
    return intervention, outcome


def _begin(world: World, request: Request, plan: Plan) -> tuple[Intervention, bool]:
    intervals = [interval for _, interval in world.graph.require(request.asset, request.intervals)]
    asked = {"only": request.only, "recapture": request.recapture}
    steps = {name: node.step_days for name, node in world.graph.nodes.items()}
    details = {
        "asked": asked,
        "plan": {line.action: len(plan.acting(line.action)) for line in plan.lines},
        "rows": plan.rows,
        "estimated_seconds": round(plan.seconds(steps), 1),
    }
    with world.warehouse.write(f"repair of {request.asset}") as con:
        for found in interventions.recorded(con, "repair"):
            same = (found.asset, list(found.intervals), found.details.get("asked")) == (request.asset, intervals, asked)
            if same and not found.outcome:
                return found, True
        interventions.record(con, "repair", request.asset, intervals, whoami(request.who), request.reason, details)
        return interventions.recorded(con, "repair")[0], False


def details_of(outcome: Outcome) -> dict[str, Any]:
    """The outcome as it is kept: pairs by what became of them."""
    return {
        "repaired": [" ".join(pair) for pair in outcome.repaired],
        "held": [" ".join(pair) for pair in outcome.held],
        "waiting": {" ".join(pair): reason for pair, reason in outcome.waiting.items()},
        "failed": {" ".join(pair): reason[:400] for pair, reason in outcome.failed.items()},
        "divergent": [" ".join(pair) for pair in outcome.divergent],
        "skipped": len(outcome.unchanged),
    }


def reconcile(world: World, tables: Mapping[str, Table], pairs: Iterable[Pair]) -> list[Pair]:
    """Compare what these pairs hold with what was published and what it was made from; returns those that disagree."""
    wanted: dict[str, list[str]] = {name: [] for name in tables}
    for asset, interval in pairs:
        wanted[asset].append(interval)
    work = Reconciler(world.warehouse, tables, settings())
    lines = work.run(work.steps(wanted), lambda: None)
    return world.graph.sort({(world.graph.owner_of[x.asset], x.interval) for x in lines if x.verdict == DIVERGENT})


@contextmanager
def _alone(locks: Path) -> Iterator[None]:
    locks.mkdir(parents=True, exist_ok=True)
    try:
        with portalocker.Lock(locks / "repair.lock", "a+", timeout=0, fail_when_locked=True) as file:
            file.seek(0)
            file.truncate()
            file.write(str(os.getpid()))
            file.flush()
            yield
    except portalocker.LockException:
        holder = (locks / "repair.lock").read_text() or "another"
        raise RepairRunning(
            f"Another repair is under way in this workspace (process {holder}).", "Wait for it; see orders interventions."
        ) from None


class RepairConfig(dg.Config):
    """What to repair; the same as `orders repair`."""

    asset: str = Field(description="The asset that failed or whose input moved.")
    intervals: list[str] = Field(description="Its intervals: 2026-01-06, or a range 2026-01-05...2026-01-09.")
    reason: str = Field(description="Why; recorded with the intervention.")
    who: str = Field(default="", description="Who asks; empty: the user of the launch, else the login name.")
    recapture: bool = Field(default=False, description="Land the source again first.")
    only: bool = Field(default=False, description="These intervals alone; what was made from them stays stale.")
    force: bool = Field(default=False, description="Also when something was made from the version that `only` replaces.")
    dry_run: bool = Field(default=False, description="Write the plan to the log and change nothing.")


@dg.op
def repair_closure(context: dg.OpExecutionContext, config: RepairConfig) -> None:
    """Repair the named intervals and everything they reach, as `orders repair` does; nothing is sent.

    Raises:
        dg.Failure: The repair was refused, or something failed or disagrees.
    """
    repository = context.repository_def
    who = config.who or context.run.tags.get(USER_TAG, "")
    request = Request(
        config.asset, config.intervals, config.reason, who, config.only, config.force, config.recapture, processes=1
    )
    try:
        world = World.of(repository, context.instance)
        plan = plan_of(world, request)
        for line in plan.lines:
            context.log.info(f"{line.action}: {line.asset} {line.interval} ({line.state}) {line.reason}")
        if config.dry_run:
            return
        tables = tables_of(repository.assets_defs_by_key.values())
        progress = Progress(running=lambda asset, intervals: context.log.info(f"running {asset}: {len(intervals)}"))
        intervention, outcome = carry_out(world, request, plan, tables, progress)
    except OrdersError as error:
        raise dg.Failure(str(error), allow_retries=False) from error
    metadata: dict[str, Any] = {
        "intervention": intervention.intervention_id,
        "outcome": dg.MetadataValue.json(details_of(outcome)),
    }
    context.log.info(outcome.text())
    if not outcome.is_good:
        raise dg.Failure(outcome.text(), metadata=metadata, allow_retries=False)
    context.add_output_metadata(metadata)


@dg.job(
    name=REPAIR_JOB,
    executor_def=dg.in_process_executor,
    description="Repair an asset's intervals and everything they reach: bounded, in order, recorded. Same as orders repair.",
)
def repair_job() -> None:
    """The repair, to be launched from the UI's launchpad."""
    repair_closure()
