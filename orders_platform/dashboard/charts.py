"""Charts as SVG. Belongs here: bars by day, with days that have no number drawn as what they are. Not here: HTML (page.py).

Coordinates are decimals rounded to a tenth, so equal facts give equal bytes. Colours come from CSS: light, dark, and print.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from html import escape
from importlib import resources

WIDTH, HEIGHT = 360, 190
LEFT, RIGHT, TOP, BOTTOM = 46, 4, 10, 34
PLOT_WIDTH, PLOT_HEIGHT = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

STYLE = resources.files(__package__).joinpath("chart.css").read_text("utf-8")
"""For the page that holds charts; `standalone` puts it into one of them."""


@dataclass(frozen=True)
class Bar:
    """One day of a chart: a value for each series, or no values and the state to draw instead."""

    interval: str
    state: str
    values: tuple[Decimal, ...] | None


def bar_chart(
    key: str, title: str, description: str, bars: Sequence[Bar], series: Sequence[str], show: Callable[[Decimal], str]
) -> str:
    """Stacked bars, one a day. A day without values is a dashed band with its state; a stale one is pale with a dashed edge.

    Args:
        key: Prefix of the ids in this SVG, unique in the page.
        title: Read out as the chart's name.
        description: Read out after it: what is drawn and what it covers.
        bars: The days in order.
        series: Name of each value, in stacking order.
        show: A value as text.
    """
    totals = [sum((v for v in bar.values if v > 0), Decimal(0)) for bar in bars if bar.values]
    lows = [sum((v for v in bar.values if v < 0), Decimal(0)) for bar in bars if bar.values]
    step, low, high = _scale(min(lows, default=Decimal(0)), max(totals, default=Decimal(0)))

    def y(value: Decimal) -> Decimal:
        return TOP + (high - value) / (high - low) * PLOT_HEIGHT

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-labelledby="{key}-title" aria-describedby="{key}-desc">',
        f'<title id="{key}-title">{escape(title)}</title><desc id="{key}-desc">{escape(description)}</desc>',
        f'<defs><pattern id="{key}-hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<line class="hatch" x1="0" y1="0" x2="0" y2="5"/></pattern></defs>',
    ]
    tick = low
    while tick <= high:
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        parts.append(f'<text x="{LEFT - 4}" y="{y(tick) + 3:.1f}" text-anchor="end">{escape(_short(tick))}</text>')
        tick += step
    slot = Decimal(PLOT_WIDTH) / max(len(bars), 1)
    for place, bar in enumerate(bars):
        x = LEFT + place * slot
        parts += _band(key, bar, x, slot) if bar.values is None else _stack(bar, series, x, slot, y, show)
        if place % 7 == 0:
            parts.append(f'<text class="day" x="{x:.1f}" y="{HEIGHT - BOTTOM + 14}">{escape(bar.interval[5:])}</text>')
    parts.append(
        f'<line class="zero" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(Decimal(0)):.1f}" y2="{y(Decimal(0)):.1f}"/></svg>'
    )
    return "".join(parts)


def standalone(svg: str) -> str:
    """The chart with its styles inside, to be shown on its own."""
    head, tail = svg.split("<title", 1)
    return f"{head}<style>{STYLE}</style><title{tail}"


def _band(key: str, bar: Bar, x: Decimal, slot: Decimal) -> list[str]:
    """A day without a number: hatched where something stands against it, empty where there is nothing."""
    fill = "" if bar.state == "missing" else f' style="fill:url(#{key}-hatch)"'
    return [
        f'<g class="{bar.state}" data-interval="{bar.interval}"><title>{bar.interval}: {bar.state}</title>'
        f'<rect class="band {bar.state}"{fill} x="{x + slot / 10:.1f}" y="{TOP}" width="{slot * 4 / 5:.1f}" '
        f'height="{PLOT_HEIGHT}"/>'
        f"{_name(bar.state, x + slot / 2)}</g>"
    ]


def _stack(
    bar: Bar, series: Sequence[str], x: Decimal, slot: Decimal, y: Callable[[Decimal], Decimal], show: Callable[[Decimal], str]
) -> list[str]:
    label = f"{bar.interval}: " + ", ".join(f"{n} {show(v)}" for n, v in zip(series, bar.values or (), strict=True) if v)
    old = "" if bar.state == "current" else " old"
    parts = [f'<g class="{bar.state}" data-interval="{bar.interval}"><title>{escape(label)}{", stale" * bool(old)}</title>']
    up = down = Decimal(0)
    for place, value in enumerate(bar.values or ()):
        base = up if value >= 0 else down
        top, bottom = max(base, base + value), min(base, base + value)
        up, down = (up + value, down) if value >= 0 else (up, down + value)
        if value:
            parts.append(
                f'<rect class="s{place % 8}{old}" x="{x + slot / 10:.1f}" y="{y(top):.1f}" width="{slot * 4 / 5:.1f}" '
                f'height="{y(bottom) - y(top):.1f}"/>'
            )
    if old:
        parts.append(_name(bar.state, x + slot / 2))
    return [*parts, "</g>"]


def _name(state: str, middle: Decimal) -> str:
    """The state written upwards within its day."""
    at = f"translate({middle + 3:.1f} {TOP + PLOT_HEIGHT - 4}) rotate(-90)"
    return f'<text class="name" transform="{at}">{escape(state)}</text>'


def _scale(low: Decimal, high: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    """Tick step, lowest and highest tick: one, two or five times a power of ten, about four ticks.

    >>> _scale(Decimal(0), Decimal(870))
    (Decimal('200'), Decimal('0'), Decimal('1000'))
    """
    span = (high - low) or Decimal(1)
    power = Decimal(10) ** (span.adjusted() - 1)
    step = next(power * n for n in (1, 2, 5, 10, 20, 50) if power * n * 5 >= span)
    lowest = (low / step).to_integral_value(rounding="ROUND_FLOOR") * step
    highest = (high / step).to_integral_value(rounding="ROUND_CEILING") * step
    return Decimal(f"{step:f}"), Decimal(f"{lowest:f}"), Decimal(f"{max(highest, lowest + step):f}")


def _short(value: Decimal) -> str:
    """A tick as short text.

    >>> _short(Decimal(1500)), _short(Decimal(20)), _short(Decimal(3000000))
    ('1.5k', '20', '3M')
    """
    for size, mark in ((Decimal(1_000_000), "M"), (Decimal(1_000), "k")):
        if abs(value) >= size:
            return f"{(value / size).normalize():f}{mark}"
    return f"{value.normalize():f}"
