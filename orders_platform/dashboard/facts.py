"""What the dashboard knows. Belongs here: days with their states, and the sums and comparisons that may be made of them.

Not here: how it looks (charts.py, page.py). Nothing reads the clock: the newest published day is the end of the calendar.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import Any

from orders_platform.calendar import monday
from orders_platform.recovery.states import State
from orders_platform.warehouse.publications import EXACT, Pair

READABLE = ("current", "stale")
"""States whose numbers are shown; of the others only the state is."""

WHOLE_WEEK = 7


@dataclass(frozen=True)
class Line:
    """One country and currency of a day; revenue in that currency."""

    country: str
    currency: str
    orders: int
    cancelled_orders: int
    revenue: Decimal


@dataclass(frozen=True)
class Day:
    """One business day: its state, why, when it was published (UTC), and its lines where they may be read."""

    interval: str
    state: str
    reason: str = ""
    published_at: datetime | None = None
    publication_id: str = ""
    lines: tuple[Line, ...] = ()

    @property
    def is_readable(self) -> bool:
        """Whether its numbers are shown."""
        return self.state in READABLE

    def revenue(self, currency: str, country: str | None = None) -> Decimal:
        """Revenue of the day in a currency, of one country or all."""
        return total(i.revenue for i in self.lines if i.currency == currency and country in (None, i.country))

    @property
    def orders(self) -> int:
        """Orders of any status."""
        return sum(line.orders for line in self.lines)

    @property
    def cancelled_orders(self) -> int:
        """Orders with status cancelled."""
        return sum(line.cancelled_orders for line in self.lines)


@dataclass(frozen=True)
class Week:
    """One ISO week, named by its Monday; whole when all seven days can be read."""

    monday: str
    days: tuple[Day, ...]

    @property
    def is_whole(self) -> bool:
        """Whether it may be compared: seven days, all readable."""
        return len(self.days) == WHOLE_WEEK and all(day.is_readable for day in self.days)

    @property
    def state(self) -> str:
        """What is lacking, or what is old about it, in words; empty when it is whole and current."""
        bad = [f"{day.interval} {day.state}" for day in self.days if day.state != "current"]
        short = WHOLE_WEEK - len(self.days)
        return ", ".join([*bad, f"{short} days to come"] if short else bad)

    def revenue(self, currency: str, country: str | None = None) -> Decimal:
        """Revenue of the readable days."""
        return total(day.revenue(currency, country) for day in self.days)


@dataclass(frozen=True)
class Move:
    """A country's revenue in two whole weeks that follow one another; share is None where the first is zero."""

    country: str
    currency: str
    before: Decimal
    after: Decimal

    @property
    def change(self) -> Decimal:
        """After − before."""
        return EXACT.subtract(self.after, self.before)

    @property
    def share(self) -> Decimal | None:
        """Change by before, rounded to a tenth of a per cent."""
        return share(self.change, self.before)


@dataclass(frozen=True)
class Facts:
    """All that the page says.

    Attributes:
        days: Every business day from the calendar's first to the newest published one, in order.
        timezone: Whose days they are.
    """

    days: tuple[Day, ...]
    timezone: str

    @cached_property
    def weeks(self) -> tuple[Week, ...]:
        """The ISO weeks, in order; the last may not be over."""
        found: dict[str, list[Day]] = {}
        for day in self.days:
            found.setdefault(monday(date.fromisoformat(day.interval)).isoformat(), []).append(day)
        return tuple(Week(name, tuple(days)) for name, days in found.items())

    def week_before(self, week: Week) -> Week | None:
        """The week before this one; None for the first."""
        place = self.weeks.index(week)
        return self.weeks[place - 1] if place else None

    @cached_property
    def currencies(self) -> tuple[str, ...]:
        """Every currency, in order."""
        return tuple(sorted({line.currency for day in self.days for line in day.lines}))

    def countries(self, currency: str) -> tuple[str, ...]:
        """Every country with lines in the currency, in order."""
        return tuple(sorted({line.country for day in self.days for line in day.lines if line.currency == currency}))

    @cached_property
    def compared(self) -> tuple[Week, Week] | None:
        """The newest two whole weeks that follow one another."""
        pairs = [(a, b) for a, b in pairwise(self.weeks) if a.is_whole and b.is_whole]
        return pairs[-1] if pairs else None

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """Every country's move between the compared weeks, the largest relative change first."""
        if self.compared is None:
            return ()
        before, after = self.compared
        moves = [
            Move(country, currency, before.revenue(currency, country), after.revenue(currency, country))
            for currency in self.currencies
            for country in self.countries(currency)
        ]
        moved = [move for move in moves if move.change]
        return tuple(sorted(moved, key=lambda m: (m.share is not None, -abs(m.share or Decimal(0)), m.country, m.currency)))

    @property
    def notable(self) -> tuple[Day, ...]:
        """The days that are not current, in order."""
        return tuple(day for day in self.days if day.state != "current")


def total(values: Iterable[Decimal]) -> Decimal:
    """The exact sum.

    >>> total([Decimal("0.10"), Decimal("0.20")])
    Decimal('0.30')
    """
    found = Decimal("0.00")
    for value in values:
        found = EXACT.add(found, value)
    return found


def share(part: Decimal | int, whole: Decimal | int) -> Decimal | None:
    """The part in per cent of the whole, to a tenth; None of nothing.

    >>> share(1, 3)
    Decimal('33.3')
    """
    if not whole:
        return None
    return EXACT.divide(EXACT.multiply(Decimal(part), Decimal(100)), abs(Decimal(whole))).quantize(
        Decimal("0.1"), context=EXACT
    )


def read(con: Any, states: Mapping[Pair, State], table: str, timezone: str) -> Facts:
    """The facts of a table with the columns of revenue_daily, day by day.

    Args:
        con: A session of the warehouse.
        states: The state of every pair; those of the table are the days.
        table: revenue_daily.
        timezone: Whose days they are.
    """
    published = {
        row[0]: row[1:]
        for row in con.execute(
            'select "interval", published_at, publication_id::varchar from platform.current_publications where asset = ?',
            [table],
        ).fetchall()
    }
    lines: dict[str, list[Line]] = {}
    for interval, *values in (
        con.execute(
            f"select order_date::varchar, country, currency, orders, cancelled_orders, revenue from orders.{table} "
            "where produced_by in (select publication_id from platform.readable where asset = ?) order by all",
            [table],
        ).fetchall()
        if published
        else ()
    ):
        lines.setdefault(interval, []).append(Line(*values))
    days = []
    for (asset, interval), state in states.items():
        if asset == table:
            at, publication_id = published.get(interval, (None, ""))
            shown = tuple(lines.get(interval, ())) if state.name in READABLE else ()
            days.append(Day(interval, state.name, state.reason, at, publication_id, shown))
    return Facts(tuple(sorted(days, key=lambda day: day.interval)), timezone)


def newest_day(con: Any) -> str | None:
    """The newest business day that any daily table has published: the end of what the page speaks of."""
    rows = con.execute('select max("interval") from platform.publications where step_days = 1').fetchall()
    return str(rows[0][0]) if rows and rows[0][0] else None


def recent(days: Sequence[Day], count: int) -> tuple[Day, ...]:
    """The last days, in order."""
    return tuple(days[-count:])
