"""finance_delivery: the week's file sent to the partner, once. Belongs here: the asset around delivery/. Nothing reads it."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import dagster as dg

from orders_platform.assets.finance_export import finance_export
from orders_platform.delivery.channels import channel_of
from orders_platform.delivery.deliver import NotDelivered, Patience, deliver, outcome
from orders_platform.delivery.ledger import Ledger
from orders_platform.delivery.readiness import contents, read_weeks
from orders_platform.delivery.states import Delivery, State
from orders_platform.errors import OrdersError
from orders_platform.partitions import WEEKLY
from orders_platform.settings import settings
from orders_platform.warehouse.io_managers import marked, require_active
from orders_platform.warehouse.publications import Pair
from orders_platform.warehouse.session import Warehouse


@dg.asset(
    partitions_def=WEEKLY,
    deps=[finance_export],
    group_name="delivery",
    owners=["team:finance"],
    output_required=False,
    tags={"external_effect": "true"},
)
def finance_delivery(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
    """Send the week's file under its idempotency key; one that was sent already is not sent again, however often this runs.

    Materialized only when the partner has the file. A correction waits for approval; nothing is retried by Dagster.
    """
    for week in context.partition_keys:
        try:
            fence = partial(require_active, context.instance, context.run.run_id, "finance_delivery")
            delivery = send(week, fence, partial(marked, context.instance))
            text = outcome(delivery)
        except OrdersError as error:
            metadata = {"remedy": error.remedy or "none"}
            raise dg.Failure(f"finance_delivery {week}: {error}", metadata=metadata, allow_retries=False) from None
        context.log.info(text)
        if delivery.state == State.DELIVERED:
            yield dg.MaterializeResult(metadata=describe(delivery))


def send(
    week: str,
    fence: Callable[[], None] = lambda: None,
    marked: Callable[[Any, Iterable[Pair]], list[Pair]] = lambda con, pairs: [],
) -> Delivery:
    """Deliver what is published of the week, if it is ready and the ledger lets us.

    Raises:
        NotDelivered: The week is not ready; names what it waits for.
    """
    values = settings()
    ledger = Ledger(values.ledger_url)
    last = next(reversed(ledger.history(week)), None)
    with Warehouse.from_settings(values).read() as con:
        content = contents(con, [week]).get(week)
        (ready,) = read_weeks(con, values.calendar, [week], marked)
    if content and last and last.digest == content.digest and last.state == State.DELIVERED:
        return last
    if content is None or ready.waits:
        raise NotDelivered(
            f"It waits: {'; '.join(ready.waits)}.", f"See orders status, then materialize finance_export {week}."
        )
    opened = ledger.open(content)
    if opened.state not in (State.PROPOSED, State.CLAIMED):
        return opened
    channel = channel_of(values)
    patience = Patience.from_settings(values)
    return deliver(ledger, channel, opened, values.exports_root, patience, values.delivery_contact, fence=fence)


def describe(delivery: Delivery) -> dict[str, str | int | dg.MetadataValue]:
    """What the UI shows of a delivery; never a secret."""
    return {
        "idempotency_key": delivery.idempotency_key,
        "revision": delivery.revision,
        "channel": delivery.channel or "",
        "delivered_at": f"{delivery.delivered_at} UTC",
        "supersedes": delivery.supersedes or "nothing",
        "receipt": dg.MetadataValue.json(dict(delivery.receipt or {})),
    }
