"""Alarms. Belongs here: what failed, was blocked or was corrected at the source, recorded once and posted once.

Not here: noticing it (automation/alarms.py). Nobody waits for a post: one that fails is tried again at the next look.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from orders_platform.calendar import DAY, WEEK, describe
from orders_platform.recovery.audit import Attempt, roots
from orders_platform.recovery.closure import Graph, closure
from orders_platform.recovery.states import State
from orders_platform.warehouse.publications import Pair

POST_SECONDS = 10.0
POST_FOR = timedelta(days=1)
"""A message nobody could be given for this long is not posted any more; it stays recorded."""


@dataclass(frozen=True)
class Alarm:
    """One alarm.

    Attributes:
        kind: failed, blocked or correction.
        key: What it is about, so that it is raised once.
        closure: (asset, interval, state) of everything downstream, as it was then.
        remedy: The command to run.
    """

    kind: str
    asset: str
    intervals: tuple[str, ...]
    key: str
    detail: str
    remedy: str
    closure: tuple[tuple[str, str, str], ...] = ()
    run_id: str = ""
    alarm_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    recorded_at: datetime = field(default_factory=lambda: datetime.now(UTC).replace(tzinfo=None))

    def message(self, step_days: int = 1) -> dict[str, Any]:
        """The message that is posted; `text` is for people and is what chat webhooks show."""
        span = describe(self.intervals, WEEK if step_days > 1 else DAY) + " " if any(self.intervals) else ""
        size = len(self.closure)
        text = f"{self.asset} {span}{self.kind}: {self.detail} {size} intervals downstream. Run: {self.remedy}"
        row = asdict(self)
        return {
            "text": text, "kind": self.kind, "asset": self.asset, "intervals": list(self.intervals), "error": self.detail,
            "closure_size": size, "command": self.remedy, "run_id": self.run_id, "alarm_id": row["alarm_id"],
        }  # fmt: skip


def reached(graph: Graph, states: Mapping[Pair, State], pairs: Sequence[Pair]) -> tuple[tuple[str, str, str], ...]:
    """The closure of the pairs, themselves left out, with the state each is in now."""
    own = set(pairs)
    return tuple((*p, states[p].name if p in states else "") for p in closure(graph, pairs) if p not in own)


def failed(graph: Graph, states: Mapping[Pair, State], asset: str, intervals: Sequence[str], error: str, run_id: str) -> Alarm:
    """The alarm of an asset whose step failed."""
    pairs = [(asset, i) for i in intervals]
    remedy = f"orders repair {asset} {_span(intervals)} --reason …"
    if graph.nodes[asset].is_effect:
        remedy = f"orders deliveries show {intervals[0]}"
    elif not any(intervals):
        remedy = f"dagster asset materialize --select {asset}"
    return Alarm(
        "failed", asset, tuple(intervals), f"{run_id}/{asset}", _sentence(error), remedy, reached(graph, states, pairs), run_id
    )


def blocked(graph: Graph, states: Mapping[Pair, State], attempts: Mapping[Pair, Attempt]) -> list[Alarm]:
    """One alarm a run and asset for pairs that never ran: there is no failure of theirs to report."""
    found: dict[tuple[str, str], list[Pair]] = {}
    for pair in graph.sort(p for p in attempts if p in states):
        if attempts[pair].outcome == "blocked" and states[pair].name not in ("current", "held"):
            found.setdefault((attempts[pair].run_id, pair[0]), []).append(pair)
    alarms = []
    for (run_id, asset), pairs in found.items():
        causes = list(dict.fromkeys(cause for pair in pairs for cause in roots(graph, states, pair)))
        named = ", ".join(f"{' '.join(cause)} ({states[cause].name})" for cause in causes[:3]) or "a step before it in its run"
        first = causes[0] if causes else pairs[0]
        intervals = [i for _, i in pairs]
        alarms.append(
            Alarm(
                "blocked", asset, tuple(intervals), f"{run_id}/{asset}", f"it never ran because of {named}.",
                f"orders repair {' '.join(first)} --reason …", reached(graph, states, pairs), run_id,
            )
        )  # fmt: skip
    return alarms


def _span(intervals: Sequence[str]) -> str:
    return intervals[0] if len(intervals) == 1 else f"{min(intervals)}...{max(intervals)}"


def _sentence(text: str) -> str:
    line = " ".join(text.split())[:500]
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def unsaid(con: Any, alarms: Iterable[Alarm]) -> list[Alarm]:
    """Those that were not raised before."""
    known = set(con.execute("select kind, key from platform.alarms").fetchall())
    return [alarm for alarm in alarms if (alarm.kind, alarm.key) not in known]


def record(con: Any, alarms: Iterable[Alarm]) -> list[Alarm]:
    """Append those that were not raised before; returns them."""
    fresh = unsaid(con, alarms)
    for alarm in fresh:
        row = asdict(alarm)
        row["intervals"] = list(alarm.intervals)
        row["closure"] = [{"asset": a, "interval": i, "state": s} for a, i, s in alarm.closure]
        names = ", ".join(row)
        con.execute(f"insert into platform.alarms ({names}) values ({', '.join('?' * len(row))})", list(row.values()))
    return fresh


def recorded(con: Any) -> list[Alarm]:
    """Every alarm, newest first."""
    names = list(Alarm.__dataclass_fields__)
    rows = con.execute(f"select {', '.join(names)} from platform.alarms order by recorded_at desc").fetchall()
    found = []
    for row in rows:
        values = dict(zip(names, row, strict=True))
        values["intervals"] = tuple(values["intervals"])
        values["closure"] = tuple((c["asset"], c["interval"], c["state"]) for c in values["closure"] or ())
        found.append(Alarm(**{**values, "alarm_id": str(values["alarm_id"])}))
    return found


def unposted(con: Any, now: datetime) -> list[Alarm]:
    """Alarms of the last day that nobody has been given yet, oldest first."""
    done = {str(row[0]) for row in con.execute("select alarm_id from platform.alarm_posts where is_posted").fetchall()}
    return [a for a in reversed(recorded(con)) if a.alarm_id not in done and a.recorded_at > now - POST_FOR]


def post(url: str, message: Mapping[str, Any]) -> str:
    """Post one message; returns what went wrong, without the URL, which may hold a secret. Empty when it was taken."""
    import httpx  # here, because every process imports this module and few post

    try:
        answer = httpx.post(url, json=dict(message), timeout=POST_SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"the alert URL could not be reached ({type(error).__name__})"
    return "" if answer.is_success else f"the alert URL answered {answer.status_code}"


def record_post(con: Any, alarm: Alarm, trouble: str) -> None:
    """Append that the alarm was posted, or why not."""
    at = datetime.now(UTC).replace(tzinfo=None)
    con.execute("insert into platform.alarm_posts values (?, ?, ?, ?)", [alarm.alarm_id, not trouble, trouble, at])
