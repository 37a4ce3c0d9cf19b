"""A DuckLake's password and its object store's key reach no message, log, event or table; files on S3 hold the same rows."""

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import duckdb
import psycopg
import pytest

from orders_platform.drills.faults import at_statement
from orders_platform.errors import SettingsError
from orders_platform.settings import Settings, settings
from orders_platform.warehouse.claims import LakeUnavailable
from orders_platform.warehouse.lake import PREFIX, Lake
from tests import lakes
from tests.conftest import Workspace, failure_of
from tests.delivery.partners import SECRET, S3Server
from tests.servers import POSTGRES
from tests.warehouse.kit import CALENDAR, DAYS, lines, publish, sound, swap

PASSWORD = "hunter2"
pytestmark = pytest.mark.usefixtures("lake_server")


@pytest.fixture
def catalog(tmp_path: Path) -> str:
    """A catalog's connection string with a password, which the server accepts as any other."""
    return f"{lakes.url_of(tmp_path).removeprefix(PREFIX)} password={PASSWORD}"


def allow(catalog: str, *, connections: bool) -> None:
    """Stop the catalog, or let it go on."""
    name = psycopg.conninfo.conninfo_to_dict(catalog)["dbname"]
    with psycopg.connect(catalog, dbname="postgres", autocommit=True) as con:
        con.execute(f"alter database {name} with allow_connections {connections}")
        if not connections:
            con.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name])


def dump(catalog: str) -> str:
    """Everything that the catalog holds, as text."""
    assert POSTGRES
    done = subprocess.run([POSTGRES / "pg_dump", "-d", catalog], capture_output=True, text=True, check=True)
    return done.stdout


def test_a_catalog_that_stops_midway_is_explained_without_its_password(
    catalog: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORDERS_WAREHOUSE_URL", PREFIX + catalog)
    settings.cache_clear()
    workspace.put_days(DAYS[0])
    assert workspace.materialize(DAYS[0]).success
    with at_statement("insert into orders.revenue_daily", partial(allow, catalog, connections=False)):
        failed = workspace.materialize(DAYS[0], assets=("revenue_daily",))
    said = failure_of(failed, "revenue_daily")
    assert "revenue_daily 2026-01-05" in said
    assert "The catalog of the warehouse" in said
    done = [workspace.run("orders", *command) for command in (["status"], ["reconcile", DAYS[0]])]
    allow(catalog, connections=True)
    done.append(workspace.run("orders", "query", "from duckdb_databases(), duckdb_settings()", "--limit", "1000"))
    assert [run.returncode for run in done] == [1, 1, 0]
    texts = [said, dump(catalog), repr(workspace.warehouse), *(run.stdout + run.stderr for run in done)]
    assert "fct_orders" in texts[1]
    assert [text for text in texts if PASSWORD in text] == []
    files = [path for path in workspace.home.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert [path for path in files if PASSWORD.encode() in path.read_bytes()] == []


def test_a_catalog_that_refuses_to_be_read_is_named_without_its_password(tmp_path: Path, catalog: str) -> None:
    for wrong in (f"{catalog} dbname=nowhere connect_timeout=1", f"{catalog} nonsense", f"postgresql://ann:{PASSWORD}@[bad"):
        values = Settings.read({"ORDERS_HOME": str(tmp_path), "ORDERS_WAREHOUSE_URL": PREFIX + wrong})
        warehouse = Lake.from_settings(values)
        with pytest.raises((LakeUnavailable, SettingsError)) as caught, warehouse.read():
            pass
        chain = [caught.value, caught.value.__cause__]
        assert PASSWORD not in "".join(f"{error!r} {error}" for error in chain)


@pytest.fixture(scope="module")
def store() -> Iterator[S3Server]:
    made = S3Server()
    yield made
    made.close()


def test_the_rows_of_a_lake_on_s3_are_those_of_a_file_and_its_key_is_shown_to_nobody(
    tmp_path: Path, catalog: str, store: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in store.environ.items():
        monkeypatch.setenv(name, value)
    store.client().create_bucket(Bucket="lake")
    warehouse = Lake(PREFIX + catalog, CALENDAR, tmp_path / "locks", 20, 1, data_path="s3://lake/orders/")
    local = Lake(lakes.url_of(tmp_path / "local"), CALENDAR, tmp_path / "locks", 20, 1, data_path=f"{tmp_path}/lake/")
    for one in (warehouse, local):
        publish(one, swap("sold", lines(DAYS[:2], count=20), DAYS[:2]))
        publish(one, swap("sold", lines(DAYS[:1], "9.90", 20), DAYS[:1]))
    assert sound(warehouse) == sound(local)
    names = [found["Key"] for found in store.client().list_objects_v2(Bucket="lake")["Contents"]]
    assert {name.split("/")[3] for name in names} == {f"order_date={day}" for day in DAYS[:2]}
    with warehouse.read() as con:
        shown = [con.execute(f"from {what}()").fetchall() for what in ("duckdb_settings", "duckdb_secrets", "duckdb_databases")]
    nowhere = Lake(lakes.url_of(tmp_path / "nowhere"), CALENDAR, tmp_path / "locks", 20, 1, data_path="s3://nowhere/")
    with pytest.raises(duckdb.IOException, match="404") as caught:
        publish(nowhere, swap("sold", lines(DAYS[:2], count=20), DAYS[:2]))
    assert [text for text in (*map(str, shown), dump(catalog), str(caught.value)) if SECRET in text or PASSWORD in text] == []
