"""Whether the source moved. Belongs here: row count, amounts and newest change, of the source or of landed files, by one SQL.

Not here: what to do about it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal

import duckdb
import pyarrow as pa

FINGERPRINT_COLUMNS = ("updated_at", "currency", "gross_amount", "discount_amount")

_EXACT = Context(prec=60)  # the default of 28 digits would round sums of decimal(38, 6)
_SQL = """
select coalesce(currency, ''), count(*), max(updated_at),
       coalesce(sum(try_cast(gross_amount as decimal(38, 6))), 0), coalesce(sum(try_cast(discount_amount as decimal(38, 6))), 0)
from {relation}
group by all
"""


@dataclass(frozen=True)
class Fingerprint:
    """What a window holds, in few numbers. Equal fingerprints do not prove equal rows: compare row digests for that.

    Not seen: a change that moves neither the count, nor the newest `updated_at`, nor an amount.

    Attributes:
        rows: Rows as received, duplicates included.
        last_updated_at: Greatest updated_at, as text.
        amounts: (currency, sum of gross, sum of discount), by currency; text that is no number counts as nothing.
    """

    rows: int
    last_updated_at: str | None
    amounts: tuple[tuple[str, Decimal, Decimal], ...]

    def moved(self, since: "Fingerprint") -> str:
        """By how much this differs from an earlier fingerprint; empty when it does not.

        >>> old = Fingerprint(2, "2026-01-05 10:00:00", (("GBP", Decimal("5.00"), Decimal(0)),))
        >>> Fingerprint(3, "2026-01-06 09:00:00", (("GBP", Decimal("7.50"), Decimal(0)),)).moved(old)
        'rows +1, gross GBP +2.50, last updated_at 2026-01-05 10:00:00 → 2026-01-06 09:00:00'
        """
        if self == since:
            return ""
        parts = [f"rows {self.rows - since.rows:+d}"] if self.rows != since.rows else []
        nothing = ("", Decimal(0), Decimal(0))
        mine, theirs = ({line[0]: line for line in side.amounts} for side in (self, since))
        for currency in sorted(mine | theirs):
            for position, name in ((1, "gross"), (2, "discount")):
                difference = _EXACT.subtract(
                    Decimal(mine.get(currency, nothing)[position]), Decimal(theirs.get(currency, nothing)[position])
                )
                if difference:
                    parts.append(f"{name} {currency or 'without currency'} {_signed(difference)}")
        if self.last_updated_at != since.last_updated_at:
            parts.append(f"last updated_at {since.last_updated_at} → {self.last_updated_at}")
        return ", ".join(parts) or "currencies of rows without amounts"


def _signed(amount: Decimal) -> str:
    """With two decimals, or more where it has more.

    >>> _signed(Decimal("2.500000")), _signed(Decimal(-1)), _signed(Decimal("0.001"))
    ('+2.50', '-1.00', '+0.001')
    """
    whole, _, decimals = f"{amount:+f}".partition(".")
    return f"{whole}.{decimals.rstrip('0').ljust(2, '0')}"


@dataclass
class Tally:
    """A fingerprint in the making, one batch of rows after another."""

    _rows: int = 0
    _last: str | None = None
    _amounts: dict[str, tuple[Decimal, Decimal]] = field(default_factory=dict)

    def add(self, rows: pa.RecordBatch) -> None:
        """Count the rows of a batch with the columns of FINGERPRINT_COLUMNS, as text."""
        with duckdb.connect() as connection:
            connection.register("rows", pa.Table.from_batches([rows]))
            self._add(connection.execute(_SQL.format(relation='"rows"')).fetchall())

    def _add(self, lines: list[tuple[str, int, str | None, Decimal, Decimal]]) -> None:
        for currency, count, last, gross, discount in lines:
            self._rows += count
            self._last = max(filter(None, (self._last, last)), default=None)
            before = self._amounts.get(currency, (Decimal(0), Decimal(0)))
            self._amounts[currency] = (_EXACT.add(before[0], gross), _EXACT.add(before[1], discount))

    def fingerprint(self) -> Fingerprint:
        """The fingerprint of all rows added."""
        return Fingerprint(self._rows, self._last, tuple((name, *sums) for name, sums in sorted(self._amounts.items())))


def fingerprint_of_landed(connection: duckdb.DuckDBPyConnection, files: Sequence[str]) -> Fingerprint:
    """The fingerprint of landed Parquet files, comparable with that of the source; no file is no row.

    Args:
        connection: Any DuckDB connection; nothing is written.
        files: Paths or URLs of the files of one interval.
    """
    tally = Tally()
    if files:
        tally._add(connection.execute(_SQL.format(relation="read_parquet(?)"), [list(files)]).fetchall())
    return tally.fingerprint()
