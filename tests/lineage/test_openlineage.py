"""OpenLineage: what a real receiver on loopback is sent, and that no receiver can fail or hold up a run."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from orders_platform.lineage import emit
from orders_platform.settings import settings
from tests.conftest import PROJECT, Workspace, failure_of

DAYS = ("2026-01-05", "2026-01-06")
SPEC = Path(os.environ.get("OPENLINEAGE_SPEC") or PROJECT.parent / "shared" / "data" / "openlineage")


class Receiver:
    """A lineage receiver: keeps what it is sent; `answer` is the status it gives, `pause` how long it thinks first."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()
        self.answer, self.pause = 200, 0.0
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                time.sleep(receiver.pause)
                receiver.keys.add(self.headers.get("Authorization"))
                if receiver.answer == 200:
                    receiver.events.append(body)
                self.send_response(receiver.answer)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def of(self, asset: str, state: str = "COMPLETE") -> list[dict[str, Any]]:
        return [e for e in self.events if e["job"]["name"] == asset and e["eventType"] == state]


@pytest.fixture
def receiver(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    made = Receiver()
    monkeypatch.setenv("OPENLINEAGE_URL", made.url)
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "a-secret")
    settings.cache_clear()
    emit.client.cache_clear()
    yield made
    made.server.shutdown()
    made.server.server_close()
    emit.client.cache_clear()
    for name in [name for name in os.environ if name.startswith("OPENLINEAGE__")]:
        del os.environ[name]  # the client copies its URL there


def test_every_publication_is_told_with_its_interval_versions_rows_and_sums(workspace: Workspace, receiver: Receiver) -> None:
    workspace.put_days(*DAYS)
    assert workspace.materialize(*DAYS).success
    current = workspace.current()
    for asset in ("raw_orders", "stg_orders", "fct_orders", "revenue_daily"):
        assert len(receiver.of(asset, "START")) == len(receiver.of(asset)) == 2
        for event in receiver.of(asset):
            publication = next(p for p in current.values() if p.publication_id == event["run"]["runId"])
            assert publication.asset == asset
            nominal = event["run"]["facets"]["nominalTime"]
            assert nominal["nominalStartTime"] == f"{publication.interval}T00:00:00+00:00"
            assert nominal["nominalEndTime"] > nominal["nominalStartTime"]
            assert event["run"]["facets"]["parent"]["run"]["runId"] == publication.run_id
            output = event["outputs"][0]
            assert output["name"] == f"orders.{asset}"
            assert output["facets"]["version"]["datasetVersion"] == publication.publication_id
            assert output["outputFacets"]["outputStatistics"]["rowCount"] == publication.row_count
            told = output["outputFacets"]["orders_publication"]
            assert told["measures"] == {name: f"{value:f}" for name, value in publication.measures.items()}
            read = {i["name"]: i["facets"]["version"]["datasetVersion"] for i in event["inputs"]}
            assert read == {f"orders.{i.asset}": i.publication_id for i in publication.inputs}
    assert [o["name"] for o in receiver.of("stg_orders")[0]["outputs"]] == ["orders.stg_orders", "orders.stg_orders_rejected"]
    assert receiver.keys == {"Bearer a-secret"}


def test_a_window_of_days_is_one_input_with_all_its_versions(workspace: Workspace, receiver: Receiver) -> None:
    workspace.put_days(*DAYS)
    assert workspace.materialize(*DAYS).success
    assert workspace.materialize(DAYS[1], assets=("customer_features",)).success
    (event,) = receiver.of("customer_features")
    (read,) = event["inputs"]
    assert [p["interval"] for p in read["inputFacets"]["orders_publications"]["publications"]] == list(DAYS)
    assert "version" not in read["facets"]
    assert event["outputs"][0]["facets"]["columnLineage"]["fields"]["revenue"]["inputFields"][0]["field"] == "net_amount"


def test_a_failure_is_told_as_fail_with_its_message(workspace: Workspace, receiver: Receiver) -> None:
    workspace.put_days(*DAYS)
    assert not workspace.materialize(DAYS[0], assets=("fct_orders",)).success
    (event,) = receiver.of("fct_orders", "FAIL")
    assert "needs stg_orders 2026-01-05" in event["run"]["facets"]["errorMessage"]["message"]
    assert event["run"]["facets"]["nominalTime"]["nominalStartTime"] == "2026-01-05T00:00:00+00:00"
    assert [s["run"]["runId"] for s in receiver.of("fct_orders", "START")] == [event["run"]["runId"]]
    assert receiver.of("fct_orders") == []


