"""The I/O manager as a user of Dagster meets it: what assets return and receive, and what the UI is told of each interval."""

import re
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pytest

from orders_platform.assets.decorator import warehouse_asset
from orders_platform.partitions import DAILY, PREVIOUS_DAY, WEEKLY
from orders_platform.settings import settings
from orders_platform.warehouse import publications
from orders_platform.warehouse.contract import Column, TableContract
from orders_platform.warehouse.io_managers import RunNotActive, WarehouseIOManager, require_active
from orders_platform.warehouse.session import Warehouse
from orders_platform.warehouse.values import Query, Slice, Tables
from tests.conftest import Workspace, failure_of
from tests.warehouse.kit import ASIDE, DAYS, LINES

AMOUNTS = (Decimal("0.10"), Decimal("0.20"), Decimal("12345678901234567.89"))
EACH_DAY = "select interval_date as order_date, 'a' as line, 'GBP' as currency, day(interval_date)::decimal(38,2) as amount, "
EACH_DAY += "null::varchar as note from run_intervals"
ONCE = dg.RetryPolicy(max_retries=2, delay=0)


@warehouse_asset(LINES, partitions_def=DAILY)
def framed(context: dg.AssetExecutionContext) -> pd.DataFrame:
    """Three lines a day, returned as a frame."""
    rows = [(day, str(n), "GBP", amount, None) for day in context.partition_keys for n, amount in enumerate(AMOUNTS)]
    frame = pd.DataFrame(rows, columns=["order_date", "line", "currency", "amount", "note"])
    return frame.assign(order_date=pd.to_datetime(frame["order_date"]).dt.date)


@warehouse_asset(LINES, partitions_def=DAILY)
def doubled(framed: pd.DataFrame) -> pd.DataFrame:
    """Received as a frame, returned as a frame."""
    return framed.assign(amount=framed["amount"] * 2)


@warehouse_asset(LINES, companions={"put_aside": ASIDE}, partitions_def=DAILY)
def sliced(doubled: Slice) -> Tables:
    """Received as a view, published with a companion."""
    assert doubled.asset == "doubled"
    return Tables(Query("from doubled where line <> '0'"), {"put_aside": Query("from doubled where line = '0'")})


@warehouse_asset(LINES, partitions_def=DAILY)
def dated() -> Query:
    """One line a day, whose amount is the day of the month."""
    return Query(EACH_DAY)


WEEK = TableContract(
    "week", {"week": Column("DATE", "Monday"), "total": Column("BIGINT", "sum of days")}, (), ("total",), "week", step_days=7
)


@warehouse_asset(WEEK, partitions_def=WEEKLY)
def summed(dated: Slice) -> Query:
    """The seven days of a week."""
    return Query("select date_trunc('week', order_date)::date as week, sum(amount)::bigint as total from dated group by 1")


@warehouse_asset(LINES, partitions_def=DAILY, ins={"dated": dg.AssetIn(partition_mapping=PREVIOUS_DAY)})
def shifted(dated: Slice) -> Query:
    """The day before under today's date."""
    return Query("select order_date + 1 as order_date, * exclude (order_date) from dated")


