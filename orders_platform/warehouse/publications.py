"""Publications: what is published, by whom, from what. Belongs here: the platform schema and the one way to read and append it.

Not here: when a publication is made (swap.py) or whether it may be read (gates.py). Nothing here is ever updated or deleted.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Context, Decimal
from typing import Any

import duckdb

from orders_platform.calendar import Calendar
from orders_platform.errors import OrdersError
from orders_platform.warehouse.contract import identifier, inline, literal, literals

EXACT = Context(prec=60)
"""Decimal arithmetic that never rounds money; the default context does at 28 digits."""

Pair = tuple[str, str]
"""(asset, interval)"""

SCHEMA = """
create schema if not exists orders;
create schema if not exists platform;
create schema if not exists published;
create table if not exists platform.calendar (start_date date, end_date date, timezone varchar);
create table if not exists platform.publications (
  publication_id uuid, asset varchar, "interval" varchar, revision integer, companion_of varchar, step_days integer,
  run_id varchar, code_version varchar, git_commit varchar, digest varchar, digest_columns varchar[], row_count bigint,
  measures map(varchar, decimal(38,4)),
  inputs struct(asset varchar, "interval" varchar, publication_id uuid, digest varchar)[],
  location varchar, sha256 varchar, published_at timestamp, duration_seconds double);
create table if not exists platform.verdicts (
  publication_id uuid, asset varchar, "interval" varchar, check_name varchar, attempt integer, passed boolean, blocking boolean,
  left_value varchar, right_value varchar, difference varchar, details varchar, run_id varchar, judged_at timestamp);
create table if not exists platform.quarantines (
  asset varchar, "interval" varchar, revision integer, is_held boolean, who varchar, reason varchar,
  intervention_id uuid, recorded_at timestamp);
create table if not exists platform.interventions (
  intervention_id uuid, kind varchar, asset varchar, intervals varchar[], who varchar, reason varchar, details varchar,
  recorded_at timestamp);
create table if not exists platform.alarms (
  alarm_id uuid, kind varchar, asset varchar, intervals varchar[], key varchar, detail varchar, remedy varchar,
  closure struct(asset varchar, "interval" varchar, state varchar)[], run_id varchar, recorded_at timestamp);
create table if not exists platform.alarm_posts (alarm_id uuid, is_posted boolean, detail varchar, recorded_at timestamp);
create or replace view platform.current_publications as
  select * from platform.publications
  qualify row_number() over (partition by asset, "interval" order by revision desc) = 1;
create or replace view platform.held as
  select * from platform.quarantines
  qualify row_number() over (partition by asset, "interval" order by revision desc) = 1 and is_held;
create or replace view platform.failing as
  select * from platform.verdicts
  qualify row_number() over (partition by publication_id, check_name order by attempt desc) = 1 and blocking and not passed;
create or replace view platform.readable as
  select * from platform.current_publications p
  where not exists (from platform.held h where h.asset = coalesce(p.companion_of, p.asset) and h."interval" = p."interval")
    and not exists (
      from platform.failing f join platform.current_publications o using (publication_id)
      where o.asset = coalesce(p.companion_of, p.asset) and o."interval" = p."interval");
create or replace view platform.reads as
  select p.asset, p."interval", p.publication_id, i.input.asset as input_asset, i.input."interval" as input_interval,
    i.input.publication_id as input_publication_id, i.input.digest as input_digest
  from platform.current_publications p, unnest(p.inputs) as i(input);
create or replace view published.coverage as
  with recursive edges as materialized (from platform.reads), stale(asset, "interval") as (
    select r.asset, r."interval" from edges r
    left join platform.current_publications p on p.asset = r.input_asset and p."interval" = r.input_interval
    where p.digest is distinct from r.input_digest
    union
    select r.asset, r."interval" from edges r
    join stale s on s.asset = r.input_asset and s."interval" = r.input_interval
  ), expected as (
    select a.asset, a.companion_of, day::date::varchar as "interval"
    from (select asset, any_value(companion_of) as companion_of, max(step_days) as step_days
          from platform.publications group by asset) a,
      platform.calendar c,
      unnest(generate_series(
        c.start_date::timestamp,
        least(c.end_date, timezone(c.timezone, now())::date - 1)::timestamp,
        to_days(a.step_days))) as g(day)
    where a.step_days = 1 or day + to_days(a.step_days) <= timezone(c.timezone, now())::date::timestamp
  )
  select e.asset, e."interval", p.publication_id is not null as is_published,
    p.publication_id is not null and s.asset is null as is_current,
    p.publication_id is not null and r.publication_id is null as is_held,
    p.row_count, p.published_at, p.publication_id
  from expected e
  left join platform.current_publications p on p.asset = e.asset and p."interval" = e."interval"
  left join platform.readable r on r.publication_id = p.publication_id
  left join (select distinct asset, "interval" from stale) s
    on s.asset = coalesce(e.companion_of, e.asset) and s."interval" = e."interval";
