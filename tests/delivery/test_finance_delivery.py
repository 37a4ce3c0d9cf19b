"""finance_delivery in Dagster: sent once, whatever is run again, deleted, reset or run twice."""

import json
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg
import pytest

from orders_platform.automation import finance_delivery_sensor as module
from orders_platform.automation.finance_delivery_sensor import TAG, finance_delivery_sensor
from orders_platform.definitions import defs
from orders_platform.delivery.ledger import Ledger
from orders_platform.delivery.states import State
from orders_platform.settings import settings
from tests import lakes
from tests.conftest import Workspace, failure_of
from tests.delivery.helpers import DAYS, WEEK, WEEKS, build, judge, publish_days, ready_week
from tests.delivery.partners import SECRET, WebhookPartner

DELIVERY = ("finance_delivery",)


@pytest.fixture
def partner(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebhookPartner]:
    """A webhook partner that the workspace delivers to."""
    made = WebhookPartner()
    for name, value in {
        "ORDERS_DELIVERY_URL": made.url,
        "ORDERS_WEBHOOK_SECRET": SECRET,
        "ORDERS_DELIVERY_BACKOFF_SECONDS": "0.01",
        "ORDERS_DELIVERY_CONTACT": "finance@partner.example",
    }.items():
        monkeypatch.setenv(name, value)
    settings.cache_clear()
    yield made
    made.close()


def ledger() -> Ledger:
    return Ledger(settings().ledger_url)


def states(week: str = WEEK) -> list[State]:
    return [d.state for d in ledger().history(week)]


def tick(
    workspace: Workspace, sensor: dg.SensorDefinition = finance_delivery_sensor, cursor: str | None = None
) -> list[dg.RunRequest]:
    context = dg.build_sensor_context(workspace.instance, cursor=cursor, definitions=defs)
    found = sensor(context)
    return list(found.run_requests or []) if isinstance(found, dg.SensorResult) else []


def skip_reason(workspace: Workspace) -> str:
    found = finance_delivery_sensor(dg.build_sensor_context(workspace.instance, definitions=defs))
    assert isinstance(found, dg.SkipReason)
    return found.skip_message or ""