@pytest.mark.parametrize("trouble", ["refuses", "hangs", "is away"])
def test_no_receiver_fails_or_holds_up_a_run(
    workspace: Workspace, receiver: Receiver, trouble: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away() -> None:
        receiver.server.shutdown()
        receiver.server.server_close()

    break_it: dict[str, Callable[[], None]] = {
        "refuses": lambda: setattr(receiver, "answer", 503),
        "hangs": lambda: setattr(receiver, "pause", 1.0),
        "is away": away,
    }
    break_it[trouble]()
    monkeypatch.setattr(emit, "LIMIT_SECONDS", 0.5)
    workspace.put_days(*DAYS)
    started = time.monotonic()
    result = workspace.materialize(*DAYS, assets=("raw_orders",))
    assert result.success, failure_of(result, "raw_orders")
    assert time.monotonic() - started < 20
    warnings = [r.getMessage() for r in caplog.records if "OpenLineage" in r.getMessage() and r.name == emit.__name__]
    assert len(warnings) == 1
    assert "of 2 intervals were told" in warnings[0]
    assert "127.0.0.1" not in warnings[0] and "a-secret" not in caplog.text


def test_it_is_off_unless_asked_for_and_then_costs_not_even_an_import(workspace: Workspace) -> None:
    workspace.put_days(DAYS[0])
    code = (
        "import sys, dagster as dg; from orders_platform.definitions import defs; "
        "job = defs.resolve_implicit_global_asset_job_def(); "
        "job.execute_in_process(partition_key='2026-01-05', asset_selection=[dg.AssetKey('raw_orders')]); "
        "print('imported:', 'openlineage' in sys.modules)"
    )
    assert "imported: False" in workspace.run("python", "-W", "ignore", "-c", code).stdout


def test_a_file_transport_is_enough(workspace: Workspace) -> None:
    workspace.put_days(DAYS[0])
    file = workspace.home / "lineage.json"
    transport = {"OPENLINEAGE__TRANSPORT__TYPE": "file", "OPENLINEAGE__TRANSPORT__LOG_FILE_PATH": str(file)}
    done = workspace.run(
        "dagster", "asset", "materialize", "--select", "raw_orders", "--partition", DAYS[0],
        OPENLINEAGE__TRANSPORT__APPEND="true", **transport,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    events = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(e["job"]["name"], e["eventType"]) for e in events] == [("raw_orders", "START"), ("raw_orders", "COMPLETE")]


def published_schema(url: str) -> Any:
    """The JSON schema an event names, from the folder OPENLINEAGE_SPEC: tests ask nothing of the network."""
    local = SPEC / url.split("/spec/")[1]
    if not local.is_file():
        pytest.skip(f"{url} is not in {SPEC}; set OPENLINEAGE_SPEC to a folder of the published schemas")
    return json.loads(local.read_text())


def test_events_are_valid_under_the_published_schema(workspace: Workspace, receiver: Receiver) -> None:
    from referencing import Registry, Resource

    workspace.put_days(*DAYS)
    assert workspace.materialize(*DAYS).success
    assert not workspace.materialize("2026-01-07", assets=("fct_orders",)).success
    registry = Registry(retrieve=lambda uri: Resource.from_contents(published_schema(uri)))  # type: ignore[call-arg]
    checked = set()
    for event in receiver.events:
        _validate(event, event["schemaURL"], registry)
        for facet in _facets(event):
            if facet["_schemaURL"].startswith("https://"):
                _validate(facet, facet["_schemaURL"], registry)
                checked.add(facet["_schemaURL"].rsplit("/", 1)[-1])
    assert {
        "NominalTimeRunFacet",
        "ErrorMessageRunFacet",
        "SchemaDatasetFacet",
        "OutputStatisticsOutputDatasetFacet",
    } <= checked


def _validate(found: Any, url: str, registry: Any) -> None:
    validator = jsonschema.Draft202012Validator({"$ref": url}, registry=registry, format_checker=jsonschema.FormatChecker())
    validator.validate(found)


def _facets(found: Any) -> Iterator[dict[str, Any]]:
    if isinstance(found, dict):
        if "_schemaURL" in found:
            yield found
        for value in found.values():
            yield from _facets(value)
    elif isinstance(found, list):
        for value in found:
            yield from _facets(value)
