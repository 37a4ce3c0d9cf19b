"""The dashboard as one HTML page. Belongs here: its sections and styles. Not here: sums (facts.py) or drawing (charts.py).

No script, no network, no clock: it says which days it covers and when they were published; equal facts give equal bytes.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from html import escape
from importlib import resources

from orders_platform.calendar import describe
from orders_platform.dashboard import charts, facts
from orders_platform.dashboard.charts import Bar
from orders_platform.dashboard.facts import Day, Facts, Week

SHOWN_DAYS = 28
SHOWN_WEEKS = 8
SHOWN_MOVES = 8
SHOWN_NOTABLE = 60

MEANING = {
    "current": "up to date with everything it is made from",
    "stale": "an input was replaced since; drawn pale, and not up to date",
    "held": "quarantined by a person; no number is shown",
    "divergent": "failed its reconciliation; no number is shown",
    "claimed": "marked as done, but nothing was published; no number is shown",
    "missing": "never published; no number is shown",
}

STYLE = resources.files(__package__).joinpath("page.css").read_text("utf-8")


def render(known: Facts) -> str:
    """The whole page."""
    body = "".join(
        (
            _head(known),
            _notable(known),
            _headlines(known),
            _revenue(known),
            _weeks(known),
            _moves(known),
            _cancelled(known),
            _days(known),
        )
        if known.days
        else (_head(known),)
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">"
        '<link rel="icon" href="data:,">'
        f"<title>Revenue dashboard</title><style>{STYLE}{charts.STYLE}</style></head><body><main>{body}</main></body></html>\n"
    )


def revenue_charts(known: Facts) -> dict[str, str]:
    """Currency -> its chart of revenue by day and country."""
    days = facts.recent(known.days, SHOWN_DAYS)
    found = {}
    for currency in known.currencies:
        countries = known.countries(currency)
        bars = [
            Bar(d.interval, d.state, tuple(d.revenue(currency, c) for c in countries) if d.is_readable else None) for d in days
        ]
        title = f"Revenue by day and country, {currency}"
        found[currency] = charts.bar_chart(f"revenue-{currency.lower()}", title, _said(days), bars, countries, _money)
    return found


def cancellation_chart(known: Facts) -> str:
    """Share of each day's orders that were cancelled, in per cent."""
    days = facts.recent(known.days, SHOWN_DAYS)
    bars = [
        Bar(d.interval, d.state, (facts.share(d.cancelled_orders, d.orders) or Decimal(0),) if d.is_readable else None)
        for d in days
    ]
    return charts.bar_chart(
        "cancelled", "Cancelled orders by day, per cent", _said(days), bars, ("cancelled",), lambda v: f"{v} %"
    )


def covered(days: Sequence[Day]) -> str:
    """Which days some numbers cover, and when those were published."""
    read = [day for day in days if day.is_readable]
    if not read:
        return "Covers no day that can be read."
    times = sorted({_at(day.published_at) for day in read if day.published_at})
    lacking = [day.interval for day in days if not day.is_readable]
    text = f"Covers {describe([day.interval for day in read])}, published {times[0]}"
    text += f" to {times[-1]}" if len(times) > 1 else ""
    return text + " UTC." + (f" Without {describe(lacking)}." if lacking else "")


def _head(known: Facts) -> str:
    if not known.days:
        return "<h1>Revenue dashboard</h1><p>Nothing has been published yet.</p>"
    newest = max((d.published_at for d in known.days if d.published_at), default=None)
    counts = {state: sum(d.state == state for d in known.days) for state in MEANING}
    listed = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    last = known.days[-1].interval
    return (
        f"<h1>Revenue dashboard</h1><p>What is known of the business days <strong>{known.days[0].interval}</strong> to "
        f"<strong>{last}</strong> ({escape(known.timezone)}): {listed}. Nothing is known of days after {last}. "
        + (f"The newest revenue was published {_at(newest)} UTC." if newest else "No revenue was ever published.")
        + "</p>"
    )


def _notable(known: Facts) -> str:
    if not known.notable:
        return "<p>Every day is current: up to date with everything it is made from.</p>"
    rows = [
        (f'<time datetime="{d.interval}">{d.interval}</time>', _chip(d.state), escape(d.reason), MEANING[d.state])
        for d in known.notable[-SHOWN_NOTABLE:]
    ]
    more = len(known.notable) - len(rows)
    caption = f"{len(known.notable)} of {len(known.days)} days" + (f"; the {more} oldest are not listed" if more else "")
    return "<h2>Days that are not what they should be</h2>" + _table(
        caption, ("Day", "State", "Why", "Meaning"), rows, "notable"
    )


def _headlines(known: Facts) -> str:
    whole = [week for week in known.weeks if week.is_whole]
    if not whole:
        return '<h2>Last whole week</h2><p class="note">No week can be read whole yet.</p>'
    week = whole[-1]
    before = known.week_before(week)
    cards = []
    for currency in known.currencies:
        cards.append(
            f'<div class="card" data-week="{week.monday}" data-currency="{escape(currency)}"><h3>{escape(currency)}</h3>'
            f'<div class="big">{_money(week.revenue(currency))}</div>'
            f'<p class="note">{escape(_against(week, before, currency))}</p></div>'
        )
    title, old = f"Last whole week: from {week.monday}", f" {week.state}." if week.state else ""
    return f'<h2>{title}</h2><p class="note">{covered(week.days)}{old}</p><div class="grid">{"".join(cards)}</div>'


