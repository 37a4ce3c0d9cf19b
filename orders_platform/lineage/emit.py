"""Sending OpenLineage events. Belongs here: whether they are sent, where to, and that a run never fails or waits long for it.

Not here: what they say (events.py). Nothing is imported from the client unless lineage is asked for.
"""

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

from orders_platform.calendar import Calendar
from orders_platform.settings import settings
from orders_platform.warehouse.contract import TableContract
from orders_platform.warehouse.publications import Publication

log = logging.getLogger(__name__)

LIMIT_SECONDS = 30.0
"""Longest that one step spends on sending; what is left after it is dropped, with a warning."""

OWN = ("OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT", "OPENLINEAGE__TRANSPORT__TYPE")
"""Variables by which the client is told its transport itself (a file, Kafka, …)."""


def is_on(environ: Mapping[str, str] | None = None) -> bool:
    """Whether a receiver is configured: OPENLINEAGE_URL, or a transport in the client's own variables.

    >>> is_on({}), is_on({"OPENLINEAGE__TRANSPORT__TYPE": "file"})
    (False, True)
    >>> is_on({"OPENLINEAGE_URL": "http://localhost:5000", "OPENLINEAGE_DISABLED": "true"})
    False
    """
    found = os.environ if environ is None else environ
    if found.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return False
    url = settings().openlineage_url if environ is None else found.get("OPENLINEAGE_URL", "")
    return bool(url) or any(found.get(name) for name in OWN)


@dataclass(frozen=True)
class Step:
    """Who speaks: the job that is told of and the run it is part of.

    Attributes:
        namespace: Of jobs and datasets.
        asset: The job's name.
        run_id: The orchestrator's run.
        run_job: Name of that run's job.
        engine: Name and version of the orchestrator.
        contracts: Of the asset's table, which comes first, and of its companions.
    """

    namespace: str
    asset: str
    run_id: str
    run_job: str
    engine: tuple[str, str]
    calendar: Calendar
    contracts: Mapping[str, TableContract]
    description: str = ""
    owners: Sequence[str] = field(default_factory=tuple)


@contextmanager
def told(step: Callable[[], Step], intervals: Sequence[str]) -> Iterator[list[Publication]]:
    """Tell what the block published (the list it fills), and that it failed for the other intervals where it raises.

    Args:
        step: Who speaks; asked only where lineage is on.
        intervals: What the block is to publish.
    """
    made: list[Publication] = []
    if not is_on():
        yield made
        return
    try:
        yield made
    except Exception as error:
        send(step, made, [i for i in intervals if i not in {p.interval for p in made}], str(error))
        raise
    send(step, made, [], "")


def send(step: Callable[[], Step], made: Sequence[Publication], lost: Sequence[str], error: str) -> None:
    """Send the events; whatever goes wrong is one warning, without addresses, which may carry a secret."""
    sent, total = 0, len([p for p in made if p.companion_of is None]) + len(lost)
    deadline = time.monotonic() + LIMIT_SECONDS
    try:
        from orders_platform.lineage import events

        teller, emitter, now = step(), client(), datetime.now(UTC)
        with_it: dict[str, list[Publication]] = {}
        for publication in made:
            if publication.companion_of:
                with_it.setdefault(publication.interval, []).append(publication)
        stories = [events.completed(teller, p, with_it.get(p.interval, ())) for p in made if p.companion_of is None] + [
            events.failed(teller, interval, error, now) for interval in lost
        ]
        for story in stories:
            if time.monotonic() > deadline:
                raise TimeoutError(f"more than {LIMIT_SECONDS:g} s")
            for event in story:
                emitter.emit(event)
            sent += 1
    except Exception as problem:
        text = str(problem) if isinstance(problem, TimeoutError | ImportError) else type(problem).__name__
        log.warning("OpenLineage: %s of %s intervals were told; the others were not (%s).", sent, total, text)


@cache
def client() -> Any:
    """The official client; with OPENLINEAGE_URL alone one retry and short time-outs, since a run waits for it."""
    from openlineage.client import OpenLineageClient
    from openlineage.client.transport.http import HttpConfig, HttpTransport

    values = settings()
    if not values.openlineage_url or any(os.environ.get(name) for name in OWN):
        return OpenLineageClient()
    config: dict[str, Any] = {"url": values.openlineage_url, "timeout": 3.0, "retry": {"total": 1, "connect": 1, "read": 1}}
    if values.openlineage_api_key:
        config["auth"] = {"type": "api_key", "apiKey": values.openlineage_api_key}
    return OpenLineageClient(transport=HttpTransport(HttpConfig.from_dict(config)))
