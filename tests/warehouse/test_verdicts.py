"""Verdicts: appended, numbered by attempt, and only the latest of each check counts."""

from orders_platform.warehouse import publications, verdicts
from orders_platform.warehouse.publications import Publication
from orders_platform.warehouse.verdicts import Finding, Verdict
from tests.conftest import Workspace

MADE = Publication("fct_orders", "2026-01-05", "run", "code", "d", 5)


def judge(workspace: Workspace, *rows: Verdict) -> None:
    with workspace.warehouse.write("a test") as con:
        verdicts.record(con, rows, "run")


def verdict(passed: bool, *, check: str = "reconciles", blocking: bool = True) -> Verdict:
    return Verdict(MADE.publication_id, "fct_orders", "2026-01-05", check, passed, blocking)


def test_each_verdict_is_the_next_attempt_of_its_publication_and_check(workspace: Workspace) -> None:
    judge(workspace, verdict(True), verdict(True, check="usual", blocking=False))
    judge(workspace, verdict(False))
    rows = workspace.query("select check_name, attempt, passed, run_id from platform.verdicts order by all")
    assert rows == [("reconciles", 1, True, "run"), ("reconciles", 2, False, "run"), ("usual", 1, True, "run")]


def test_only_the_latest_blocking_verdict_fails_a_publication(workspace: Workspace) -> None:
    judge(workspace, verdict(False), verdict(False, check="usual", blocking=False))
    assert workspace.query("select check_name from platform.failing") == [("reconciles",)]
    judge(workspace, verdict(True))
    assert workspace.query("from platform.failing") == []


def test_recording_nothing_writes_nothing(workspace: Workspace) -> None:
    judge(workspace)
    assert workspace.query("from platform.verdicts") == []


def test_a_check_is_recorded_as_its_verdict_and_its_findings_of_which_only_the_verdict_blocks(workspace: Workspace) -> None:
    with workspace.warehouse.write("a test") as con:
        publications.append(con, [MADE])
    findings = [
        Finding("fct_orders", "2026-01-05", "content", True, "5 rows", "5 rows"),
        Finding("fct_orders", "2026-01-05", "identity", False, "10.00", "9.00", "-1.00"),
        Finding("companion", "2026-01-05", "content", True, "1", "1"),
    ]
    judge(workspace, *verdicts.verdicts_of(MADE, "reconciles", findings, blocking=True))
    rows = workspace.query("select check_name, passed, blocking, left_value, right_value, difference from platform.verdicts")
    assert rows == [
        ("reconciles", False, True, "10.00", "9.00", "-1.00"),
        ("reconciles/content", True, False, "5 rows", "5 rows", ""),
        ("reconciles/identity", False, False, "10.00", "9.00", "-1.00"),
        ("reconciles/companion.content", True, False, "1", "1", ""),
    ]