def _against(week: Week, before: Week | None, currency: str) -> str:
    if before is None or not before.is_whole:
        return f"Not compared: {before.state}." if before else "No week before it to compare with."
    moved = facts.share(week.revenue(currency) - before.revenue(currency), before.revenue(currency))
    old = f"; in that week {before.state}" if before.state else ""
    return f"{_signed(moved)} against {_money(before.revenue(currency))} in the week of {before.monday}{old}"


def _revenue(known: Facts) -> str:
    figures = []
    for currency, svg in revenue_charts(known).items():
        swatches = "".join(
            f'<li><svg class="chart" viewBox="0 0 9 9" aria-hidden="true"><rect class="s{n % 8}" width="9" height="9"/></svg>'
            f"{escape(c)}</li>"
            for n, c in enumerate(known.countries(currency))
        )
        figures.append(f'<figure class="card"><h3>{escape(currency)}</h3>{svg}<ul class="legend">{swatches}</ul></figure>')
    note = f"{covered(facts.recent(known.days, SHOWN_DAYS))} A hatched or empty day has no number; a pale day is stale."
    return f'<h2>Revenue by day and country</h2><p class="note">{note}</p><div class="grid">{"".join(figures)}</div>'


def _weeks(known: Facts) -> str:
    rows = []
    shown = known.weeks[-SHOWN_WEEKS:]
    for week in shown:
        before = known.week_before(week)
        for currency in known.currencies:
            revenue = _money(week.revenue(currency)) if week.is_whole else "—"
            change = "not compared"
            if before and before.is_whole and week.is_whole:
                change = _signed(facts.share(week.revenue(currency) - before.revenue(currency), before.revenue(currency)))
            rows.append((week.monday, escape(currency), revenue, change, week.state or "all current"))
    columns = ("Week from", "Currency", "Revenue", "On the week before", "Days")
    days = [day for week in shown for day in week.days if week.is_whole]
    caption = f"Weeks that can be read whole. {covered(days)}"
    return "<h2>Week on week</h2>" + _table(caption, columns, rows, "weeks", numbers=(2, 3))


def _moves(known: Facts) -> str:
    if known.compared is None:
        return '<h2>Top movers</h2><p class="note">No two whole weeks follow one another, so nothing is compared.</p>'
    before, after = known.compared
    rows = [
        (escape(m.country), escape(m.currency), _money(m.before), _money(m.after), f"{m.change:+,.2f}", _signed(m.share))
        for m in known.moves[:SHOWN_MOVES]
    ]
    columns = ("Country", "Currency", f"Week of {before.monday}", f"Week of {after.monday}", "Change", "Change")
    return "<h2>Top movers</h2>" + _table(covered((*before.days, *after.days)), columns, rows, "movers", numbers=(2, 3, 4, 5))


def _cancelled(known: Facts) -> str:
    days = facts.recent(known.days, SHOWN_DAYS)
    read = [day for day in days if day.is_readable]
    orders, cancelled = sum(d.orders for d in read), sum(d.cancelled_orders for d in read)
    share = facts.share(cancelled, orders)
    text = f"{cancelled:,} of {orders:,} orders were cancelled" + (f" ({share} %)." if share is not None else ".")
    return (
        f'<h2>Cancellations</h2><p>{text}</p><p class="note">{covered(days)}</p>'
        f'<div class="grid"><figure class="card">{cancellation_chart(known)}</figure></div>'
    )


def _days(known: Facts) -> str:
    days = facts.recent(known.days, SHOWN_DAYS)
    rows = []
    for day in reversed(days):
        values = [_money(day.revenue(c)) if day.is_readable else "—" for c in known.currencies]
        counts = [f"{day.orders:,}", f"{day.cancelled_orders:,}"] if day.is_readable else ["—", "—"]
        rows.append((day.interval, _chip(day.state), _at(day.published_at) if day.published_at else "never", *counts, *values))
    columns = ("Day", "State", "Published (UTC)", "Orders", "Cancelled", *(f"Revenue {escape(c)}" for c in known.currencies))
    numbers = tuple(range(3, len(columns)))
    return "<h2>Day by day</h2>" + _table(covered(days), columns, rows, "days", numbers=numbers)


def _table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], name: str, numbers: Sequence[int] = ()) -> str:
    def cell(place: int, text: str) -> str:
        if place == 0:
            return f'<th scope="row">{text}</th>'
        return f'<td class="n">{text}</td>' if place in numbers else f"<td>{text}</td>"

    head = "".join(f'<th scope="col"{" class=n" if n in numbers else ""}>{c}</th>' for n, c in enumerate(columns))
    body = "".join(f"<tr>{''.join(cell(n, text) for n, text in enumerate(row))}</tr>" for row in rows)
    return (
        f'<div class="wide" role="region" aria-label="{name}" tabindex="0"><table id="{name}"><caption>{caption}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _said(days: Sequence[Day]) -> str:
    """What a chart shows, for whoever cannot see it; the numbers are in the table day by day."""
    notable = [f"{day.interval} is {day.state}" for day in days if day.state != "current"]
    return (
        f"One bar a day. {covered(days)}"
        + (f" {', '.join(notable)}." if notable else "")
        + " The numbers are in the table Day by day."
    )


def _chip(state: str) -> str:
    return f'<span class="state {state}">{state}</span>'


def _money(value: Decimal) -> str:
    return f"{value:,.2f}"


def _signed(value: Decimal | None) -> str:
    return "from nothing" if value is None else f"{value:+} %"


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"
