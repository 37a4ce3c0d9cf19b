"""Reading a day from the SQLite source into nothing: what landing is compared with. Needs the standard library alone.

python -m benchmarks.driver SOURCE DAY
"""

import sqlite3
import sys

from benchmarks.measure import reported
from orders_platform.settings import SOURCE_QUERY


def main() -> None:
    source, day = sys.argv[1:]
    con = sqlite3.connect(source)
    cursor = con.execute(SOURCE_QUERY, {"start": f"{day} 00:00:00", "end": f"{day} 24:00:00"})
    count = 0
    while rows := cursor.fetchmany(10_000):
        count += len(rows)
    reported(rows=count)


if __name__ == "__main__":
    main()
