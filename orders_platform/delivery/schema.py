"""Where the ledger is stored. Belongs here: its two tables and how each database is opened and locked.

Not here: what the rows mean (states.py) or how they change (ledger.py).
"""

import zlib
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

BUSY_SECONDS = 60
LOCKS = 0x0DE1
"""Upper half of our Postgres advisory lock numbers."""

METADATA = sa.MetaData()
DELIVERIES = sa.Table(
    "deliveries",
    METADATA,
    sa.Column("idempotency_key", sa.String(200), primary_key=True),
    sa.Column("export", sa.String(63), nullable=False),
    sa.Column("week", sa.String(10), nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("location", sa.Text, nullable=False),
    sa.Column("publication_id", sa.String(36), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("supersedes", sa.String(200)),
    sa.Column("channel", sa.Text),
    sa.Column("contact", sa.Text),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("may_be_received", sa.Boolean, nullable=False),
    sa.Column("claim_id", sa.String(36)),
    sa.Column("claimed_at", sa.DateTime),
    sa.Column("lease_until", sa.DateTime),
    sa.Column("delivered_at", sa.DateTime),
    sa.Column("receipt", sa.JSON),
    sa.Column("detail", sa.Text),
    sa.Column("opened_at", sa.DateTime, nullable=False),
    sa.Column("released_at", sa.DateTime),
    sa.UniqueConstraint("export", "week", "revision"),
)
TRANSITIONS = sa.Table(
    "transitions",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("idempotency_key", sa.String(200), sa.ForeignKey("deliveries.idempotency_key"), nullable=False, index=True),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("who", sa.Text),
    sa.Column("detail", sa.Text),
    sa.Column("recorded_at", sa.DateTime, nullable=False),
)


def engine_of(url: sa.URL) -> sa.Engine:
    """An engine whose transactions on SQLite are durable and exclusive from their first statement.

    NullPool: a connection lives as long as one transaction, so forks and killed workers leave nothing behind.
    """
    is_sqlite = url.get_backend_name() == "sqlite"
    engine = sa.create_engine(url, poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS} if is_sqlite else {})
    if is_sqlite:
        sa.event.listen(engine, "connect", _set_up_sqlite)
        sa.event.listen(engine, "begin", _begin_immediate)
    return engine


def lock(con: sa.Connection, name: str) -> None:
    """Keep other transactions on this name out until this one ends; on SQLite it has the whole ledger already."""
    if con.dialect.name == "postgresql":
        con.execute(sa.select(sa.func.pg_advisory_xact_lock((LOCKS << 32) + zlib.crc32(name.encode()))))


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    """Durable commits, readers beside a writer, and no implicit BEGIN of the driver's own."""
    connection.isolation_level = None
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    connection.execute("pragma foreign_keys = on")


def _begin_immediate(con: sa.Connection) -> None:
    con.exec_driver_sql("begin immediate")
