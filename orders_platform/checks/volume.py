"""Volume. Belongs here: how many rows an interval usually has. Not here: whether none may arrive (arrival.py)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, sqrt
from statistics import median

WEEKS = 8
ENOUGH = 4
MAD_TO_DEVIATION = 1.4826
"""A normal distribution's standard deviation by its median absolute deviation."""
LEAST_SHARE = 0.05
"""A deviation is at least this share of the median, so that a shop of very even days does not alarm at every change."""


@dataclass(frozen=True)
class Usual:
    """The row count that is expected.

    Attributes:
        middle: Median of the history.
        deviation: The greatest of: scaled median absolute deviation, counting noise √median, 5 % of the median.
    """

    middle: float
    deviation: float

    def range(self, deviations: float) -> tuple[int, int]:
        """Least and greatest row count within so many deviations."""
        reach = deviations * self.deviation
        return max(0, ceil(self.middle - reach)), floor(self.middle + reach)


def usual(history: Sequence[int]) -> Usual | None:
    """What the history makes expect; None while it is too short to say.

    Robust: one outlier in eight weeks moves neither the median nor the deviation by much.

    >>> usual([100, 104, 98, 5000]).range(4)
    (62, 142)
    >>> usual([100, 104, 98])

    Args:
        history: Row counts of the same weekday in the trailing weeks.
    """
    if len(history) < ENOUGH:
        return None
    middle = median(history)
    spread = MAD_TO_DEVIATION * median(abs(count - middle) for count in history)
    return Usual(middle, max(spread, sqrt(middle), LEAST_SHARE * middle))
