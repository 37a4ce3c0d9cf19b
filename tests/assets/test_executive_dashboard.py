"""The dashboard built over a real warehouse and opened in a real browser, with one day stale, one quarantined, one missing."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from playwright.sync_api import sync_playwright

from orders_platform.definitions import defs
from orders_platform.recovery import interventions
from tests.conftest import DAILY, Workspace

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium; on Debian: apt-get install chromium")
DAYS = [(date(2026, 1, 5) + timedelta(n)).isoformat() for n in range(15)]
STALE, HELD, MISSING = "2026-01-14", "2026-01-16", "2026-01-18"


@contextmanager
def browser() -> Iterator[Any]:
    """Opened after the page is built: Dagster and an open browser each want the thread's event loop."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


def build(workspace: Workspace) -> Path:
    job = defs.resolve_implicit_global_asset_job_def()
    assert job.execute_in_process(instance=workspace.instance, asset_selection=[dg.AssetKey("executive_dashboard")]).success
    return workspace.home / "dashboard" / "index.html"


def troubled(workspace: Workspace) -> None:
    workspace.put_days(*DAYS)
    assert workspace.materialize(DAYS[0], DAYS[-1], DAILY[:3]).success
    for first, last in ((DAYS[0], "2026-01-17"), ("2026-01-19", DAYS[-1])):
        assert workspace.materialize(first, last, ("revenue_daily",)).success
    workspace.sql_source("update orders set gross_amount = '99.00' where order_id = ?", f"{STALE}-1")
    assert workspace.materialize(STALE, assets=("raw_orders",)).success
    with workspace.warehouse.write("a test") as con:
        interventions.quarantine(con, [("fct_orders", HELD)], "ann", "wrong exchange rate")


@needs_chromium
def test_each_day_is_shown_as_what_it_is(workspace: Workspace) -> None:
    troubled(workspace)
    url = build(workspace).as_uri()
    with browser() as opened:
        page = opened.new_page()
        said: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(url)
        notable = page.locator("#notable tbody tr").all()
        found = {row.locator("th").inner_text(): row.locator("td").all_inner_texts()[:2] for row in notable}
        assert list(found) == [STALE, HELD, MISSING]
        assert found[STALE] == ["stale", f"its input fct_orders {STALE} is stale"]
        assert found[HELD][0] == "held" and "quarantined by ann" in found[HELD][1] and "wrong exchange rate" in found[HELD][1]
        assert found[MISSING] == ["missing", "never published"]
        rows = {
            row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in page.locator("#days tbody tr").all()
        }
        assert rows[HELD][2:] == rows[MISSING][2:] == ["—", "—", "—", "—"]
        assert rows[STALE][0] == "stale" and rows[STALE][3:] == ["1", *rows["2026-01-13"][4:]]  # the old number, named as old
        for interval, mark in ((STALE, ".old"), (HELD, ".band.held"), (MISSING, ".band.missing")):
            bars = page.locator(f"figure [data-interval='{interval}']")
            assert bars.count() == 3  # EUR, GBP, cancellations
            assert all(bars.nth(n).locator(mark).count() == 1 for n in range(2))
        assert page.locator("svg.chart .band").count() == 6
        assert "12 current, 1 stale, 1 held, 1 missing" in page.locator("h1 + p").inner_text()
        assert said == []
        assert asked == [url]


@needs_chromium
def test_it_can_be_read_on_a_phone_in_the_dark_by_a_screen_reader_and_in_print(workspace: Workspace) -> None:
    troubled(workspace)
    url = build(workspace).as_uri()
    with browser() as opened:
        phone = opened.new_context(viewport={"width": 360, "height": 740}, color_scheme="dark").new_page()
        phone.goto(url)
        assert phone.evaluate("document.documentElement.scrollWidth") == 360
        assert phone.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
        size = "parseFloat(getComputedStyle(e).fontSize) * e.ownerSVGElement.getBoundingClientRect().width / 360"
        assert phone.locator("svg.chart text:not(.name)").first.evaluate(f"e => {size}") > 8
        assert phone.locator("html").get_attribute("lang") == "en"
        images = phone.get_by_role("img").all()
        assert len(images) == 3
        tree = phone.locator("main").aria_snapshot()
        assert 'img "Revenue by day and country, EUR"' in tree and 'heading "Week on week"' in tree
        assert "rowheader" in tree and "columnheader" in tree
        described = phone.locator("svg.chart desc").first.text_content()
        assert f"{HELD} is held" in described and f"{MISSING} is missing" in described
        phone.emulate_media(media="print")
        assert phone.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert phone.evaluate("getComputedStyle(document.querySelector('svg.chart .grid')).stroke") == "rgb(201, 206, 214)"


def test_the_same_publications_give_the_same_bytes_and_the_page_is_replaced_in_one_step(workspace: Workspace) -> None:
    workspace.put_days(*DAYS[:2])
    assert "Nothing has been published yet" in build(workspace).read_text()
    assert workspace.materialize(DAYS[0], DAYS[1]).success
    file = build(workspace)
    with file.open() as reader:
        first = file.read_bytes()
        assert build(workspace).read_bytes() == first
        workspace.put_days("2026-01-07")
        assert workspace.materialize("2026-01-07").success
        assert build(workspace).read_bytes() != first
        assert reader.read().encode() == first  # who had it open still reads the old page, whole
    assert [path.name for path in file.parent.iterdir()] == ["index.html"]


def test_charts_and_counts_are_shown_in_the_ui(workspace: Workspace) -> None:
    workspace.put_days(*DAYS[:3])
    assert workspace.materialize(DAYS[0], DAYS[1]).success
    build(workspace)
    event = workspace.instance.get_latest_materialization_event(dg.AssetKey("executive_dashboard"))
    assert event is not None and event.asset_materialization is not None
    metadata = event.asset_materialization.metadata
    assert metadata["days current"].value == 2
    assert str(metadata["revenue EUR"].value).startswith("![revenue EUR](data:image/svg+xml;base64,")
