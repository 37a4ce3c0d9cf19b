"""A partner that writes down every parcel it is given, behind the real ledger and the real way of delivering."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orders_platform.delivery.channels import NotTaken, OutcomeUnknown, Parcel, Refused
from orders_platform.delivery.deliver import Patience, deliver
from orders_platform.delivery.ledger import BeingSent, Ledger
from orders_platform.delivery.states import Content, Delivery, NotPossible, State

ANSWERS = ("takes it", "takes it", "dies before", "dies after", "is busy", "does not answer", "refuses")
ACTIONS = ("approve", "reject", "retry", "resolve")
PATIENCE = Patience(attempts=2, backoff_seconds=1.0, lease_seconds=60.0)


class Killed(BaseException):
    """The process is gone: nothing after it happens, not even a rollback."""


class Partner:
    """A channel to one partner.

    Attributes:
        may_repeat: Whether the partner knows a key again; one that does not has the parcel twice when it is sent twice.
        taken: Every parcel it has, in order.
        settled: Keys that the ledger, or a person, called delivered.
    """

    name = "partner"

    def __init__(self, ledger: Ledger, exports_root: Path, pause: Callable[[float], None]) -> None:
        self.ledger, self.exports_root, self.pause = ledger, exports_root, pause
        self.may_repeat = False
        self.answer = ANSWERS[0]
        self.taken: list[Parcel] = []
        self.settled: set[str] = set()
        self.approvals = 0

    def send(self, parcel: Parcel) -> dict[str, Any]:
        """What the partner does with a parcel today."""
        assert parcel.key not in self.settled, f"{parcel.key} was delivered already, and is sent again"
        assert parcel.key.endswith(hashlib.sha256(parcel.data).hexdigest()), f"{parcel.key} with other content"
        if self.answer == "dies before":
            raise Killed
        if self.answer == "refuses":
            raise Refused("no")
        if self.answer == "is busy":
            raise NotTaken("busy")
        if not (self.may_repeat and parcel.key in self.keys):
            self.taken.append(parcel)
        if self.answer == "dies after":
            raise Killed
        if self.answer == "does not answer":
            raise OutcomeUnknown("no answer")
        return {"at": "partner"}

    @property
    def keys(self) -> list[str]:
        return [parcel.key for parcel in self.taken]

    def deliver(self, content: Content, answer: str) -> None:
        """One run of the delivery."""
        self.answer = answer
        try:
            made = deliver(self.ledger, self, self.ledger.open(content), self.exports_root, PATIENCE, pause=self.pause)
        except (Killed, BeingSent):
            return
        if made.state == State.DELIVERED:
            self.settled.add(made.idempotency_key)

    def decide(self, week: str, action: str) -> None:
        """A person's decision on the newest revision; asked whether the partner has it, the person tells the truth."""
        history = self.ledger.history(week)
        if not history:
            return
        if action == "resolve":
            action = "resolve-delivered" if history[-1].idempotency_key in self.keys else "resolve-not-delivered"
        try:
            made = self.ledger.act(action, week, "ada", "a test")
        except NotPossible:
            return
        self.approvals += action == "approve"
        if made.state == State.DELIVERED:
            self.settled.add(made.idempotency_key)

    def check(self, week: str) -> None:
        """Nothing was delivered twice, no revision more than once, no second content without a person, nothing forgotten."""
        assert len(self.keys) == len(set(self.keys)), f"delivered twice: {self.keys}"
        revisions = [(parcel.week, parcel.revision) for parcel in self.taken]
        assert len(revisions) == len(set(revisions)), f"two contents of one revision: {self.keys}"
        assert len(self.keys) <= 1 + self.approvals, f"a correction left without approval: {self.keys}"
        ledger: dict[str, Delivery] = {item.idempotency_key: item for item in self.ledger.history(week)}
        assert len({item.revision for item in ledger.values()}) == len(ledger)
        assert all(ledger[key].may_be_there for key in self.keys), "the ledger forgot what the partner has"
        assert all(ledger[key].state == State.DELIVERED for key in self.settled)
