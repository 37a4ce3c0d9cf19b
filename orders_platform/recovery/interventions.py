"""Interventions. Belongs here: recording and listing what people did, and setting and releasing quarantines.

Not here: what a repair does (repair.py), or what is read under a quarantine (warehouse/gates.py).
"""

import getpass
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from orders_platform.calendar import DAY, WEEK, describe
from orders_platform.errors import OrdersError
from orders_platform.warehouse.publications import Pair, transaction

NO_REASON = "no reason given"


class NoReason(OrdersError):
    """An action without a reason; it is refused."""


class AlreadySo(OrdersError):
    """A quarantine that is set already, or a release of what is not quarantined."""


@dataclass(frozen=True)
class Intervention:
    """One thing a person did.

    Attributes:
        kind: repair, quarantine, release, approve, reject, resolve, retry, launch, backfill or mark.
        recorded_at: UTC.
        outcome: How it ended, where it takes time; empty while it runs or was interrupted.
    """

    intervention_id: str
    kind: str
    asset: str
    intervals: tuple[str, ...]
    who: str
    reason: str
    details: Mapping[str, Any] = field(default_factory=dict)
    recorded_at: datetime = field(default_factory=lambda: datetime.now(UTC).replace(tzinfo=None))
    outcome: str = ""

    def interval_text(self) -> str:
        """The intervals as a person would write them, days or weeks."""
        if any(len(interval) != len("2026-01-05") for interval in self.intervals):
            return ", ".join(self.intervals)
        return describe(self.intervals, WEEK if self.asset in ("finance_export", "finance_delivery") else DAY)


def whoami(named: str = "") -> str:
    """Who acts: the name given, else the login name."""
    if named:
        return named
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def require_reason(kind: str, asset: str, reason: str) -> None:
    """Refuse an action without a reason, before anything is done.

    Raises:
        NoReason: The reason is empty.
    """
    if not reason.strip():
        raise NoReason(f"{kind} {asset} needs a reason.", "Say why: --reason '…'.")


def record(
    con: Any, kind: str, asset: str, intervals: Sequence[str], who: str, reason: str, details: Mapping[str, Any] | str = ""
) -> str:
    """Append one intervention; inside the caller's transaction where there is one.

    Returns:
        Its intervention_id.

    Raises:
        NoReason: The reason is empty.
    """
    require_reason(kind, asset, reason)
    found = str(uuid.uuid4())
    _append(con, found, kind, asset, intervals, who, reason.strip(), details)
    return found


def record_outcome(con: Any, intervention: Intervention, outcome: str, details: Mapping[str, Any] | str = "") -> None:
    """Append how the intervention ended, under its id."""
    mine = (intervention.intervention_id, f"{intervention.kind} ended", intervention.asset, intervention.intervals)
    _append(con, *mine, intervention.who, outcome, details)


def _append(con: Any, found: str, kind: str, asset: str, intervals: Sequence[str], *values: Any) -> None:
    who, reason, details = values
    text = details if isinstance(details, str) else json.dumps(details, sort_keys=True, default=str)
    con.execute(
        "insert into platform.interventions values (?, ?, ?, ?, ?, ?, ?, ?)",
        [found, kind, asset, list(intervals), who, reason, text, datetime.now(UTC).replace(tzinfo=None)],
    )


def recorded(con: Any, kind: str = "") -> list[Intervention]:
    """Every intervention recorded by our own tools, newest first, each with its outcome."""
    found: dict[str, Intervention] = {}
    for row in con.execute("select * from platform.interventions order by recorded_at").fetchall():
        key = str(row[0])
        name, asset, intervals, who, reason, details, at = row[1:]
        if name.endswith(" ended") and key in found:
            found[key] = replace(found[key], outcome=reason)
        elif not kind or name == kind:
            found[key] = Intervention(key, name, asset, tuple(intervals), who, reason, _details(details), at)
    return list(reversed(found.values()))


def _details(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {"text": text}
    return found if isinstance(found, dict) else {"value": found}


@dataclass(frozen=True)
class Hold:
    """One quarantined pair."""

    asset: str
    interval: str
    who: str
    reason: str
    recorded_at: datetime


def holds(con: Any) -> dict[Pair, Hold]:
    """Every pair that is quarantined now."""
    rows = con.execute('select asset, "interval", who, reason, recorded_at from platform.held order by all').fetchall()
    return {(row[0], row[1]): Hold(*row) for row in rows}


def quarantine(con: Any, pairs: Iterable[Pair], who: str, reason: str) -> str:
    """Hold the pairs of one asset: gone from published.*, refused by consumers, until released.

    Raises:
        AlreadySo: One of them is held already.
        NoReason: The reason is empty.
    """
    return _set(con, list(pairs), who, reason, hold=True)


def release(con: Any, pairs: Iterable[Pair], who: str, reason: str) -> str:
    """Release the pairs of one asset; what was built without them, or from an earlier version, is stale from now on.

    Raises:
        AlreadySo: One of them is not held.
        NoReason: The reason is empty.
    """
    return _set(con, list(pairs), who, reason, hold=False)


def _set(con: Any, pairs: list[Pair], who: str, reason: str, *, hold: bool) -> str:
    asset = pairs[0][0]
    held = holds(con)
    for pair in pairs:
        if hold and pair in held:
            by = held[pair]
            raise AlreadySo(
                f"{' '.join(pair)} is quarantined already by {by.who} since {by.recorded_at:%Y-%m-%d %H:%M} UTC ({by.reason}).",
                "See orders quarantine list.",
            )
        if not hold and pair not in held:
            raise AlreadySo(f"{' '.join(pair)} is not quarantined.", "See orders quarantine list.")
    with transaction(con):
        found = record(con, "quarantine" if hold else "release", asset, [i for _, i in pairs], who, reason)
        for name, interval in pairs:
            con.execute(
                """insert into platform.quarantines
                   select ?, ?, coalesce(max(revision), 0) + 1, ?, ?, ?, ?::uuid, ?
                   from platform.quarantines where asset = ? and "interval" = ?""",
                [name, interval, hold, who, reason.strip(), found, datetime.now(UTC).replace(tzinfo=None), name, interval],
            )
    return found