def launch(workspace: Workspace, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
    """Run what the sensor asked for, with its tags."""
    job = defs.resolve_job_def("deliver_finance_export")
    return job.execute_in_process(
        instance=workspace.instance, partition_key=request.partition_key, tags=request.tags, raise_on_error=False
    )


@lakes.both_engines
def test_a_ready_week_is_proposed_sent_once_and_then_left_alone(workspace: Workspace, partner: WebhookPartner) -> None:
    made = ready_week(workspace)
    (request,) = tick(workspace)
    assert (request.partition_key, request.run_key) == (WEEK, None)
    assert request.tags[TAG] == f"finance_export/{WEEK}/r1/{made.digest}"
    result = launch(workspace, request)
    assert result.success
    (event,) = result.asset_materializations_for_node("finance_delivery")
    assert event.metadata["idempotency_key"].value == request.tags[TAG]
    assert tick(workspace) == []
    assert partner.requests == {request.tags[TAG]: 1}
    body = partner.bodies[request.tags[TAG]]
    assert (body["supersedes"], body["sha256"], body["csv"].count("\n")) == (None, made.digest, 15)


def test_each_waiting_week_says_what_it_waits_for(workspace: Workspace, partner: WebhookPartner) -> None:
    publish_days(workspace, DAYS[:6])
    assert skip_reason(workspace).splitlines()[0] == (
        "2026-01-05: revenue_daily 2026-01-11 has not been published; "
        "revenue_daily 2026-01-05...2026-01-10 has not been reconciled yet; finance_export 2026-01-05 has not been published"
    )
    ready_week(workspace)
    publish_days(workspace, DAYS[2:3], "20.00")
    assert f"{WEEK}: revenue_daily 2026-01-07 has not been reconciled yet; finance_export {WEEK} is stale" in skip_reason(
        workspace
    )
    judge(workspace, DAYS[2], passed=False)
    assert f"{WEEK}: revenue_daily 2026-01-07 failed its check reconciles" in skip_reason(workspace)
    judge(workspace, DAYS[2])
    build(workspace)
    workspace.tamper(
        "insert into platform.quarantines values ('revenue_daily', '2026-01-08', 1, true, 'ann', 'double refunds', uuid(), ?)",
        datetime(2026, 1, 12),
    )
    assert f"{WEEK}: revenue_daily 2026-01-08 is quarantined by ann" in skip_reason(workspace)


def test_an_export_that_nobody_has_reconciled_is_not_sent(workspace: Workspace, partner: WebhookPartner) -> None:
    ready_week(workspace)
    workspace.tamper("delete from platform.verdicts where asset = 'finance_export'")
    assert f"finance_export {WEEK} has not been reconciled yet" in skip_reason(workspace)
    assert "It waits: finance_export 2026-01-05 has not been reconciled yet" in failure_of(
        workspace.materialize(WEEK, assets=DELIVERY), "finance_delivery"
    )
    assert not partner.requests and states() == []


def test_the_whole_graph_run_again_to_be_safe_sends_nothing_again(workspace: Workspace, partner: WebhookPartner) -> None:
    for _ in range(2):
        publish_days(workspace)
        judge(workspace)
        assert workspace.materialize(WEEK, assets=("finance_export", "finance_delivery")).success
    result = workspace.materialize(WEEK, assets=DELIVERY)
    (event,) = result.asset_materializations_for_node("finance_delivery")
    assert event.metadata["delivered_at"].value
    assert list(partner.requests.values()) == [1] and states() == [State.DELIVERED]


def test_run_record_deleted_sensor_renamed_cursor_reset_no_second_delivery(
    workspace: Workspace, partner: WebhookPartner
) -> None:
    ready_week(workspace)
    (request,) = tick(workspace)
    workspace.instance.delete_run(launch(workspace, request).run_id)
    renamed = dg.SensorDefinition(
        name="another_name",
        job=defs.resolve_job_def("deliver_finance_export"),
        evaluation_fn=lambda context: finance_delivery_sensor(context),
    )
    assert tick(workspace, renamed, cursor="") == [] == tick(workspace, cursor="reset")
    assert launch(workspace, request).success
    assert list(partner.requests.values()) == [1]


def test_two_sensors_propose_at_once_and_two_runs_send_once(workspace: Workspace, partner: WebhookPartner) -> None:
    ready_week(workspace)
    requests = tick(workspace) + tick(workspace)
    assert len(requests) == 2
    assert all(launch(workspace, request).success for request in requests)
    assert list(partner.requests.values()) == [1]


def test_a_run_under_way_keeps_the_week_from_being_proposed_until_it_must_be_dead(
    workspace: Workspace, partner: WebhookPartner, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready_week(workspace)
    (request,) = tick(workspace)
    job = defs.resolve_job_def("deliver_finance_export")
    run = workspace.instance.create_run_for_job(job, tags=request.tags, status=dg.DagsterRunStatus.STARTED)
    assert tick(workspace) == []
    assert "a run is under way" in skip_reason(workspace)
    monkeypatch.setattr(module, "DELIVERY_LIMIT_SECONDS", 0)
    assert [again.tags for again in tick(workspace)] == [request.tags]
    workspace.instance.report_run_failed(run)
    assert [again.tags for again in tick(workspace)] == [request.tags]


def test_a_delivery_run_that_failed_is_proposed_again_until_a_person_has_to_look(
    workspace: Workspace, partner: WebhookPartner
) -> None:
    ready_week(workspace)
    for _ in range(3):
        partner.script = [503] * 5
        (request,) = tick(workspace)
        assert not launch(workspace, request).success
        later(workspace)
    assert tick(workspace) == []
    assert f"{WEEK}: 3 runs failed; mend the cause, then orders deliveries retry {WEEK}" in skip_reason(workspace)
    ledger().act("retry", WEEK, "ann", "the partner is up again")
    (request,) = tick(workspace)
    assert launch(workspace, request).success
    assert partner.copies().total() == 1 and states() == [State.DELIVERED]


def later(workspace: Workspace) -> None:
    """Let the wait that the last attempt left behind pass."""
    with sqlite3.connect(workspace.home / "ledger.db") as con:
        con.execute("update deliveries set lease_until = '2026-01-01 00:00:00'")
    con.close()


def test_a_correction_waits_is_approved_and_sent_once_naming_what_it_supersedes(
    workspace: Workspace, partner: WebhookPartner
) -> None:
    ready_week(workspace)
    launch(workspace, tick(workspace)[0])
    first = ledger().history(WEEK)[0]
    ready_week(workspace, revenue_of_gb="21.00")
    (request,) = tick(workspace)
    result = launch(workspace, request)
    assert result.success and not result.asset_materializations_for_node("finance_delivery")
    assert states() == [State.DELIVERED, State.WAITING]
    assert f"{WEEK}: r2 waits for approval: orders deliveries show {WEEK}" in skip_reason(workspace)
    ledger().act("approve", WEEK, "ann", "late refunds")
    launch(workspace, tick(workspace)[0])
    assert states() == [State.DELIVERED, State.DELIVERED] and tick(workspace) == []
    assert partner.bodies[request.tags[TAG]]["supersedes"] == first.idempotency_key
    assert sorted(partner.requests.values()) == [1, 1]


def test_a_rejected_correction_is_never_sent(workspace: Workspace, partner: WebhookPartner) -> None:
    ready_week(workspace)
    launch(workspace, tick(workspace)[0])
    ready_week(workspace, revenue_of_gb="21.00")
    launch(workspace, tick(workspace)[0])
    ledger().act("reject", WEEK, "ann", "not material")
    assert tick(workspace) == []
    assert workspace.materialize(WEEK, assets=DELIVERY).success
    assert partner.copies().total() == 1


def test_a_refusal_waits_for_a_person_and_no_secret_is_shown(
    workspace: Workspace, partner: WebhookPartner, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ORDERS_WEBHOOK_SECRET", "the-wrong-secret")
    settings.cache_clear()
    ready_week(workspace)
    result = launch(workspace, tick(workspace)[0])
    text = failure_of(result, "finance_delivery")
    assert "answered 401: it does not accept the signature; compare ORDERS_WEBHOOK_SECRET" in text
    assert f"{WEEK}: r1 was refused" in skip_reason(workspace)
    rows = json.dumps([vars(d) for d in ledger().all()], default=str)
    events = "\n".join(str(e) for e in workspace.instance.all_logs(result.run_id))
    out, err = capfd.readouterr()
    for shown in (text, rows, events, out, err, repr(settings()), skip_reason(workspace)):
        assert "the-wrong-secret" not in shown and "in-the-url" not in shown


def test_a_run_that_was_cancelled_meanwhile_sends_no_more(workspace: Workspace, partner: WebhookPartner) -> None:
    ready_week(workspace)
    (request,) = tick(workspace)

    def cancel() -> int:
        for run in workspace.instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])):
            workspace.instance.report_run_canceled(run)
        return 503

    partner.choose = cancel
    launch(workspace, request)
    assert list(partner.requests.values()) == [1] and states() == [State.PROPOSED]


def test_no_job_schedule_or_sensor_but_its_own_selects_the_delivery() -> None:
    repository = defs.get_repository_def()
    key = dg.AssetKey("finance_delivery")
    jobs = {job.name for job in repository.get_all_jobs() if key in job.asset_layer.selected_asset_keys}
    assert jobs - {"__ASSET_JOB"} == {"deliver_finance_export"}
    assert not any(schedule.job_name == "deliver_finance_export" for schedule in repository.schedule_defs)
    assert [s.name for s in repository.sensor_defs if "deliver_finance_export" in {t.job_name for t in s.targets}] == [
        "finance_delivery_sensor"
    ]
    graph = repository.asset_graph
    assert graph.get(key).child_keys == set() and graph.get(key).automation_condition is None


def test_weeks_of_the_calendar_that_have_not_ended_are_not_asked_for(workspace: Workspace, partner: WebhookPartner) -> None:
    decision = module.decision_now(workspace.instance, datetime(2026, 1, 21, tzinfo=UTC))
    assert list(decision.waiting) == list(WEEKS[:2])
