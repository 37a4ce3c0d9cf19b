"""Reading the source. Belongs here: one query, once an interval, streamed as text; its fingerprint; what no interval selects.

Not here: where rows land, retries, Dagster.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pyarrow as pa
from sqlalchemy import Connection, CursorResult, NullPool, create_engine, exc, text
from sqlalchemy.engine import URL

from orders_platform.calendar import Calendar
from orders_platform.settings import SOURCE_QUERY, Settings
from orders_platform.source.errors import SourceError, explain, parse_url
from orders_platform.source.fingerprint import FINGERPRINT_COLUMNS, Fingerprint, Tally
from orders_platform.source.render import COLUMNS, batches
from orders_platform.source.slots import slot

CHUNK_ROWS = 50_000
TOTAL_QUERY = "select count(*) from orders"
# Rows fetched and turned into Arrow at once: small pieces stay in the processor's cache, at a round trip each.
_PIECE_ROWS = 500
# A timestamp without zone compares with :start and :end as UTC only where the session's zone is UTC.
_SESSION = {
    "sqlite": "pragma query_only = on",
    "postgresql": "set time zone 'UTC'",
    "mysql": "set time_zone = '+00:00'",
    "mariadb": "set time_zone = '+00:00'",
}


@dataclass(frozen=True)
class SourceCheck:
    """Source rows by whether an interval selects them.

    Attributes:
        total: All source rows; None when no query that counts them is known.
        before: Rows dated before the calendar.
        within: Rows that the calendar's days select.
        after: Rows dated after the calendar; 0 while its end is open.
        unselectable: Rows that no interval can ever select: no date or an unreadable one. None when total is.
    """

    total: int | None
    before: int
    within: int
    after: int
    unselectable: int | None


@dataclass(frozen=True)
class Reader:
    """One SQL query over one database, read for one window at a time.

    :start and :end are the window's first instant and the first instant after it: on SQLite text 'YYYY-MM-DD HH:MM:SS'
    in UTC, so compare it with text of that form; elsewhere a timestamp with time zone, in UTC.

    Attributes:
        url: SQLAlchemy URL.
        query: One SELECT with :start and :end, whose result has the columns of COLUMNS, in any order, of any type.
        total_query: One SELECT that counts every source row; empty when there is none.
        connections: Readers at once, over all processes of this machine that share locks_root.
        wait_seconds: How long to wait for a free connection.
        locks_root: Folder of the slot files.
    """

    url: str = field(repr=False)
    query: str
    total_query: str
    connections: int
    wait_seconds: float
    locks_root: Path

    def capture(self, interval: str, start: datetime, end: datetime, chunk_rows: int = CHUNK_ROWS) -> Iterator[pa.RecordBatch]:
        """Rows of the window as received, in one statement, streamed. No row, no batch.

        **Shape**: record batches of about `chunk_rows` rows, the columns of COLUMNS, all text, rendered by `render`.

        Args:
            interval: The interval that the window belongs to; named in errors.
            start: First instant of the window, with its zone.
            end: First instant after the window, with its zone.
            chunk_rows: Rows a batch, and so in memory at once.

        Raises:
            SourceError: Permanent: no such table, a missing column, wrong SQL, no such database file.
            SourceUnavailable: Transient: the source is down or locked, or all connections are in use.
        """
        yield from self._batches(f"raw_orders {interval}", self.query, COLUMNS, start, end, chunk_rows)

    def fingerprint(self, interval: str, start: datetime, end: datetime) -> Fingerprint:
        """What the source holds in the window now, comparable with the fingerprint of what was landed.

        Reads the few columns it needs and sums their text by the same code as for landed files: exact on any database.

        Raises:
            SourceError: As for capture.
            SourceUnavailable: As for capture.
        """
        tally = Tally()
        query = f"select {', '.join(FINGERPRINT_COLUMNS)} from ({_bare(self.query)}) as captured"
        for part in self._batches(f"raw_orders {interval}", query, FINGERPRINT_COLUMNS, start, end, CHUNK_ROWS):
            tally.add(part)
        return tally.fingerprint()

    def check(self, calendar: Calendar) -> SourceCheck:
        """Count the source rows that no interval selects.

        Raises:
            SourceError: As for capture.
            SourceUnavailable: As for capture.
        """
        first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
        start = calendar.window(calendar.start.isoformat())[0]
        end = last if calendar.end is None else calendar.window(calendar.end.isoformat())[1]
        what = "the check of the source"
        counted = f"select count(*) from ({_bare(self.query)}) as captured"
        with self._connected(what) as connection:
            before, within, after = (
                self._executed(connection, what, counted, self._window(connection, *window)).scalar_one()
                for window in ((first, start), (start, end), (end, last))
            )
            total = None
            if self.total_query:
                total = int(self._executed(connection, what, self.total_query, {}).scalar_one())
        return SourceCheck(total, before, within, after, None if total is None else total - before - within - after)

    @contextmanager
    def _connected(self, what: str) -> Iterator[Connection]:
        """A read-only connection in a slot, closed whatever happens; driver errors leave as ours."""
        url = parse_url(self.url)
        # Named by the whole URL: a hash, so that the slot file shows nothing of it.
        name = f"source-{hashlib.sha256(self.url.encode()).hexdigest()[:12]}"
        with slot(self.locks_root, name, self.connections, self.wait_seconds, what):
            try:
                arguments = {"check_same_thread": False} if url.get_backend_name() == "sqlite" else {}
                engine = create_engine(_existing(url, what), poolclass=NullPool, connect_args=arguments)
                with engine.connect() as connection:
                    connection.execution_options(postgresql_readonly=True)
                    if statement := _SESSION.get(connection.dialect.name):
                        connection.exec_driver_sql(statement)
                    yield connection
            except (exc.SQLAlchemyError, ImportError) as error:
                raise explain(error, what, url) from error

    def _window(self, connection: Connection, start: datetime, end: datetime) -> dict[str, Any]:
        bounds = {"start": start.astimezone(UTC), "end": end.astimezone(UTC)}
        if connection.dialect.name != "sqlite":
            return dict(bounds)
        return {name: bound.replace(tzinfo=None).isoformat(" ", "seconds") for name, bound in bounds.items()}

    def _executed(self, connection: Connection, what: str, query: str, window: Mapping[str, Any]) -> CursorResult[Any]:
        statement = text(query)
        asked = set(statement.compile().params)
        if asked != set(window):
            wanted = " and ".join(f":{name}" for name in window) or "no parameter"
            got = ", ".join(f":{name}" for name in sorted(asked)) or "none"
            setting = "ORDERS_SOURCE_QUERY" if window else "ORDERS_SOURCE_TOTAL_QUERY"
            raise SourceError(f"{what}: {setting} must use {wanted}, and uses {got}.", f"Correct {setting}.")
        return connection.execute(statement, window)

    def _batches(
        self, what: str, query: str, columns: Sequence[str], start: datetime, end: datetime, chunk_rows: int
    ) -> Iterator[pa.RecordBatch]:
        with self._connected(what) as connection:
            connection.execution_options(stream_results=True, yield_per=_PIECE_ROWS)
            result = self._executed(connection, what, query, self._window(connection, start, end))
            order = _positions(list(result.keys()), columns, what)
            pieces = result.partitions(min(chunk_rows, _PIECE_ROWS))
            yield from batches(cast("Iterator[Sequence[Sequence[Any]]]", pieces), order, columns, chunk_rows)


def reader_of(values: Settings) -> Reader:
    """The reader these settings describe. Table `orders` is counted only where the default query reads it."""
    return Reader(
        url=values.source_url,
        query=values.source_query,
        total_query=values.source_total_query or (TOTAL_QUERY if values.source_query == SOURCE_QUERY else ""),
        connections=values.source_connections,
        wait_seconds=values.source_wait_seconds,
        locks_root=values.locks_root,
    )


def _bare(query: str) -> str:
    return query.strip().rstrip(";").rstrip()


def _positions(found: list[str], columns: Sequence[str], what: str) -> list[int]:
    """Where each column stands in the result; names compare without case.

    Raises:
        SourceError: A column is missing or there twice.
    """
    names = [name.lower() for name in found]
    if missing := [name for name in columns if name not in names]:
        raise SourceError(
            f"{what}: the source query lacks {', '.join(missing)}; it has {', '.join(found)}.",
            "Correct ORDERS_SOURCE_QUERY: name the columns with `as`.",
        )
    if twice := [name for name in columns if names.count(name) > 1]:
        raise SourceError(
            f"{what}: the source query returns {', '.join(twice)} more than once.", "Correct ORDERS_SOURCE_QUERY."
        )
    return [names.index(name) for name in columns]


def _existing(url: URL, what: str) -> URL:
    """The URL; a SQLite file must exist, for connecting would make an empty one.

    Raises:
        SourceError: No such file.
    """
    if url.get_backend_name() != "sqlite" or not url.database or url.database.startswith(("file:", ":memory:")):
        return url
    path = Path(url.database).absolute()
    if not path.is_file():
        raise SourceError(
            f"{what}: there is no source database {path}.",
            "Run `orders source init`, or set ORDERS_SOURCE_URL to your database.",
        )
    # rw, not ro: a reader must be able to roll back what a killed writer left; query_only keeps it from writing.
    return url.set(database=f"file:{quote(str(path))}", query={**url.query, "mode": "rw", "uri": "true"})
