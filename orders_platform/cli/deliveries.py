"""orders deliveries. Belongs here: listing deliveries and a person's decisions on them. Not here: sending (delivery/)."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from orders_platform.calendar import monday, parse_interval
from orders_platform.cli.output import console, json_option, print_json, print_table
from orders_platform.cli.world import reason_option, who_option
from orders_platform.errors import OrdersError
from orders_platform.settings import settings

if TYPE_CHECKING:
    from orders_platform.delivery.difference import LineChange
    from orders_platform.delivery.ledger import Ledger
    from orders_platform.delivery.states import Content, Delivery

SHOWN = 40
SEND = "The sensor sends it; without the daemon: dagster asset materialize --select finance_delivery --partition {week}"

revision_option = click.option("--revision", type=click.IntRange(1), help="The revision that is meant; default the last.")


@click.group()
def deliveries() -> None:
    """What was sent to the partner, what waits, and a person's decisions on it.

    WEEK is the Monday of an ISO week, or any day in it.

    \b
    orders deliveries list
    orders deliveries show 2026-01-05
    orders deliveries approve 2026-01-05 --reason "late refunds, agreed with finance"
    """


def _ledger() -> "Ledger":
    from orders_platform.delivery.ledger import Ledger

    return Ledger(settings().ledger_url)


def _week(_context: click.Context, _option: click.Parameter, text: str) -> str:
    return monday(parse_interval(text)).isoformat()


week_argument = click.argument("week", callback=_week)


@deliveries.command(name="list")
@click.option("--state", metavar="STATE", default="", help="Only this state, such as waiting or in_doubt.")
@json_option
def list_deliveries(state: str, as_json: bool) -> None:
    """Every revision of every week, and for weeks that were not sent yet what they wait for."""
    from orders_platform.delivery.states import MEANING

    ledger = _ledger()
    rows = [_row(row) for row in ledger.all()]
    rows += _not_opened({row["week"] for row in rows})
    rows = sorted((row for row in rows if not state or row["state"] == state), key=lambda row: (row["week"], row["revision"]))
    if as_json:
        print_json(rows)
        return
    if not rows:
        console().print("There is nothing to deliver yet.")
        return
    columns = ("week", "revision", "state", "attempts", "channel", "delivered_at", "detail")
    print_table("deliveries (times in UTC)", columns, [[row[name] for name in columns] for row in rows])
    for name in dict.fromkeys(row["state"] for row in rows):
        if name in MEANING:
            console().print(f"{name}: {MEANING[name]}")


@deliveries.command()
@week_argument
@json_option
def show(week: str, as_json: bool) -> None:
    """One week: its revisions with everything that happened to them, and what the last would change at the partner."""
    ledger = _ledger()
    history = ledger.history(week)
    if not history:
        why = next((found["detail"] for found in _not_opened(set(), week)), "the week has not ended")
        raise OrdersError(f"There is no delivery of {week}: {why}.", "See orders deliveries list.")
    changes = {row.revision: _changes(row, history) for row in history}
    lines = {row.revision: ledger.transitions(row.idempotency_key) for row in history}
    if as_json:
        print_json(
            {
                **_row(row),
                "received_by": row.contact if row.may_be_there else None,
                "history": [vars(line) for line in lines[row.revision]],
                "difference": None if changes[row.revision] is None else [vars(c) for c in changes[row.revision] or ()],
            }
            for row in history
        )
        return
    for row in history:
        columns = ("recorded_at", "state", "attempt", "who", "detail")
        title = f"r{row.revision} {row.state}  {row.idempotency_key}"
        print_table(title, columns, [[getattr(line, name) for name in columns] for line in lines[row.revision]])
        if row.may_be_there:
            at = f" at {row.delivered_at:%Y-%m-%d %H:%M} UTC" if row.delivered_at else ", perhaps"
            console().print(f"received by {row.channel}{f' ({row.contact})' if row.contact else ''}{at}")
        if row.supersedes:
            _print_changes(row, changes[row.revision] or [])


def _print_changes(row: "Delivery", changes: "list[LineChange]") -> None:
    out = console()
    sent = (row.supersedes or "").split("/")[2]
    if not changes:
        out.print(f"No line differs from {sent}, which the partner holds: reject it, there is nothing to send.")
        return
    out.print(f"{len(changes)} lines differ from {sent}:")
    for change in changes[:SHOWN]:
        out.print(f"  {change.text()}", markup=False)
    if len(changes) > SHOWN:
        out.print(f"  … and {len(changes) - SHOWN} more; --json has them all.")


def decision(name: str, meaning: str) -> Callable[[Callable[..., Any]], click.Command]:
    """What approve, reject, resolve and retry have in common."""

    def wrap(function: Callable[..., Any]) -> click.Command:
        for option in (json_option, who_option, reason_option, revision_option, week_argument):
            function = option(function)
        return deliveries.command(name=name, help=meaning)(function)

    return wrap


def _act(action: str, kind: str, week: str, revision: int | None, reason: str, who: str, as_json: bool) -> None:
    """Check, record the intervention, then act: what is refused leaves no record, what is done always has one."""
    from orders_platform.delivery.states import State
    from orders_platform.recovery.interventions import record, require_reason, whoami
    from orders_platform.warehouse.session import Warehouse

    require_reason(kind, f"the delivery of {week}", reason)
    ledger, name = _ledger(), whoami(who)
    row = ledger.check(action, week, revision)
    details = {"idempotency_key": row.idempotency_key, "action": action, "was": row.state}
    with Warehouse.from_settings(settings()).write(f"{kind} of a delivery") as con:
        record(con, kind, "finance_delivery", [week], name, reason, details)
    row = ledger.act(action, week, name, reason.strip(), row.revision)
    if as_json:
        print_json([_row(row)])
        return
    console().print(f"{row.idempotency_key} is {row.state} now.")
    if row.state == State.PROPOSED:
        console().print(SEND.format(week=week))


@decision("approve", "Let a correction be sent, once. Look at `orders deliveries show WEEK` first.")
def approve(week: str, revision: int | None, reason: str, who: str, as_json: bool) -> None:
    """Approve the week's waiting revision."""
    _act("approve", "approve", week, revision, reason, who, as_json)


