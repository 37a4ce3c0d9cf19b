"""Gates: may this publication be read? Belongs here: quarantine and failed blocking checks, asked at the moment of reading.

Not here: setting a quarantine (recovery/interventions.py) or judging a publication (checks/).
"""

from collections.abc import Iterable
from typing import Any

from orders_platform.calendar import describe
from orders_platform.errors import OrdersError
from orders_platform.warehouse.contract import literals
from orders_platform.warehouse.publications import Pair, Publication


class InputRefused(OrdersError):
    """An input that is quarantined or failed a blocking check; it is never skipped and never replaced by another interval."""


def refusals(con: Any, publications: Iterable[Publication]) -> dict[Pair, tuple[str, str]]:
    """What stands against reading each of these current publications: pair -> (reason, remedy); empty when nothing does.

    A companion is refused with the table it was published with.
    """
    pairs = {(p.companion_of or p.asset, p.interval) for p in publications}
    found: dict[Pair, tuple[str, str]] = {}
    failing = con.execute(
        f"""select p.asset, p."interval", f.check_name, f.details
            from platform.failing f join platform.current_publications p using (publication_id)
            where p.asset in ({literals(sorted({asset for asset, _ in pairs}))}) order by all"""
    ).fetchall()
    for asset, interval, check_name, details in failing:
        if (asset, interval) in pairs:
            found[asset, interval] = (
                f"{asset} {interval} failed its check {check_name}" + (f" ({details})" if details else ""),
                f"orders reconcile {interval}; then orders repair {asset} {interval} --reason …",
            )
    for asset, interval, who, reason, at in con.execute(
        'select asset, "interval", who, reason, recorded_at from platform.held'
    ).fetchall():
        if (asset, interval) in pairs:
            found[asset, interval] = (
                f"{asset} {interval} is quarantined by {who} since {at:%Y-%m-%d %H:%M} UTC ({reason})",
                f"orders quarantine release {asset} {interval} --reason …",
            )
    return found


def unreconciled(con: Any, publications: Iterable[Publication]) -> list[Publication]:
    """Those of the publications that no check has judged yet by `reconciles`; what leaves the house waits for it."""
    wanted = {p.publication_id: p for p in publications}
    rows = con.execute(
        "select distinct publication_id from platform.verdicts where check_name = 'reconciles' "
        f"and publication_id in ({literals(wanted)})"
    ).fetchall()
    judged = {str(row[0]) for row in rows}
    return sorted((p for i, p in wanted.items() if i not in judged), key=lambda p: (p.asset, p.interval))


def require_reconciled(con: Any, publications: Iterable[Publication], reader: str) -> None:
    """Refuse to go on while some of the publications have not been judged.

    Raises:
        InputRefused: Names the intervals.
    """
    waiting = unreconciled(con, publications)
    if waiting:
        days = [p.interval for p in waiting if p.asset == waiting[0].asset]
        raise InputRefused(
            f"{reader} waits: {waiting[0].asset} {describe(days)} has not been reconciled yet.",
            f"orders reconcile --from {days[0]} --to {days[-1]}",
        )
