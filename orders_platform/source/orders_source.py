"""The source as a Dagster resource. Belongs here: its fields and where they come from. Not here: reading (reader.py)."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import dagster as dg
import pyarrow as pa
from pydantic import Field

from orders_platform.calendar import Calendar
from orders_platform.settings import settings
from orders_platform.source.fingerprint import Fingerprint
from orders_platform.source.reader import CHUNK_ROWS, Reader, SourceCheck, reader_of
from orders_platform.source.render import COLUMNS

__all__ = ["COLUMNS", "OrdersSource", "reader_of"]


class OrdersSource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Any SQL database, read by one query. Every method opens a connection of its own, in the source's connection budget.

    An empty field means the setting, read when used, so that no password is stored or shown by Dagster.
    """

    url: str = Field(default="", description="SQLAlchemy URL without a password; empty: ORDERS_SOURCE_URL.")
    query: str = Field(default="", description="One SELECT with :start and :end; empty: ORDERS_SOURCE_QUERY.")

    @property
    def reader(self) -> Reader:
        """What does the reading."""
        found = settings()
        return reader_of(replace(found, source=self.url or found.source, source_query=self.query or found.source_query))

    def capture(self, interval: str, start: datetime, end: datetime, chunk_rows: int = CHUNK_ROWS) -> Iterator[pa.RecordBatch]:
        """Rows of the window as received; see Reader.capture."""
        return self.reader.capture(interval, start, end, chunk_rows)

    def fingerprint(self, interval: str, start: datetime, end: datetime) -> Fingerprint:
        """What the source holds in the window now; see Reader.fingerprint."""
        return self.reader.fingerprint(interval, start, end)

    def check(self, calendar: Calendar) -> SourceCheck:
        """Source rows that no interval selects; see Reader.check."""
        return self.reader.check(calendar)