def run(
    workspace: Workspace, *assets: Any, first: str = DAYS[0], last: str | None = None, manager: Any = None, only: Any = None
) -> Any:
    """Materialize in process; never raises."""
    return dg.materialize(
        list(assets),
        partition_key=None if last else first,
        tags={"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last} if last else {},
        resources={"io_manager": manager or WarehouseIOManager()},
        instance=workspace.instance,
        selection=only,
        raise_on_error=False,
    )


def events(workspace: Workspace, asset: str) -> dict[str, dg.AssetMaterialization]:
    """The newest materialization of each partition."""
    found = workspace.instance.fetch_materializations(dg.AssetKey(asset), limit=100).records
    return {
        str(record.partition_key): record.asset_materialization for record in reversed(found) if record.asset_materialization
    }


@pytest.mark.parametrize("last", [None, DAYS[1]])
def test_frames_and_views_carry_money_exactly_from_asset_to_asset(workspace: Workspace, last: str | None) -> None:
    assert run(workspace, framed, doubled, sliced, last=last).success
    for day in DAYS[: 2 if last else 1]:
        assert workspace.query("select amount from published.framed where order_date = ? order by line", day) == [
            (a,) for a in AMOUNTS
        ]
        assert workspace.query("select amount from published.sliced where order_date = ? order by line", day) == [
            (a * 2,) for a in AMOUNTS[1:]
        ]
        assert workspace.query("select amount from published.put_aside where order_date = ?", day) == [(Decimal("0.20"),)]
        current = workspace.current()
        assert [i.publication_id for i in current["doubled", day].inputs] == [current["framed", day].publication_id]
        assert current["put_aside", day].companion_of == "sliced"


def test_whole_numbers_and_nulls_survive_a_frame(workspace: Workspace) -> None:
    big = 2**62 + 1
    contract = TableContract(
        "n",
        {"order_date": Column("DATE", "d"), "k": Column("VARCHAR", "k"), "n": Column("BIGINT", "n", max_null_share=1)},
        ("k",),
    )

    @warehouse_asset(contract, partitions_def=DAILY)
    def counted() -> Query:
        keys = "(values ('a'), ('b')) as t(k)"
        return Query(f"select interval_date as order_date, k, case k when 'a' then {big} end as n from run_intervals, {keys}")

    @warehouse_asset(contract, partitions_def=DAILY)
    def counted_again(counted: pd.DataFrame) -> pd.DataFrame:
        return counted

    assert run(workspace, counted, counted_again).success
    assert workspace.query("select k, n from published.counted_again order by k") == [("a", big), ("b", None)]
    assert workspace.current()["counted", DAYS[0]].digest == workspace.current()["counted_again", DAYS[0]].digest


def test_a_user_of_the_stock_manager_changes_one_line(workspace: Workspace, tmp_path: Path) -> None:
    @dg.asset(partitions_def=DAILY, metadata={"partition_expr": "order_date", "contract": LINES})
    def stock(context: dg.AssetExecutionContext) -> pd.DataFrame:
        day = pd.to_datetime([context.partition_key]).date
        return pd.DataFrame({"order_date": day, "line": ["a"], "currency": ["GBP"], "amount": [AMOUNTS[2]], "note": [None]})

    database = tmp_path / "elsewhere" / "mine.duckdb"
    assert run(workspace, stock, manager=WarehouseIOManager(database=str(database), schema="orders")).success
    assert {path.name for path in (tmp_path / "elsewhere" / "locks").iterdir()} == {"mine.gate", "mine.lock"}
    with Warehouse.from_settings(settings(), str(database)).read() as con:
        assert con.execute("select order_date::varchar, amount from published.stock").fetchall() == [(DAYS[0], AMOUNTS[2])]
    assert ("stock", DAYS[0]) not in workspace.current()


def test_each_interval_of_a_range_carries_its_own_metadata_on_its_own_event(workspace: Workspace) -> None:
    assert run(workspace, dated, shifted, last=DAYS[2]).success
    current = workspace.current()
    for asset in ("dated", "shifted"):
        found = events(workspace, asset)
        assert sorted(found) == list(DAYS[:3])
        for day in DAYS[:3]:
            metadata = {name: value.value for name, value in found[day].metadata.items()}
            publication = current[asset, day]
            assert metadata["publication_id"] == publication.publication_id
            assert metadata["digest"] == publication.digest
            assert metadata["dagster/partition_row_count"] == publication.row_count
    before = {
        day: {name: value.value for name, value in event.metadata.items()} for day, event in events(workspace, "dated").items()
    }
    assert [before[day]["amount GBP"] for day in DAYS[:3]] == ["5.00", "6.00", "7.00"]
    assert [before[day]["amount GBP, hundredths"] for day in DAYS[:3]] == [500, 600, 700]


def test_each_interval_of_a_range_records_the_inputs_it_mapped_to_and_the_first_day_none(workspace: Workspace) -> None:
    assert run(workspace, dated, shifted, last=DAYS[2]).success
    current = workspace.current()
    assert [[i.interval for i in current["shifted", day].inputs] for day in DAYS[:3]] == [[], [DAYS[0]], [DAYS[1]]]
    assert workspace.query("select order_date::varchar, amount from published.shifted order by 1") == [
        (DAYS[1], 5),
        (DAYS[2], 6),
    ]


def test_a_single_interval_carries_its_digest_as_dagsters_data_version(workspace: Workspace) -> None:
    assert run(workspace, dated).success
    version = events(workspace, "dated")[DAYS[0]].tags or {}
    assert version["dagster/data_version"] == workspace.current()["dated", DAYS[0]].digest


def test_a_week_reads_exactly_its_seven_days_and_is_refused_when_one_is_missing(workspace: Workspace) -> None:
    assert run(workspace, dated, first="2026-01-05", last="2026-01-18").success
    assert run(workspace, dated, summed, last="2026-01-12", only=[summed]).success
    assert workspace.query("select week::varchar, total from published.summed order by 1") == [
        ("2026-01-05", 56),
        ("2026-01-12", 105),
    ]
    assert [len(workspace.current()["summed", week].inputs) for week in ("2026-01-05", "2026-01-12")] == [7, 7]
    assert run(workspace, dated, first="2026-01-19", last="2026-01-23").success
    assert run(workspace, dated, first="2026-01-25").success
    result = run(workspace, dated, summed, first="2026-01-19", only=[summed])
    assert "summed 2026-01-19 needs dated 2026-01-24, which has not been published" in failure_of(result, "summed")


def test_a_contract_error_is_not_retried_and_records_no_materialization(workspace: Workspace) -> None:
    tries = []

    @warehouse_asset(LINES, partitions_def=DAILY, retry_policy=ONCE)
    def twice() -> Query:
        tries.append(1)
        return Query(f"{EACH_DAY} union all {EACH_DAY}")

    result = run(workspace, twice, last=DAYS[1])
    assert "line = a stands 2 times" in failure_of(result, "twice")
    assert tries == [1]
    assert events(workspace, "twice") == {}


def test_a_warehouse_that_stays_busy_is_retried_and_named_with_the_interval(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORDERS_LOCK_WAIT_SECONDS", "0.1")
    settings.cache_clear()
    tries = []

    @warehouse_asset(LINES, partitions_def=DAILY, retry_policy=ONCE)
    def waiting() -> Query:
        tries.append(1)
        return Query(EACH_DAY)

    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with workspace.warehouse.write("somebody else", ["waiting"]):
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    result = run(workspace, waiting)
    done.set()
    thread.join()
    said = r"waiting 2026-01-05: (The warehouse|waiting) was held for longer than 0.1 s by .*somebody else"
    assert re.search(said, failure_of(result, "waiting"))
    assert len(tries) == 3


def test_a_frame_whose_input_moves_meanwhile_is_made_again_from_the_new_one(workspace: Workspace) -> None:
    tries = []

    @warehouse_asset(LINES, partitions_def=DAILY, retry_policy=ONCE)
    def slow(dated: pd.DataFrame) -> pd.DataFrame:
        if not tries:
            run(workspace, dated_asset)
        tries.append(dated)
        return dated

    dated_asset = dated
    assert run(workspace, dated).success
    assert run(workspace, dated, slow, only=[slow]).success
    assert len(tries) == 2
    current = workspace.current()
    assert current["dated", DAYS[0]].revision == 2
    assert current["slow", DAYS[0]].inputs[0].publication_id == current["dated", DAYS[0]].publication_id


def test_a_run_that_was_cancelled_while_it_worked_does_not_publish(workspace: Workspace) -> None:
    @warehouse_asset(LINES, partitions_def=DAILY)
    def cancelled(context: dg.AssetExecutionContext) -> Query:
        found = workspace.instance.get_run_by_id(context.run.run_id)
        assert found
        workspace.instance.report_run_canceled(found)
        return Query(EACH_DAY)

    assert "is CANCELED, so cancelled was not published" in failure_of(run(workspace, cancelled), "cancelled")
    assert ("cancelled", DAYS[0]) not in workspace.current()


def test_a_run_that_was_deleted_may_not_write(workspace: Workspace) -> None:
    result = run(workspace, dated)
    workspace.instance.delete_run(result.run_id)
    with pytest.raises(RunNotActive, match=f"Run {result.run_id} is deleted, so dated was not published"):
        require_active(workspace.instance, result.run_id, "dated")


def returning(value: Any, **options: Any) -> Any:
    metadata = options.pop("metadata", {"contract": LINES})

    @dg.asset(name="odd", metadata=metadata, **{"partitions_def": DAILY, **options})
    def odd():  # type: ignore[no-untyped-def]
        return value

    return odd


GOOD = Query(EACH_DAY)


@pytest.mark.parametrize(
    ("asset", "said"),
    [
        (returning(None), "odd returned a NoneType"),
        (returning([1, 2]), "odd returned a list"),
        (returning(GOOD, metadata={}), "odd has no contract"),
        (returning(GOOD, partitions_def=None), "odd has no partitions"),
        (returning(GOOD, key_prefix=["sales"]), "sales/odd in schema orders would be kept as orders.odd"),
        (returning(Tables(GOOD, {"stranger": GOOD})), "odd returned the companions ['stranger'] and declares []"),
        (
            returning(GOOD, metadata={"contract": LINES, "companions": {"aside": ASIDE}}),
            "odd returned the companions [] and declares ['aside']",
        ),
        (returning(pd.DataFrame({"order_date": [1, "x"]})), "DataFrame for odd cannot be read"),
        (returning(pd.DataFrame({"order_date": [pd.Timestamp("2026-01-05")]})), "lacks line"),
        (returning(Query("select 1; drop table orders.x")), "was not published"),
        (returning(Query("from nowhere")), "Table with name nowhere does not exist"),
        (returning(Query(f"{EACH_DAY} where error('boom') is null")), "boom"),
    ],
)
def test_what_cannot_be_published_fails_for_good_with_a_sentence(workspace: Workspace, asset: Any, said: str) -> None:
    result = (
        run(workspace, asset, first=DAYS[0])
        if asset.partitions_def
        else dg.materialize(
            [asset], resources={"io_manager": WarehouseIOManager()}, instance=workspace.instance, raise_on_error=False
        )
    )
    step = "__".join(asset.key.path)
    text = failure_of(result, step)
    assert said in text
    assert "odd" in text
    assert workspace.current() == {}


def test_another_schema_is_refused(workspace: Workspace) -> None:
    result = run(workspace, returning(GOOD), manager=WarehouseIOManager(schema="public"))
    assert 'Tables live in schema "orders"' in failure_of(result, "odd")


def test_publications_carry_run_code_version_and_commit(workspace: Workspace) -> None:
    result = run(workspace, dated)
    publication = workspace.current()["dated", DAYS[0]]
    assert publication.run_id == result.run_id
    assert publication.code_version == dated.code_versions_by_key[dg.AssetKey("dated")]
    with workspace.warehouse.read() as con:
        assert publications.history(con, "dated", DAYS[0]) == [publication]
