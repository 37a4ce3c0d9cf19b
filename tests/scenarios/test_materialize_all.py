"""Materialize all, twice, as the UI does: everything is built again, nothing is sent again."""

import json
from typing import Any

import pytest

from orders_platform.definitions import defs
from orders_platform.delivery.ledger import Ledger
from orders_platform.delivery.states import State
from orders_platform.settings import settings
from tests.conftest import Workspace
from tests.delivery.helpers import CALENDAR, WEEKS
from tests.delivery.partners import SECRET, WebhookPartner
from tests.scenarios.test_ui_backfill import BACKFILL, STATUS, ask, dagster_dev, until

DAYS = [day for week in WEEKS for day in CALENDAR.days_of(week)]
START = """
mutation ($sensor: SensorSelector!) { startSensor(sensorSelector: $sensor) { __typename ... on PythonError { message } } }
"""


@pytest.mark.proof
def test_materialize_all_twice_and_the_sensor_running_send_each_week_once(workspace: Workspace) -> None:
    partner = WebhookPartner()
    workspace.put_days(*DAYS)
    everything = [{"path": list(key.path)} for key in sorted(defs.resolve_asset_graph().get_all_asset_keys())]
    assert {"path": ["finance_delivery"]} in everything
    environ = {"ORDERS_DELIVERY_URL": partner.url, "ORDERS_WEBHOOK_SECRET": SECRET}
    try:
        with dagster_dev(workspace, **environ) as url:
            until(lambda: ask(url, "{ version }"))
            found = ask(url, "{ repositoriesOrError { ... on RepositoryConnection { nodes { name location { name } } } } }")
            (node,) = found["repositoriesOrError"]["nodes"]
            sensor = {
                "repositoryName": node["name"], "repositoryLocationName": node["location"]["name"],
                "sensorName": "finance_delivery_sensor",
            }  # fmt: skip
            assert ask(url, START, sensor=sensor)["startSensor"]["__typename"] == "Sensor"
            for _ in range(2):
                materialize_all(url, everything)
        copies = partner.copies()
        assert (len(copies), set(copies.values()), sum(partner.requests.values())) == (4, {1}, 4)
        deliveries = Ledger(settings().ledger_url).all()
        assert [(d.week, d.revision, d.state, d.attempts) for d in deliveries] == [(w, 1, State.DELIVERED, 1) for w in WEEKS]
        built = workspace.query(
            "select count(*), count(distinct digest) from platform.publications where asset = 'finance_export'"
        )
        assert built == [(8, 4)]
    finally:
        partner.close()


def materialize_all(url: str, everything: list[dict[str, Any]]) -> None:
    params = {"assetSelection": everything, "allPartitions": True, "fromFailure": False}
    answer = ask(url, BACKFILL, params=params)["launchPartitionBackfill"]
    assert answer["__typename"] == "LaunchBackfillSuccess", json.dumps(answer)
    ended = ("COMPLETED_SUCCESS", "COMPLETED_FAILED", "COMPLETED", "FAILED")
    status = until(
        lambda: (
            done if (done := ask(url, STATUS, id=answer["backfillId"])["partitionBackfillOrError"]["status"]) in ended else None
        ),
        400,
    )
    assert status == "COMPLETED_SUCCESS"
