"""The ledger of deliveries. Belongs here: revisions, their states, claims and outcomes, in SQLite or Postgres (SQLAlchemy).

Not here: sending (deliver.py, channels.py). Every change is one short transaction; none is open while something is sent.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from orders_platform.delivery.schema import DELIVERIES, METADATA, TRANSITIONS, engine_of, lock
from orders_platform.delivery.states import ACTIONS, Content, Delivery, NotPossible, State, key_of, next_revision
from orders_platform.errors import OrdersError

SHOWN = 400


class LedgerUnavailable(OrdersError):
    """The ledger cannot be read or written; nothing is sent without it."""

    retryable = True


class BeingSent(OrdersError):
    """Another worker holds a claim on an earlier revision of the week; its outcome decides what comes next."""

    retryable = True


@dataclass(frozen=True)
class Transition:
    """One line of a delivery's history; append-only."""

    idempotency_key: str
    state: str
    attempt: int
    who: str | None
    detail: str | None
    recorded_at: datetime


def utc_now() -> datetime:
    """The time, UTC, as the ledger stores it."""
    return datetime.now(UTC).replace(tzinfo=None)


class Ledger:
    """Deliveries by their idempotency keys.

    Args:
        url: SQLAlchemy URL, SQLite or Postgres.
        clock: The time in UTC; leases are measured by it.

    Raises:
        LedgerUnavailable: From every method, when the database cannot be used.
    """

    def __init__(self, url: str, clock: Callable[[], datetime] = utc_now) -> None:
        self.url = sa.make_url(url)
        self.clock = clock
        self._prepared = False
        if self.url.get_backend_name() not in ("sqlite", "postgresql"):
            raise LedgerUnavailable(f"{self.url.get_backend_name()} cannot hold the ledger.", "Use SQLite or Postgres.")
        self._engine = engine_of(self.url)

    # Reading

    def history(self, week: str, export: str = "finance_export") -> list[Delivery]:
        """Every revision of the week, oldest first."""
        with self._transaction() as con:
            return _history(con, export, week)

    def all(self) -> list[Delivery]:
        """Every delivery, by week and revision."""
        with self._transaction() as con:
            return _fetch(con, sa.select(DELIVERIES))

    def latest(self) -> dict[str, Delivery]:
        """The last revision of each week."""
        return {delivery.week: delivery for delivery in self.all()}

    def transitions(self, key: str) -> list[Transition]:
        """What happened to one delivery, oldest first."""
        columns = [TRANSITIONS.c[name] for name in Transition.__dataclass_fields__]
        with self._transaction() as con:
            query = sa.select(*columns).where(TRANSITIONS.c.idempotency_key == key).order_by(TRANSITIONS.c.number)
            return [Transition(**row) for row in con.execute(query).mappings()]

    # What a worker does

    def open(self, content: Content) -> Delivery:
        """The delivery of this content: the week's last revision when it is the same content, otherwise a new one.

        Raises:
            BeingSent: Other content of the week is being sent right now.
        """
        with self._transaction(content.week) as con:
            earlier = _history(con, content.export, content.week)
            last = earlier[-1] if earlier else None
            now = self.clock()
            if last and last.digest == content.digest:
                return last
            if last and last.is_held(now):
                raise BeingSent(
                    f"{last.idempotency_key} is being sent and its content has changed since.",
                    f"Try again after {last.lease_until:%Y-%m-%d %H:%M:%S} UTC.",
                )
            if last and last.left_behind:
                last = self._change(con, last, last.left_behind, None, f"the content changed; r{last.revision + 1} follows")
                earlier[-1] = last
            return self._insert(con, content, next_revision(earlier, content))

    def claim(
        self, delivery: Delivery, claim_id: str, channel: str, contact: str, *, lease: float, may_repeat: bool
    ) -> Delivery:
        """Claim the delivery for `lease` seconds under a fresh claim_id; committed before anything is sent.

        A claim whose lease has run out is taken over where the channel `may_repeat` a key; otherwise it becomes in_doubt.

        Returns:
            The delivery as it is now; it may be sent only if it carries this claim_id.
        """
        with self._transaction(delivery.week) as con:
            now = self.clock()
            row = _one(con, delivery.idempotency_key)
            is_waiting = row.lease_until is not None and row.lease_until > now
            if row.state not in (State.PROPOSED, State.CLAIMED) or is_waiting:
                return row
            unknown = row.state == State.CLAIMED or row.may_be_received
            if unknown and not may_repeat:
                return self._change(con, row, State.IN_DOUBT, None, "the worker ended without an outcome")
            claim = {
                "claim_id": claim_id,
                "claimed_at": now,
                "lease_until": now + timedelta(seconds=lease),
                "attempts": row.attempts + 1,
                "may_be_received": unknown,
                "channel": channel,
                "contact": contact,
            }
            return self._change(con, row, State.CLAIMED, None, f"sending by {channel}", claim)

    def record(
        self, claimed: Delivery, state: State, detail: str, *, receipt: Mapping[str, Any] | None = None, wait: float = 0.0
    ) -> Delivery:
        """Record the outcome of a claim: a receipt always counts, anything else only while the claim is still ours.

        Args:
            claimed: The delivery as claim() returned it.
            state: delivered, failed, in_doubt; proposed (not taken, may be sent again) or claimed (outcome unknown, the key
                may be repeated), both after `wait` seconds.
            detail: What the partner said; never a secret.
            receipt: The partner's proof.
            wait: Seconds before the key may be tried again.
        """
        with self._transaction(claimed.week) as con:
            row = _one(con, claimed.idempotency_key)
            now = self.clock()
            is_ours = row.claim_id == claimed.claim_id and row.state in (State.CLAIMED, State.IN_DOUBT)
            if row.state == State.DELIVERED or not (is_ours or state == State.DELIVERED):
                return row
            values: dict[str, Any] = {"lease_until": now + timedelta(seconds=wait)}
            if state in (State.CLAIMED, State.IN_DOUBT):
                values["may_be_received"] = True
            if state == State.DELIVERED:
                values = {"lease_until": None, "receipt": dict(receipt or {}), "delivered_at": now}
            return self._change(con, row, state, None, detail[:SHOWN], values)

    # What a person does

    def check(self, action: str, week: str, revision: int | None = None) -> Delivery:
        """The delivery that the action would change: the week's last revision unless told otherwise.

        Raises:
            NotPossible: There is none, or its state does not allow the action.
        """
        with self._transaction() as con:
            return self._changeable(con, action, week, revision)

    def act(self, action: str, week: str, who: str, reason: str, revision: int | None = None) -> Delivery:
        """Apply a person's action: approve, reject, retry, resolve-delivered or resolve-not-delivered.

        Raises:
            NotPossible: There is no such delivery, or its state does not allow the action.
        """
        with self._transaction(week) as con:
            row = self._changeable(con, action, week, revision)
            now = self.clock()
            is_last = _history(con, row.export, week)[-1].revision == row.revision
            state = ACTIONS[action].to if is_last else ACTIONS[action].to_when_superseded
            values: dict[str, Any] = {"lease_until": None, "released_at": now}
            if state == State.DELIVERED:
                values |= {"delivered_at": now, "receipt": {"confirmed_by": who, "reason": reason}}
            if action == "resolve-not-delivered":
                values["may_be_received"] = False
            return self._change(con, row, state, who, f"{action}: {reason}", values)

    def _changeable(self, con: sa.Connection, action: str, week: str, revision: int | None) -> Delivery:
        found = _history(con, "finance_export", week)
        if revision is not None:
            found = [row for row in found if row.revision == revision]
        if not found:
            asked = f"revision {revision} of {week}" if revision else week
            raise NotPossible(f"There is no delivery of {asked}.", "See `orders deliveries list`.")
        row = found[-1]
        allowed = ACTIONS[action].allowed
        if row.state not in allowed or row.is_held(self.clock()):
            raise NotPossible(
                f"{row.idempotency_key} is {row.state}; {action} needs {' or '.join(allowed)}"
                + (" and no worker sending it." if row.state in allowed else "."),
                f"orders deliveries show {week}",
            )
        return row

    # Inside a transaction

    def _insert(self, con: sa.Connection, content: Content, revision: tuple[int, State, str | None]) -> Delivery:
        number, state, supersedes = revision
        key = key_of(content.export, content.week, number, content.digest)
        own = {"idempotency_key": key, "revision": number, "state": state, "supersedes": supersedes}
        fresh = {"attempts": 0, "may_be_received": False, "opened_at": self.clock()}
        con.execute(sa.insert(DELIVERIES).values(**vars(content), **own, **fresh))
        return self._change(con, _one(con, key), state, None, f"supersedes {supersedes}" if supersedes else None)

    def _change(
        self,
        con: sa.Connection,
        row: Delivery,
        state: State,
        who: str | None,
        detail: str | None,
        values: Mapping[str, Any] | None = None,
    ) -> Delivery:
        key = row.idempotency_key
        new = {**(values or {}), "state": state, "detail": detail}
        con.execute(sa.update(DELIVERIES).where(DELIVERIES.c.idempotency_key == key).values(**new))
        made = _one(con, key)
        con.execute(
            sa.insert(TRANSITIONS).values(
                idempotency_key=key, state=state, attempt=made.attempts, who=who, detail=detail, recorded_at=self.clock()
            )
        )
        return made

    @contextmanager
    def _transaction(self, week: str | None = None) -> Iterator[sa.Connection]:
        """One transaction; with a week, the only one that changes this week: SQLite by BEGIN IMMEDIATE, Postgres by a lock."""
        try:
            if not self._prepared:
                with self._engine.begin() as con:
                    lock(con, "schema")
                    METADATA.create_all(con)
                self._prepared = True
            with self._engine.begin() as con:
                if week:
                    lock(con, week)
                yield con
        except sa.exc.SQLAlchemyError as error:
            reason = str(getattr(error, "orig", None) or error).splitlines()[0]
            raise LedgerUnavailable(
                f"The ledger {self.url.render_as_string(hide_password=True)} cannot be used: {reason}.",
                "Check ORDERS_LEDGER_URL and that the database can be reached and written.",
            ) from None


def _history(con: sa.Connection, export: str, week: str) -> list[Delivery]:
    return _fetch(con, sa.select(DELIVERIES).where(DELIVERIES.c.export == export, DELIVERIES.c.week == week))


def _one(con: sa.Connection, key: str) -> Delivery:
    (row,) = _fetch(con, sa.select(DELIVERIES).where(DELIVERIES.c.idempotency_key == key))
    return row


def _fetch(con: sa.Connection, query: sa.Select[Any]) -> list[Delivery]:
    ordered = query.order_by(DELIVERIES.c.export, DELIVERIES.c.week, DELIVERIES.c.revision)
    return [Delivery(**{**row, "state": State(row["state"])}) for row in con.execute(ordered).mappings()]
