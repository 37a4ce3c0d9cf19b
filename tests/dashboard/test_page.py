"""The page and its charts, from facts made by hand: what is shown, and what is never shown."""

import re
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from orders_platform.dashboard import page
from orders_platform.dashboard.facts import Day, Facts, Line

AT = datetime(2026, 1, 20, 2, 0)


def day(number: int, revenue: str = "100.00", state: str = "current", country: str = "DE") -> Day:
    lines = (Line(country, "EUR", 10, 1, Decimal(revenue)), Line("GB", "GBP", 4, 0, Decimal("7.50")))
    shown = lines if state in ("current", "stale") else ()
    return Day(f"2026-01-{number:02d}", state, "" if state == "current" else "because", AT, f"id-{number}", shown)


def known(*days: Day) -> Facts:
    return Facts(days, "Europe/London")


def section(html: str, heading: str) -> str:
    found = re.search(rf"<h2>{heading}.*?(?=<h2>|</main>)", html, re.DOTALL)
    assert found, heading
    return found.group()


def test_equal_facts_give_equal_bytes() -> None:
    days = [day(n) for n in range(5, 19)]
    assert page.render(known(*days)) == page.render(known(*(replace(d) for d in days)))


def test_two_whole_weeks_are_compared_and_each_currency_stands_alone() -> None:
    html = page.render(known(*(day(n, "100.00" if n < 12 else "150.00") for n in range(5, 19))))
    headlines = section(html, "Last whole week")
    assert re.findall(r'class="big">([^<]*)', headlines) == ["1,050.00", "52.50"]
    assert "+50.0 % against 700.00 in the week of 2026-01-05" in headlines
    assert "Covers 2026-01-12...2026-01-18, published 2026-01-20 02:00 UTC." in headlines
    assert "DE</th><td>EUR</td>" in section(html, "Top movers")
    assert "GBP" not in section(html, "Top movers")  # nothing moved there


def test_a_week_with_a_day_that_cannot_be_read_has_no_sum_and_is_not_compared() -> None:
    days = [day(n, state="missing" if n == 14 else "current") for n in range(5, 19)]
    html = page.render(known(*days))
    assert "Last whole week: from 2026-01-05" in html
    row = re.search(r'<tr><th scope="row">2026-01-12</th><td>EUR</td>(.*?)</tr>', section(html, "Week on week"))
    assert row and row.group(1) == '<td class="n">—</td><td class="n">not compared</td><td>2026-01-14 missing</td>'
    assert "No two whole weeks" in section(html, "Top movers")


def test_a_day_without_sales_is_a_zero_and_a_day_without_data_is_a_band() -> None:
    empty = replace(day(6), lines=())
    html = page.render(known(day(5), empty, day(7, state="held"), day(8, state="missing")))
    rows = dict(re.findall(r'<tr><th scope="row">(2026-01-0\d)</th>(.*?)</tr>', section(html, "Day by day")))
    assert list(re.findall(r'class="n">([^<]*)', rows["2026-01-06"])) == ["0", "0", "0.00", "0.00"]
    for unknown in ("2026-01-07", "2026-01-08"):
        assert set(re.findall(r'class="n">([^<]*)', rows[unknown])) == {"—"}
    chart = section(html, "Revenue by day")
    drawn = dict(re.findall(r'data-interval="([^"]*)">(.*?)</g>', chart))
    assert "<rect" not in drawn["2026-01-06"]
    assert 'class="band held"' in drawn["2026-01-07"] and "hatch" in drawn["2026-01-07"]
    assert 'class="band missing"' in drawn["2026-01-08"] and "hatch" not in drawn["2026-01-08"]


def test_a_stale_day_keeps_its_number_and_is_drawn_as_stale() -> None:
    html = page.render(known(*(day(n, state="stale" if n == 9 else "current") for n in range(5, 12))))
    drawn = dict(re.findall(r'data-interval="([^"]*)">(.*?)</g>', section(html, "Revenue by day")))
    assert ', stale</title><rect class="s0 old"' in drawn["2026-01-09"]
    assert "old" not in drawn["2026-01-10"]
    assert "2026-01-09 stale" in section(html, "Last whole week")


def test_text_of_the_source_cannot_become_markup() -> None:
    html = page.render(known(*(day(n, country="<script>x</script>") for n in range(5, 12))))
    assert "<script" not in html and "&lt;script&gt;" in html


def test_negative_and_very_large_amounts_are_drawn_and_keep_every_digit() -> None:
    html = page.render(known(day(5, "-12345678901234567890123456789012345.67"), day(6, "5.00")))
    assert "-12,345,678,901,234,567,890,123,456,789,012,345.67" in html
    heights = [Decimal(h) for h in re.findall(r'<rect class="s0"[^>]*height="([^"]*)"', section(html, "Revenue by day"))]
    assert heights and all(h >= 0 for h in heights)


def test_a_page_before_the_first_publication_says_so() -> None:
    assert "Nothing has been published yet" in page.render(known())
