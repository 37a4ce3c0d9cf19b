"""Gates: may this publication be read? Belongs here: quarantine and failed blocking checks, asked at the moment of reading.

Not here: setting a quarantine (recovery/interventions.py) or judging a publication (checks/).
"""

from collections.abc import Iterable
from typing import Any

from orders_platform.errors import OrdersError
from orders_platform.warehouse.publications import Pair, Publication


class InputRefused(OrdersError):
    """An input that is quarantined or failed a blocking check; it is never skipped and never replaced by another interval."""


def refusals(con: Any, publications: Iterable[Publication]) -> dict[Pair, tuple[str, str]]:
    """What stands against reading each of these publications: pair -> (reason, remedy); empty when nothing does."""
    wanted = {p.publication_id: (p.companion_of or p.asset, p.interval) for p in publications}
    found: dict[Pair, tuple[str, str]] = {}
    failing = con.execute(
        "select publication_id, check_name, details from platform.failing where publication_id in (select unnest(?::uuid[]))",
        [list(wanted)],
    ).fetchall()
    for publication_id, check_name, details in failing:
        asset, interval = wanted[str(publication_id)]
        found[asset, interval] = (
            f"{asset} {interval} failed its check {check_name}" + (f" ({details})" if details else ""),
            f"orders reconcile {interval}; then orders repair {asset} {interval} --reason …",
        )
    pairs = set(wanted.values())
    for asset, interval, who, reason, at in con.execute(
        'select asset, "interval", who, reason, recorded_at from platform.held'
    ).fetchall():
        if (asset, interval) in pairs:
            found[asset, interval] = (
                f"{asset} {interval} is quarantined by {who} since {at:%Y-%m-%d %H:%M} UTC ({reason})",
                f"orders quarantine release {asset} {interval} --reason …",
            )
    return found