"""
VERSION = 2
"""Of the platform schema, kept as a comment: an earlier warehouse is completed, a later one left alone. Raised with SCHEMA."""


@dataclass(frozen=True)
class Read:
    """One input of a publication, as it was read."""

    asset: str
    interval: str
    publication_id: str
    digest: str


@dataclass(frozen=True)
class Publication:
    """One atomic swap of one (table, interval).

    Attributes:
        revision: Previous + 1, set under the claim; the highest is current.
        digest: "canary.rows.sum" over digest_columns: equal content, equal digest, in any row order.
        measures: "column" or "column CUR" -> exact sum.
        location: Landed or exported file relative to its root, with its sha256; None for tables.
        published_at: UTC.
    """

    asset: str
    interval: str
    run_id: str
    code_version: str
    digest: str
    row_count: int
    git_commit: str | None = None
    revision: int = 1
    companion_of: str | None = None
    step_days: int = 1
    digest_columns: tuple[str, ...] = ()
    measures: Mapping[str, Decimal] = field(default_factory=dict)
    inputs: tuple[Read, ...] = ()
    location: str | None = None
    sha256: str | None = None
    duration_seconds: float = 0.0
    publication_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    published_at: datetime = field(default_factory=lambda: datetime.now(UTC).replace(tzinfo=None))


FIELDS = tuple(Publication.__dataclass_fields__)
SHAPE = {
    "asset": "VARCHAR",
    "interval": "VARCHAR",
    "run_id": "VARCHAR",
    "code_version": "VARCHAR",
    "digest": "VARCHAR",
    "row_count": "BIGINT",
    "git_commit": "VARCHAR",
    "revision": "INTEGER",
    "companion_of": "VARCHAR",
    "step_days": "INTEGER",
    "digest_columns": ["VARCHAR"],
    "measures": "MAP(VARCHAR, DECIMAL(38,4))",
    "inputs": [{"asset": "VARCHAR", "interval": "VARCHAR", "publication_id": "UUID", "digest": "VARCHAR"}],
    "location": "VARCHAR",
    "sha256": "VARCHAR",
    "duration_seconds": "DOUBLE",
    "publication_id": "UUID",
    "published_at": "TIMESTAMP",
}
"""A publication as JSON, in the notation of DuckDB's from_json; amounts travel as text."""


class CalendarMismatch(OrdersError):
    """The warehouse was built with other days; the same date would name other rows."""


def one(con: Any, sql: str, parameters: Sequence[Any] = ()) -> Any:
    """The first row, or None; fetches all, because a half-read result blocks the connection (measured on 1.5.5)."""
    rows = con.execute(sql, list(parameters)).fetchall()
    return rows[0] if rows else None


@contextmanager
def transaction(con: Any) -> Iterator[None]:
    """All of the block or nothing; an error leaves as it was raised."""
    con.execute("begin")
    try:
        yield
        con.execute("commit")
    except BaseException:
        with suppress(duckdb.Error):  # a COMMIT that failed has rolled back already, and its error says why
            con.execute("rollback")
        raise


def prepare(con: Any, calendar: Calendar) -> None:
    """Create or complete the platform schema, and record the calendar (the end may move; zone and start may not).

    Raises:
        CalendarMismatch: The warehouse was built with another zone or start; nothing is changed.
    """
    with transaction(con):
        con.execute(SCHEMA)
        con.execute(f"comment on view published.coverage is '{VERSION:d}'")
        if _recorded(con, calendar):
            con.execute("update platform.calendar set end_date = ?", [calendar.end])
        else:
            con.execute("insert into platform.calendar values (?, ?, ?)", [calendar.start, calendar.end, calendar.timezone])


def is_prepared(con: Any, calendar: Calendar) -> bool:
    """Whether the platform schema is there, of this version or a later one, built with this calendar and end.

    Raises:
        CalendarMismatch: The warehouse was built with another zone or start.
    """
    found = one(
        con,
        "select try_cast(comment as integer) from duckdb_views() where database_name = current_database() "
        "and schema_name = 'published' and view_name = 'coverage'",
    )
    if not found or (found[0] or 0) < VERSION:
        return False
    recorded = _recorded(con, calendar)
    return bool(recorded and recorded[1] == calendar.end)


