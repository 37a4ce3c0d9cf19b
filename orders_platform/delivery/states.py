"""States of a delivery. Belongs here: what a delivery is, which states follow which, what a person may do; all pure.

Not here: storing them (ledger.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from orders_platform.errors import OrdersError


class State(StrEnum):
    """Where a delivery stands."""

    PROPOSED = "proposed"
    WAITING = "waiting"
    CLAIMED = "claimed"
    DELIVERED = "delivered"
    FAILED = "failed"
    IN_DOUBT = "in_doubt"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


MEANING = {
    State.PROPOSED: "may be sent",
    State.WAITING: "a correction that waits for approval",
    State.CLAIMED: "being sent, or its worker ended and the same key will be sent again",
    State.DELIVERED: "the partner has it",
    State.FAILED: "the partner refused it; a person has to look",
    State.IN_DOUBT: "the partner may have it; a person has to find out",
    State.REJECTED: "a person decided that it is not sent",
    State.WITHDRAWN: "never sent, because newer content followed",
}


class NotPossible(OrdersError):
    """An action that the delivery's state does not allow."""


@dataclass(frozen=True)
class Content:
    """What is to be delivered: the current publication of an export's week.

    Attributes:
        digest: SHA-256 of the file's bytes.
        location: The file, relative to the exports' root.
    """

    export: str
    week: str
    digest: str
    location: str
    publication_id: str


@dataclass(frozen=True)
class Delivery:
    """One row of the ledger: one revision of one week. Times are UTC.

    Attributes:
        attempts: Times it was claimed.
        may_be_received: Some attempt ended without a known outcome.
        claim_id: Whose claim it is; another one after a takeover.
        lease_until: Claimed: until when the claim holds. Proposed: not before this time.
        released_at: When a person last approved, resolved or retried it; failed runs are counted from there.
    """

    idempotency_key: str
    export: str
    week: str
    revision: int
    digest: str
    location: str
    publication_id: str
    state: State
    opened_at: datetime
    supersedes: str | None = None
    channel: str | None = None
    contact: str | None = None
    attempts: int = 0
    may_be_received: bool = False
    claim_id: str | None = None
    claimed_at: datetime | None = None
    lease_until: datetime | None = None
    delivered_at: datetime | None = None
    receipt: Mapping[str, Any] | None = None
    detail: str | None = None
    released_at: datetime | None = None

    def is_held(self, now: datetime) -> bool:
        """Whether a worker holds a claim whose lease runs."""
        return self.state == State.CLAIMED and self.lease_until is not None and self.lease_until > now

    @property
    def left_behind(self) -> State | None:
        """The state it takes when newer content follows; None where it keeps its own."""
        if self.state not in (State.PROPOSED, State.WAITING, State.CLAIMED):
            return None
        return State.IN_DOUBT if self.may_be_there else State.WITHDRAWN

    @property
    def may_be_there(self) -> bool:
        """Whether the partner has it, or may have it."""
        return self.may_be_received or self.state in (State.DELIVERED, State.IN_DOUBT, State.CLAIMED)


@dataclass(frozen=True)
class Action:
    """A person's action: the states that allow it, what follows, and what follows where a newer revision exists."""

    allowed: tuple[State, ...]
    to: State
    to_when_superseded: State


ACTIONS = {
    "approve": Action((State.WAITING,), State.PROPOSED, State.WITHDRAWN),
    "reject": Action((State.WAITING, State.PROPOSED), State.REJECTED, State.REJECTED),
    "retry": Action((State.FAILED, State.PROPOSED), State.PROPOSED, State.WITHDRAWN),
    "resolve-delivered": Action((State.IN_DOUBT, State.FAILED, State.CLAIMED), State.DELIVERED, State.DELIVERED),
    "resolve-not-delivered": Action((State.IN_DOUBT, State.FAILED, State.CLAIMED), State.PROPOSED, State.WITHDRAWN),
}


def key_of(export: str, week: str, revision: int, digest: str) -> str:
    """The idempotency key, derived from content.

    >>> key_of("finance_export", "2026-01-05", 1, "ab12")
    'finance_export/2026-01-05/r1/ab12'
    """
    return f"{export}/{week}/r{revision}/{digest}"


def next_revision(earlier: Sequence[Delivery], content: Content) -> tuple[int, State, str | None]:
    """Number, state and predecessor of the revision that follows these.

    It may be sent at once only when nothing of the week can have reached the partner; otherwise it waits for a person.
    """
    there = [row for row in earlier if row.may_be_there]
    is_free = not there and not any(row.state == State.FAILED for row in earlier)
    number = earlier[-1].revision + 1 if earlier else 1
    return number, State.PROPOSED if is_free else State.WAITING, there[-1].idempotency_key if there else None