@decision("reject", "Decide that a correction is never sent.")
def reject(week: str, revision: int | None, reason: str, who: str, as_json: bool) -> None:
    """Reject the week's waiting revision."""
    _act("reject", "reject", week, revision, reason, who, as_json)


@decision("retry", "Let a refused delivery, or one whose runs failed, be tried again under the same key.")
def retry(week: str, revision: int | None, reason: str, who: str, as_json: bool) -> None:
    """Retry the week's delivery; one whose runs all died before they opened it is opened now."""
    ledger = _ledger()
    content = None if ledger.history(week) else _content(week)
    if content:
        ledger.open(content)
    _act("retry", "retry", week, revision, reason, who, as_json)


@decision("resolve", "Say what became of a delivery in doubt, after asking the partner.")
@click.option("--delivered/--not-delivered", "is_delivered", default=None, help="The partner has it, or does not.")
def resolve(week: str, revision: int | None, reason: str, who: str, as_json: bool, is_delivered: bool | None) -> None:
    """Resolve the week's delivery that is in doubt."""
    if is_delivered is None:
        raise click.UsageError("Say --delivered or --not-delivered.")
    action = "resolve-delivered" if is_delivered else "resolve-not-delivered"
    _act(action, "resolve", week, revision, reason, who, as_json)


@deliveries.command(name="notify-list")
@week_argument
@json_option
def notify_list(week: str, as_json: bool) -> None:
    """Who received something else than what is published of the week now, and has to be told."""
    history = _ledger().history(week)
    content = _content(week)
    current = content.digest if content else history[-1].digest if history else ""
    last = history[-1] if history else None
    corrected = f"r{last.revision} {last.state}" if last and last.digest == current else "not opened yet"
    rows = [
        {
            "contact": row.contact or "",
            "channel": row.channel or "",
            "revision": row.revision,
            "received": "yes" if row.state == "delivered" else "perhaps",
            "received_at": row.delivered_at or row.claimed_at,
            "correction": corrected,
        }
        for row in history
        if row.may_be_there and row.digest != current
    ]
    if as_json:
        print_json(rows)
    elif rows:
        columns = ("contact", "channel", "revision", "received", "received_at", "correction")
        print_table(f"to be told about {week} (times in UTC)", columns, [tuple(row.values()) for row in rows])
        if not all(row["contact"] for row in rows):
            console().print("ORDERS_DELIVERY_CONTACT names the people behind a channel; it was not set for some of these.")
    else:
        console().print(f"Nobody received anything else of {week} than what is published now.")


def _row(delivery: "Delivery") -> dict[str, Any]:
    names = (
        "week", "revision", "state", "idempotency_key", "digest", "supersedes", "channel", "contact", "attempts", "opened_at",
        "claimed_at", "lease_until", "delivered_at", "receipt", "detail",
    )  # fmt: skip
    return {name: getattr(delivery, name) for name in names}


def _not_opened(opened: set[str], only: str = "") -> list[dict[str, Any]]:
    """Weeks that have ended and of which the ledger knows nothing, each with what it waits for."""
    from orders_platform.delivery.readiness import read_weeks
    from orders_platform.warehouse.session import Warehouse

    calendar = settings().calendar
    weeks = [week for week in calendar.weeks(datetime.now(UTC)) if week not in opened and only in ("", week)]
    with Warehouse.from_settings(settings()).read() as con:
        found = read_weeks(con, calendar, weeks)
    empty = dict.fromkeys(("idempotency_key", "digest", "supersedes", "channel", "contact", "delivered_at", "receipt"))
    return [
        {
            **empty,
            "week": week.week,
            "revision": 0,
            "state": "waits" if week.waits else "ready",
            "attempts": 0,
            "detail": "; ".join(week.waits) or "the sensor proposes it",
        }
        for week in found
    ]


def _content(week: str) -> "Content | None":
    from orders_platform.delivery.readiness import contents
    from orders_platform.warehouse.session import Warehouse

    with Warehouse.from_settings(settings()).read() as con:
        return contents(con, [week]).get(week)


def _changes(row: "Delivery", history: "list[Delivery]") -> "list[LineChange] | None":
    """What this revision changes against the one it supersedes; None when it supersedes nothing."""
    from orders_platform.delivery.deliver import parcel_of
    from orders_platform.delivery.difference import difference

    before = next((d for d in history if d.idempotency_key == row.supersedes), None)
    if before is None:
        return None
    old, new = (parcel_of(d, settings().exports_root) for d in (before, row))
    return difference(old.data, new.data, new.export_manifest["key"])
