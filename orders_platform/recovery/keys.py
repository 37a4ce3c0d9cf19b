"""Which keys differ. Belongs here: comparing what a table holds with what its own SQL makes of its inputs, row by row.

Not here: whether a table differs at all, which its digest tells (reconcile.py).
"""

from typing import Any

from orders_platform.warehouse.contract import TableContract, identifier, in_intervals
from orders_platform.warehouse.verdicts import Difference

SHOWN = 20


def differing_keys(con: Any, held: str, contract: TableContract, interval: str, made: str) -> tuple[Difference, ...]:
    """Up to twenty keys whose rows differ: key, the row as it should be, the row as it is (only the columns that differ).

    Rows are matched by key and, among rows of one key, by rank, so that a row standing twice is found as well.

    Args:
        con: A session in which the SQL's inputs are views.
        held: The table or view to compare, as it is named in SQL.
        contract: Its contract.
        interval: The interval to compare.
        made: SQL for the rows that should be there.
    """
    columns = [identifier(c) for c in contract.columns]
    # Rows of a table without a key are matched by order id, which is what a person looks for, or else whole.
    key = [identifier(c) for c in contract.key or ("order_id",) if c in contract.columns] or columns
    typed = ", ".join(f"cast({c} as {column.type}) as {c}" for c, column in contract.columns.items())
    here = in_intervals(contract.partition, [interval])
    ranked = f"*, row_number() over (partition by {', '.join(key)} order by {', '.join(columns)}) as _rank, true as _is"
    text = ", ".join(f"coalesce(a.{c}, b.{c})::varchar" for c in key)
    changed = {
        side: ", ".join(
            f"case when a.{c} is distinct from b.{c} then '{c} ' || coalesce({side}.{c}::varchar, 'null') end" for c in columns
        )
        for side in "ab"
    }
    sql = f"""
        with a as (select {ranked} from (select {typed} from ({made})) where {here}),
             b as (select {ranked} from (select {", ".join(columns)} from {held}) where {here})
        select concat_ws(' · ', {text}),
            case when a._is is null then null when b._is is null then 'a row' else concat_ws(', ', {changed["a"]}) end,
            case when b._is is null then null when a._is is null then 'a row' else concat_ws(', ', {changed["b"]}) end
        from a full join b on {" and ".join(f"a.{c} is not distinct from b.{c}" for c in (*key, "_rank"))}
        where a._is is null or b._is is null or ({", ".join(f"a.{c}" for c in columns)}) is distinct from
            ({", ".join(f"b.{c}" for c in columns)})
        order by all limit {SHOWN}"""
    return tuple(Difference(*row) for row in con.execute(sql).fetchall())
