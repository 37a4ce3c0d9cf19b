"""The same promises on a Postgres server of its own, on loopback. Skips where Postgres or its driver is not installed."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from orders_platform.calendar import Calendar
from orders_platform.settings import SOURCE_QUERY
from orders_platform.source.errors import SourceError, SourceUnavailable
from orders_platform.source.fill import fill, rows_there
from orders_platform.source.generate import generated_day
from orders_platform.source.reader import Reader

pytest.importorskip("psycopg", reason="the Postgres driver (psycopg) is not installed")
PASSWORD = "s3cret-word"
DAY = ("2026-01-05", datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 6, tzinfo=UTC))


def program(name: str) -> str | None:
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(found[-1]) if found else None)


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, Callable[..., None]]]:
    """URL of a fresh server whose own time zone is not UTC, and its pg_ctl."""
    initdb, pg_ctl = program("initdb"), program("pg_ctl")
    if not initdb or not pg_ctl:
        pytest.skip("Postgres (initdb, pg_ctl) is not installed")
    user = None
    if os.getuid() == 0:
        user = next((name for name in ("postgres", "nobody") if name in {entry.pw_name for entry in pwd.getpwall()}), None)
        if user is None:
            pytest.skip("Postgres does not run as root, and there is no user postgres or nobody")
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        data, secret = Path(folder) / "data", Path(folder) / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o600)
        if user:
            shutil.chown(folder, user)
            shutil.chown(secret, user)
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off -c timezone=America/New_York"

        def control(*arguments: str) -> None:
            command = [pg_ctl, "-D", str(data), "-w", "-l", f"{folder}/log", "-o", options, *arguments]
            subprocess.run(command, check=True, capture_output=True, user=user, cwd=folder)

        subprocess.run(
            [initdb, "-D", str(data), "-U", "ann", "-A", "scram-sha-256", "--pwfile", str(secret), "-E", "UTF8", "--locale=C"],
            check=True, capture_output=True, user=user, cwd=folder,
        )  # fmt: skip
        control("start")
        try:
            yield f"postgresql+psycopg://ann:{PASSWORD}@127.0.0.1:{port}/postgres", control
        finally:
            control("stop", "-m", "immediate")


@pytest.fixture
def shop(server: tuple[str, Callable[..., None]], tmp_path: Path) -> Callable[..., Reader]:
    """A reader of table `orders` with typed columns, holding these rows."""

    def made(*rows: str, instant: str = "timestamptz") -> Reader:
        with create_engine(server[0]).begin() as connection:
            connection.execute(text("drop table if exists orders"))
            connection.execute(
                text(
                    f"create table orders (order_id bigint, customer_id uuid, ordered_at {instant}, updated_at {instant}, "
                    "country char(2), currency text, status text, gross_amount numeric, discount_amount numeric(18, 4))"
                )
            )
            for row in rows:
                connection.execute(text(f"insert into orders values ({row})".replace(":", r"\:")))
        return Reader(server[0], SOURCE_QUERY, "select count(*) from orders", 2, 1.0, tmp_path / "locks")

    return made


def row(moment: str, amount: str = "1.50") -> str:
    return f"1, null, {moment}, {moment}, 'GB', 'GBP', 'paid', {amount}, 0.5"


def captured(reader: Reader) -> list[dict[str, Any]]:
    return [line for part in reader.capture(*DAY) for line in part.to_pylist()]


def test_typed_columns_land_as_text_with_every_digit(shop: Callable[..., Reader]) -> None:
    amounts = ["12345678901234567.89", "0.10", "0.000000000000000000001", "1e3"]
    found = captured(shop(*(row("'2026-01-05 12:00:00.25+02'", amount) for amount in amounts)))
    assert [line["gross_amount"] for line in found] == [*amounts[:3], "1000"]
    assert {line["discount_amount"] for line in found} == {"0.5000"}
    assert {(line["order_id"], line["customer_id"], line["ordered_at"]) for line in found} == {
        ("1", None, "2026-01-05 10:00:00.250000")
    }


@pytest.mark.parametrize("instant", ["timestamptz", "timestamp"])
def test_midnight_is_utc_whatever_the_servers_own_zone(shop: Callable[..., Reader], instant: str) -> None:
    zone = "+00" if instant == "timestamptz" else ""
    moments = ["2026-01-04 23:59:59", "2026-01-05 00:00:00", "2026-01-05 23:59:59", "2026-01-06 00:00:00"]
    found = captured(shop(*(row(f"'{moment}{zone}'") for moment in moments), instant=instant))
    assert [line["ordered_at"] for line in found] == moments[1:3]


def test_rows_without_a_date_are_counted(shop: Callable[..., Reader]) -> None:
    reader = shop(row("null"), row("'2025-01-01Z'"), row("'2026-01-05Z'"), row("'2026-01-12Z'"))
    found = reader.check(Calendar(date(2026, 1, 5), date(2026, 1, 11)))
    assert (found.total, found.before, found.within, found.after, found.unselectable) == (4, 1, 1, 1, 1)


def test_a_source_is_read_only(shop: Callable[..., Reader]) -> None:
    reader = shop(row("'2026-01-05Z'"))
    with create_engine(reader.url).begin() as connection:
        connection.execute(text("create sequence if not exists taken"))
    with pytest.raises(SourceError, match="read-only"):
        list(replace(reader, query=f"{SOURCE_QUERY} and nextval('taken') > 0").capture(*DAY))


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (SOURCE_QUERY.replace("from orders", "from shop"), 'relation "shop" does not exist'),
        (SOURCE_QUERY.replace("currency,", ""), "lacks currency"),
        (SOURCE_QUERY.replace("select", "selct"), "syntax error"),
        (SOURCE_QUERY.replace("ordered_at >=", "status >="), "operator does not exist"),
    ],
)
def test_a_wrong_query_is_permanent(shop: Callable[..., Reader], query: str, says: str) -> None:
    with pytest.raises(SourceError, match=says):
        list(replace(shop(), query=query).capture(*DAY))


def test_a_wrong_password_is_permanent_and_never_shown(shop: Callable[..., Reader]) -> None:
    reader = shop()
    with pytest.raises(SourceError, match="authentication failed") as caught:
        list(replace(reader, url=reader.url.replace(PASSWORD, "not-it")).capture(*DAY))
    assert "not-it" not in str(caught.value)


def test_a_generated_source_has_one_fingerprint_with_what_is_captured(server: tuple[str, Any], tmp_path: Path) -> None:
    assert fill(server[0], generated_day(date(2026, 1, 5), 3_000, 1)) == rows_there(server[0])
    reader = Reader(server[0], SOURCE_QUERY, "", 1, 1.0, tmp_path / "locks")
    sqlite = replace(reader, url=f"sqlite:///{tmp_path / 'source.db'}")
    fill(sqlite.url, generated_day(date(2026, 1, 5), 3_000, 1))
    assert captured(reader) == captured(sqlite)
    assert reader.fingerprint(*DAY) == sqlite.fingerprint(*DAY)


def test_a_server_that_goes_away_is_transient_and_the_slot_comes_back(
    shop: Callable[..., Reader], server: tuple[str, Callable[..., None]], tmp_path: Path
) -> None:
    fill(server[0], generated_day(date(2026, 1, 5), 60_000, 1))
    reader = Reader(server[0], SOURCE_QUERY, "", 1, 1.0, tmp_path / "locks")
    capture = reader.capture(*DAY, chunk_rows=500)
    next(capture)
    server[1]("stop", "-m", "immediate")
    with pytest.raises(SourceUnavailable):
        list(capture)
    with pytest.raises(SourceUnavailable, match="refused"):
        list(reader.capture(*DAY))
    server[1]("start")
    assert len(captured(reader)) > 60_000
