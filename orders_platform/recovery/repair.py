"""Repair. Belongs here: planning a bounded repair and running it asset by asset, states looked up anew between.

Not here: how a run is launched (dagster_facts.py gives a launcher), or what a state means (states.py).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from orders_platform.calendar import blocks
from orders_platform.errors import OrdersError
from orders_platform.recovery.closure import Graph, Node, closure, upstream
from orders_platform.recovery.states import Facts, State
from orders_platform.warehouse.publications import Pair

RUN_SECONDS = 1.0
"""What Dagster itself adds to a run (measured 0.4-1.2 s in process)."""

GIVE_UP = 3
"""Single intervals of one asset that may fail before the rest of it is not tried: the fault is then not in the intervals."""


class AlreadyConsumed(OrdersError):
    """Repairing a pair alone while others were made from the version it would replace."""


@dataclass(frozen=True)
class Launched:
    """What became of one run: its id, whether it succeeded, and its error."""

    run_id: str
    success: bool
    error: str = ""


class Launcher(Protocol):
    """Runs one asset for contiguous blocks of intervals, each block one run, every run tagged as part of this repair."""

    def launch(self, asset: str, runs: Sequence[Sequence[str]]) -> list[Launched]:
        """Run them, and return when all have ended."""

    def run_ids(self) -> Collection[str]:
        """Every run of this repair so far, also from before it was interrupted."""


@dataclass(frozen=True)
class Line:
    """One pair of a plan.

    Attributes:
        action: rerun, if changed (only when an input's content changes), hold, wait, excluded (an external effect), redraw.
        reason: Why.
    """

    asset: str
    interval: str
    state: str
    action: str
    reason: str
    rows: int
    seconds: float

    @property
    def pair(self) -> Pair:
        """(asset, interval)."""
        return self.asset, self.interval


@dataclass(frozen=True)
class Plan:
    """What a repair would do.

    Attributes:
        seeds: Pairs that run in any case.
        lines: Every pair of their closure, in order.
    """

    seeds: tuple[Pair, ...]
    lines: tuple[Line, ...]

    def acting(self, *actions: str) -> list[Line]:
        """The lines with these actions."""
        return [line for line in self.lines if line.action in actions]

    @property
    def rows(self) -> int:
        """Rows to rewrite, as published now, were every input to change."""
        return sum(line.rows for line in self.acting("rerun", "if changed"))

    def seconds(self, step_days: Mapping[str, int]) -> float:
        """Estimated duration: what the publications it replaces took, plus Dagster's share a run."""
        work = self.acting("rerun", "if changed")
        runs = sum(
            len(blocks([x.interval for x in work if x.asset == asset], timedelta(days=step_days[asset])))
            for asset in {line.asset for line in work}
        )
        return sum(line.seconds for line in work) + runs * RUN_SECONDS


def plan(graph: Graph, facts: Facts, states: Mapping[Pair, State], seeds: Iterable[Pair], *, only: bool = False) -> Plan:
    """What repairing these seeds would do; with `only`, to them alone."""
    wanted = tuple(graph.sort(set(seeds)))
    lines: list[Line] = []
    usual = _usual(facts)
    ready: set[Pair] = set()
    for pair in wanted if only else closure(graph, wanted):
        node = graph.nodes[pair[0]]
        action, reason = _action(graph, node, pair, states, ready, pair in wanted)
        if action in ("rerun", "if changed"):
            ready.add(pair)
        version = facts.current.get(pair)
        rows, seconds = usual.get(pair[0], (0, 0.0))
        rows, seconds = (version.row_count, version.duration_seconds) if version else (rows, seconds)
        lines.append(Line(*pair, states[pair].name if pair in states else "", action, reason, rows, seconds))
    return Plan(wanted, tuple(lines))


def _action(
    graph: Graph, node: Node, pair: Pair, states: Mapping[Pair, State], ready: Collection[Pair], is_seed: bool
) -> tuple[str, str]:
    if node.is_effect:
        return "excluded", "an external effect; nothing is sent by a repair"
    if not node.is_table:
        return "redraw", "it shows what it reads"
    state = states[pair]
    if state.name == "held":
        return "hold", state.reason
    waits = blocking(graph, pair, states, ready)
    if waits:
        return "wait", f"{' '.join(waits)} is {states[waits].name}"
    if is_seed:
        return "rerun", "named"
    if state.name != "current":
        return "rerun", state.reason
    return "if changed", "current; runs only if what it reads changes"


def blocking(graph: Graph, pair: Pair, states: Mapping[Pair, State], ready: Collection[Pair]) -> Pair | None:
    """The first input of the pair that is neither current nor about to be."""
    for parent in graph.parents.get(pair, ()):
        if parent in states and states[parent].name != "current" and parent not in ready:
            return parent
    return None


def _usual(facts: Facts) -> dict[str, tuple[int, float]]:
    """Asset -> mean rows and seconds of an interval."""
    found: dict[str, list[tuple[int, float]]] = {}
    for (asset, _), version in facts.current.items():
        found.setdefault(asset, []).append((version.row_count, version.duration_seconds))
    return {a: (sum(r for r, _ in v) // len(v), sum(s for _, s in v) / len(v)) for a, v in found.items()}


def sources(graph: Graph, seeds: Iterable[Pair]) -> list[Pair]:
    """What has to be captured again so that these seeds are made from the source as it is now."""
    return [pair for pair in upstream(graph, seeds) if graph.nodes[pair[0]].is_source]


def require_unconsumed(seeds: Iterable[Pair], consumers: Sequence[Pair]) -> None:
    """Refuse to repair pairs alone that others were made from.

    Raises:
        AlreadyConsumed: Lists the pairs that consumed the version that would be replaced.
    """
    if consumers:
        shown = ", ".join(" ".join(pair) for pair in consumers[:20])
        more = f" and {len(consumers) - 20} more" if len(consumers) > 20 else ""
        raise AlreadyConsumed(
            f"{', '.join(' '.join(pair) for pair in seeds)} has been consumed by {shown}{more}.",
            "Repair without --only, or add --force to leave them stale.",
        )


@dataclass
class Outcome:
    """What a repair did, by pair."""

    repaired: list[Pair] = field(default_factory=list)
    unchanged: list[Pair] = field(default_factory=list)
    held: list[Pair] = field(default_factory=list)
    waiting: dict[Pair, str] = field(default_factory=dict)
    failed: dict[Pair, str] = field(default_factory=dict)
    divergent: list[Pair] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Nothing failed and nothing disagrees; held and waiting pairs are for a person, not an error."""
        return not self.failed and not self.divergent

    def text(self) -> str:
        """The counts, those that are zero left out apart from repaired.

        >>> Outcome(repaired=[("a", "1")], held=[("a", "2")]).text()
        '1 repaired, 1 held'
        """
        counts = {
            "skipped (unchanged)": len(self.unchanged),
            "held": len(self.held),
            "waiting": len(self.waiting),
            "failed": len(self.failed),
            "divergent": len(self.divergent),
        }
        return ", ".join([f"{len(self.repaired)} repaired", *(f"{n} {name}" for name, n in counts.items() if n)])


@dataclass
class Repair:
    """One repair in progress.

    Attributes:
        look: The facts and states as they are now.
        processes: Runs at once; an asset that reads its own past runs its intervals in order.
        per_run: Most intervals of one run; None for a run a contiguous range.
        tell: Told before each asset: asset and intervals.
    """

    graph: Graph
    plan: Plan
    look: Callable[[], tuple[Facts, dict[Pair, State]]]
    launcher: Launcher
    processes: int = 1
    per_run: int | None = None
    tell: Callable[[str, Sequence[str]], None] = lambda asset, intervals: None

    def run(self) -> Outcome:
        """Run what the plan reaches and the states still ask for, in dependency order; what it did before is not done again."""
        outcome = Outcome()
        by_asset: dict[str, list[Pair]] = {}
        for line in self.plan.lines:
            if line.action not in ("excluded", "redraw"):
                by_asset.setdefault(line.asset, []).append(line.pair)
        for asset, pairs in by_asset.items():
            self._asset(asset, pairs, outcome)
        if outcome.repaired:
            self._redraw(outcome)
        return outcome

    def _redraw(self, outcome: Outcome) -> None:
        """Pages show the states of what they read, so they are drawn last."""
        for line in self.plan.acting("redraw"):
            self.tell(line.asset, [line.interval])
            (result,) = self.launcher.launch(line.asset, [[line.interval]])
            if not result.success:
                outcome.failed[line.pair] = result.error

    def _asset(self, asset: str, pairs: Sequence[Pair], outcome: Outcome) -> None:
        facts, states = self.look()
        mine = set(self.launcher.run_ids())
        due: list[str] = []
        ready: set[Pair] = set()
        for pair in pairs:
            version = facts.current.get(pair)
            is_done = version is not None and version.run_id in mine
            if states[pair].name == "held":
                outcome.held.append(pair)
            elif states[pair].name == "current" and (is_done or pair not in self.plan.seeds):
                (outcome.repaired if is_done else outcome.unchanged).append(pair)
            elif waits := blocking(self.graph, pair, states, ready):
                outcome.waiting[pair] = f"{' '.join(waits)} is {states[waits].name}"
            else:
                due.append(pair[1])
                ready.add(pair)
        if due:
            self.tell(asset, due)
            self._launch(asset, due, outcome)

    def _launch(self, asset: str, due: Sequence[str], outcome: Outcome) -> None:
        """Ranges first; a range that fails is halved until the intervals at fault are alone."""
        step = timedelta(days=self.graph.nodes[asset].step_days)
        in_order = self.graph.reads_itself(asset)
        together = 1 if in_order else self.processes
        waiting = [run for block in blocks(due, step) for run in self._split(asset, block)]
        good = alone = 0
        while waiting:
            batch, waiting = waiting[:together], waiting[together:]
            launched = self.launcher.launch(asset, batch)
            facts, states = self.look()
            again: list[list[str]] = []
            for run, result in zip(batch, launched, strict=True):
                left = self._settle(asset, run, result, facts, states, outcome)
                good += len(run) - len(left)
                if len(run) > 1 and left:
                    half = (len(left) + 1) // 2
                    again += [part for part in (left[:half], left[half:]) if part]
                    continue
                alone += bool(left)
                outcome.failed.update({(asset, i): result.error for i in left})
            waiting = [*again, *waiting]
            if (alone >= GIVE_UP and not good) or (alone and in_order):
                reason = f"{asset} before it failed" if in_order else f"not tried: {asset} fails for every interval"
                outcome.waiting.update({(asset, i): reason for run in waiting for i in run})
                return

    def _split(self, asset: str, block: list[str]) -> list[list[str]]:
        size = self.per_run or len(block)
        if self.processes > 1 and not self.graph.reads_itself(asset):
            size = min(size, -(-len(block) // self.processes))
        return [block[start : start + size] for start in range(0, len(block), size)]

    def _settle(
        self, asset: str, run: Sequence[str], result: Launched, facts: Facts, states: Mapping[Pair, State], outcome: Outcome
    ) -> list[str]:
        """Sort the intervals of a run by what is published now; returns those that are not."""
        left = []
        for interval in run:
            pair = (asset, interval)
            version = facts.current.get(pair)
            if not version or version.run_id != result.run_id:
                left.append(interval)
            elif states[pair].name in ("divergent", "claimed"):
                outcome.failed[pair] = f"published, but {states[pair].reason}"
            else:
                outcome.repaired.append(pair)
        return left
