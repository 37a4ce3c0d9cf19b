"""Delivering. Belongs here: claim, send, record, in that order, each committed before the next.

Not here: which weeks are ready (readiness.py), or how a channel sends (channels_*.py).
"""

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orders_platform.delivery.channels import Channel, NotTaken, OutcomeUnknown, Parcel, Refused
from orders_platform.delivery.ledger import Ledger
from orders_platform.delivery.states import Delivery, State
from orders_platform.errors import OrdersError
from orders_platform.settings import Settings
from orders_platform.warehouse.files import FileCorrupt, safe_path, sha256_of


class NotDelivered(OrdersError):
    """The delivery did not happen, or nobody knows; says which, and what a person can do."""


@dataclass(frozen=True)
class Patience:
    """How long one run tries.

    Attributes:
        attempts: Times the key is sent in one run.
        backoff_seconds: Wait before the second attempt; doubles each time.
        longest_wait_seconds: A longer wait is left to a later run.
        lease_seconds: How long a claim holds after its worker ended without a word.
    """

    attempts: int = 5
    backoff_seconds: float = 1.0
    longest_wait_seconds: float = 60.0
    lease_seconds: float = 300.0

    @classmethod
    def from_settings(cls, settings: Settings) -> "Patience":
        """The patience that these settings describe."""
        return cls(
            settings.delivery_attempts,
            settings.delivery_backoff_seconds,
            lease_seconds=settings.delivery_lease_seconds,
        )


def deliver(
    ledger: Ledger,
    channel: Channel,
    delivery: Delivery,
    exports_root: Path,
    patience: Patience,
    contact: str = "",
    pause: Callable[[float], None] = time.sleep,
    fence: Callable[[], None] = lambda: None,
) -> Delivery:
    """Send the delivery if the ledger lets us; returns it as it is afterwards.

    Killed anywhere in here, the claim's lease runs out; then the same key is sent again where the channel may repeat it, and
    otherwise the delivery becomes in_doubt. The fence is asked before every attempt; it raises when the run may not send.

    Raises:
        FileCorrupt: The exported file is missing or changed; nothing was claimed or sent.
    """
    parcel = parcel_of(delivery, exports_root)
    for attempt in range(patience.attempts):
        fence()
        mine = str(uuid.uuid4())
        delivery = ledger.claim(
            delivery, mine, channel.name, contact, lease=patience.lease_seconds, may_repeat=channel.may_repeat
        )
        if delivery.claim_id != mine:
            return delivery
        try:
            receipt = channel.send(parcel)
        except Refused as error:
            return ledger.record(delivery, State.FAILED, error.message)
        except NotTaken as error:
            wait = max(error.retry_after, patience.backoff_seconds * 2**attempt)
            state = State.PROPOSED
            if isinstance(error, OutcomeUnknown):
                state = State.CLAIMED if channel.may_repeat else State.IN_DOUBT
            delivery = ledger.record(delivery, state, error.message, wait=wait)
            if wait > patience.longest_wait_seconds or attempt == patience.attempts - 1:
                return delivery
            pause(wait)
        else:
            return ledger.record(delivery, State.DELIVERED, f"taken by {channel.name}", receipt=receipt)
    return delivery


def parcel_of(delivery: Delivery, exports_root: Path) -> Parcel:
    """The delivery's file and manifest, read and verified.

    Raises:
        FileCorrupt: The file is missing, or its bytes are not those the delivery is for.
    """
    path = safe_path(exports_root, delivery.location)
    if not path.is_file() or sha256_of(path) != delivery.digest:
        raise FileCorrupt(
            f"{delivery.export} {delivery.week}: {path.name} is missing or changed.",
            f"Restore it, or build it again: dagster asset materialize --select {delivery.export} --partition {delivery.week}",
        )
    manifest = json.loads(path.with_suffix(".json").read_bytes())
    return Parcel(delivery.idempotency_key, delivery.week, delivery.revision, path.read_bytes(), manifest, delivery.supersedes)


def outcome(delivery: Delivery) -> str:
    """What became of it, in one sentence, for the states in which nothing is wrong.

    Raises:
        NotDelivered: It failed, is in doubt, or has to be tried again later.
    """
    week, key = delivery.week, delivery.idempotency_key
    if delivery.state == State.DELIVERED:
        return f"{key} was delivered to {delivery.channel} at {delivery.delivered_at:%Y-%m-%d %H:%M:%S} UTC"
    if delivery.state == State.WAITING:
        return f"{key} waits for approval: orders deliveries show {week}"
    if delivery.state in (State.REJECTED, State.WITHDRAWN):
        return f"{key} was {delivery.state}: {delivery.detail}"
    detail = (delivery.detail or "").rstrip(".")
    if delivery.state == State.FAILED:
        raise NotDelivered(f"{key} was refused: {detail}.", f"Mend the cause, then orders deliveries retry {week} --reason …")
    if delivery.state == State.IN_DOUBT:
        raise NotDelivered(
            f"{key} is in doubt: {detail}. The partner may have it.",
            f"Ask the partner, then orders deliveries resolve {week} --delivered or --not-delivered --reason …",
        )
    until = f" It is not tried again before {delivery.lease_until:%Y-%m-%d %H:%M:%S} UTC." if delivery.lease_until else ""
    raise NotDelivered(f"{key} was not delivered yet: {detail}.{until}", "The sensor proposes it again; or run it again later.")