def _recorded(con: Any, calendar: Calendar) -> Any:
    """Start, end and zone that the warehouse was built with; None where none are recorded."""
    found = one(con, "from platform.calendar")
    if not found:
        return None
    start, _, timezone = found
    if (start, timezone) != (calendar.start, calendar.timezone):
        raise CalendarMismatch(
            f"This warehouse was built with ORDERS_START_DATE={start} and ORDERS_BUSINESS_TIMEZONE={timezone}; "
            f"the settings say {calendar.start} and {calendar.timezone}.",
            "Set them back, or use another ORDERS_HOME for the other calendar.",
        )
    return found


def current(con: Any, pairs: Iterable[Pair]) -> dict[Pair, Publication]:
    """The current publication of each pair that has one."""
    wanted: dict[str, list[str]] = {}
    for asset, interval in pairs:
        wanted.setdefault(asset, []).append(interval)
    found = {}
    for asset, intervals in wanted.items():
        rows = _fetch(
            con,
            f"""select * from platform.publications where asset = {literal(asset)} and "interval" in ({literals(intervals)})
                qualify row_number() over (partition by "interval" order by revision desc) = 1""",
        )
        found.update({(asset, row.interval): row for row in rows})
    return found


def history(con: Any, asset: str, interval: str) -> list[Publication]:
    """Every publication of the pair, newest first."""
    return _fetch(
        con, 'select * from platform.publications where asset = ? and "interval" = ? order by revision desc', [asset, interval]
    )


def all_current(con: Any) -> dict[Pair, Publication]:
    """Every current publication."""
    return {(p.asset, p.interval): p for p in _fetch(con, "from platform.current_publications")}


def append(con: Any, publications: Sequence[Publication]) -> None:
    """Insert the publication rows, inside the caller's transaction."""
    rows = [
        {
            **{name: getattr(p, name) for name in FIELDS},
            "inputs": [vars(i) for i in p.inputs],
            "measures": {name: f"{value:f}" for name, value in p.measures.items()},
            "published_at": p.published_at.isoformat(),
        }
        for p in publications
    ]
    con.execute(f"insert into platform.publications by name {inline(rows, SHAPE)}")


def publish(con: Any, publication: Publication, fence: Callable[[], None]) -> Publication:
    """Append one publication as the next revision of its pair, in its own transaction; for landed and exported files."""
    with transaction(con):
        old = current(con, [(publication.asset, publication.interval)]).values()
        made = replace(publication, revision=max((p.revision for p in old), default=0) + 1)
        append(con, [made])
        fence()
    return made


def exact(value: Decimal, *, is_amount: bool) -> Decimal:
    """The value without padding zeros, an amount with two decimals; by text, since a Decimal context rounds at 28 digits.

    >>> exact(Decimal("1.5000"), is_amount=True), exact(Decimal("100.0000"), is_amount=False)
    (Decimal('1.50'), Decimal('100'))
    """
    text = f"{value:f}"
    return Decimal(text.removesuffix("00") if is_amount else text.rstrip("0").rstrip(".") if "." in text else text)


def exact_measures(stored: Mapping[str, Decimal] | None) -> dict[str, Decimal]:
    """Measures as they are shown: an amount ("column CUR") with two decimals, a count with none."""
    return {name: exact(value, is_amount=" " in name) for name, value in (stored or {}).items()}


def _fetch(con: Any, sql: str, parameters: Sequence[Any] = ()) -> list[Publication]:
    result = con.execute(sql, list(parameters))
    names = [column[0] for column in result.description]
    return [_publication(dict(zip(names, row, strict=True))) for row in result.fetchall()]


def _publication(row: dict[str, Any]) -> Publication:
    inputs = tuple(Read(i["asset"], i["interval"], str(i["publication_id"]), i["digest"]) for i in row["inputs"] or ())
    measures = exact_measures(row["measures"])
    return Publication(
        **{
            **row,
            "inputs": inputs,
            "measures": measures,
            "publication_id": str(row["publication_id"]),
            "digest_columns": tuple(row["digest_columns"] or ()),
        }
    )


def publish_view(con: Any, table: str) -> None:
    """(Re)create published.<table>: rows of publications that may be read, so never a row that no publication owns."""
    name = identifier(table)
    con.execute(
        f"create or replace view published.{name} as select * from orders.{name} where produced_by in "
        f"(select publication_id from platform.readable where asset = {literal(name)})"
    )
