"""Gates: may this publication be read? Belongs here: quarantine and failed blocking checks, asked at the moment of reading.

Not here: setting a quarantine (recovery/interventions.py) or judging a publication (checks/).
"""

from collections.abc import Iterable
from typing import Any

from orders_platform.calendar import describe
from orders_platform.errors import OrdersError
from orders_platform.warehouse.contract import literals
from orders_platform.warehouse.publications import Pair, Publication, current


class InputRefused(OrdersError):
    """An input that is quarantined or failed a blocking check; it is never skipped and never replaced by another interval."""


def refusals(con: Any, publications: Iterable[Publication]) -> dict[Pair, tuple[str, str]]:
    """What stands against reading each of these current publications: pair -> (reason, remedy); empty when nothing does.

    A companion is refused with the table it was published with.
    """
    read = list(publications)
    pairs = {(p.companion_of or p.asset, p.interval) for p in read}
    own = [p for p in read if not p.companion_of]
    owners = {p.publication_id: p for p in (*own, *current(con, pairs - {(p.asset, p.interval) for p in own}).values())}
    found: dict[Pair, tuple[str, str]] = {}
    # Ids as literals reach the scan of the verdicts; joined, the whole history would be sorted first: 6 ms of 1,100 days.
    failing = con.execute(
        f"select publication_id::varchar, check_name, details from platform.failing "
        f'where publication_id in ({literals(owners)}) order by asset, "interval", check_name'
    ).fetchall()
    for publication_id, check_name, details in failing:
        asset, interval = owners[publication_id].asset, owners[publication_id].interval
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
