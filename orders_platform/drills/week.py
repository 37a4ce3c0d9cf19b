"""One week that goes to a partner. Belongs here: what the drills of deliveries share. Not here: any one drill."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from orders_platform.drills.partner import SECRET, WebhookPartner
from orders_platform.drills.usual import UsualBuild
from orders_platform.drills.workspace import DAILY, Source, Workspace
from orders_platform.settings import settings

WEEK = "2026-01-19"
DAYS = tuple(f"2026-01-{day}" for day in range(19, 26))


@contextmanager
def partner(source: Source, *, honours: bool = True) -> Iterator[WebhookPartner]:
    """A real HTTP server on loopback that books every file it takes; `honours`: it knows a key again."""
    made = WebhookPartner("" if isinstance(source, UsualBuild) else SECRET, honours=honours)
    if isinstance(source, UsualBuild):
        source.partner = made.url
    os.environ |= {
        "ORDERS_DELIVERY_URL": made.url,
        "ORDERS_WEBHOOK_SECRET": SECRET,
        "ORDERS_DELIVERY_MAY_REPEAT": "" if honours else "no",
    }
    settings.cache_clear()
    try:
        yield made
    finally:
        made.close()


def sent(workspace: Workspace) -> dg.ExecuteInProcessResult:
    """The week's days, its file and its delivery, as the schedules and the sensor run them."""
    workspace.materialize(DAYS[0], DAYS[-1], assets=DAILY)
    return deliver(workspace)


def deliver(workspace: Workspace) -> dg.ExecuteInProcessResult:
    """The week's file, and its delivery."""
    workspace.materialize(WEEK, assets=("finance_export",))
    return workspace.materialize(WEEK, assets=("finance_delivery",))
