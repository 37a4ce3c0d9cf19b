"""The sensor's decision. Belongs here: which weeks to propose and why the others wait, as a pure function of facts.

Not here: gathering the facts (readiness.py, ledger.py, automation/). It keeps no memory, so there is none to lose.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from orders_platform.delivery.readiness import Week
from orders_platform.delivery.states import Content, Delivery, State, key_of


@dataclass
class Decision:
    """What to do now.

    Attributes:
        proposals: week -> idempotency key that a run would deliver.
        waiting: week -> what it waits for.
    """

    proposals: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)

    def reason(self) -> str:
        """Why nothing is proposed, a line a week."""
        return "\n".join(f"{week}: {text}" for week, text in self.waiting.items()) or "Every week that was built is delivered."


def pending(content: Content | None, last: Delivery | None) -> str | None:
    """The key that a run would deliver now, by content alone; None when there is nothing to deliver or it is settled.

    >>> pending(Content("finance_export", "2026-01-05", "ab12", "", ""), None)
    'finance_export/2026-01-05/r1/ab12'
    """
    if content is None:
        return None
    if last is None or last.digest != content.digest:
        return key_of(content.export, content.week, last.revision + 1 if last else 1, content.digest)
    return last.idempotency_key if last.state in (State.PROPOSED, State.CLAIMED) else None


def decide(
    weeks: Sequence[Week],
    last: Mapping[str, Delivery],
    unfinished: Collection[str],
    failed: Mapping[str, int],
    now: datetime,
    failed_runs: int,
) -> Decision:
    """Propose each week that is ready, is not settled, has no run under way and has not failed too often.

    Args:
        weeks: Every week that has ended, with what it waits for.
        last: Its last revision in the ledger, where there is one.
        unfinished: Keys that some unfinished run carries.
        failed: key -> runs that failed since a person last released it.
        now: UTC.
        failed_runs: As many failed runs wait for a person.
    """
    made = Decision()
    for week in weeks:
        delivery = last.get(week.week)
        key = pending(week.content, delivery)
        text = _settled(week, delivery, now)
        if text is None and week.waits:
            text = "; ".join(week.waits)
        if text is None and key in unfinished:
            text = "a run is under way"
        if text is None and key is not None and failed.get(key, 0) >= failed_runs:
            text = f"{failed[key]} runs failed; mend the cause, then orders deliveries retry {week.week} --reason …"
        if text is None and key is not None:
            made.proposals[week.week] = key
        elif text:
            made.waiting[week.week] = text
    return made


def _settled(week: Week, delivery: Delivery | None, now: datetime) -> str | None:
    """Why the ledger stands against a run now; "" when the week is done; None when nothing stands against it."""
    if delivery is None:
        return None
    if delivery.is_held(now):
        return f"r{delivery.revision} is being sent (attempt {delivery.attempts})"
    if week.content is None or week.content.digest != delivery.digest:
        return None
    name = week.week
    if delivery.state == State.PROPOSED and delivery.lease_until and delivery.lease_until > now:
        return f"not before {delivery.lease_until:%Y-%m-%d %H:%M:%S} UTC: {delivery.detail}"
    return {
        State.DELIVERED: "",
        State.REJECTED: "",
        State.WAITING: f"r{delivery.revision} waits for approval: orders deliveries show {name}",
        State.FAILED: f"r{delivery.revision} was refused ({delivery.detail}): orders deliveries retry {name} --reason …",
        State.IN_DOUBT: f"r{delivery.revision} is in doubt ({delivery.detail}): orders deliveries resolve {name} --reason …",
    }.get(delivery.state)
