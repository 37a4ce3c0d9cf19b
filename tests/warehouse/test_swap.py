"""The swap: exactly its intervals, all of them or none, and never a row, a column or a cent by accident."""

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from orders_platform.warehouse import publications
from orders_platform.warehouse import swap as swap_module
from orders_platform.warehouse.contract import Column, ContractError, ContractViolation, TableContract
from orders_platform.warehouse.inputs import Input, InputMoved, MissingInput, portions
from orders_platform.warehouse.landing import LandingCorrupt, land
from orders_platform.warehouse.publications import Publication
from orders_platform.warehouse.session import Warehouse
from orders_platform.warehouse.tables import BadQuery, SchemaMismatch
from tests import lakes
from tests.warehouse.kit import COLUMNS, DAYS, children, daily, lines, publish, sound, store, swap


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return store(tmp_path)


def rows(warehouse: Warehouse, sql: str) -> list[tuple[Any, ...]]:
    with warehouse.read() as con:
        found: list[tuple[Any, ...]] = con.execute(sql).fetchall()
        return found


def contract(**changes: Column) -> TableContract:
    return TableContract("one line", {**COLUMNS, **changes}, key=("line",), measures=("amount",), allow_empty=True)


# What the stock manager does


def test_an_insert_that_fails_keeps_the_old_rows(warehouse: Warehouse) -> None:
    publish(warehouse, swap("sold", lines(DAYS), DAYS))
    before = sound(warehouse)
    failing = f"select order_date, line, currency, error('disk on fire')::decimal(38,2) as amount, note from ({lines(DAYS)})"
    with pytest.raises(Exception, match="disk on fire"):
        publish(warehouse, swap("sold", failing, DAYS))
    assert sound(warehouse) == before


def test_columns_in_another_order_land_under_their_own_names(warehouse: Warehouse) -> None:
    publish(warehouse, swap("sold", lines(DAYS), DAYS))
    before = sound(warehouse)
    publish(warehouse, swap("sold", f"select note, amount, currency, line, order_date from ({lines(DAYS)})", DAYS))
    assert sound(warehouse) == before


@pytest.mark.parametrize(
    ("where", "named"),
    [("date '2026-01-09'", "3 of 2026-01-09"), ("null::date", "3 of null"), ("date '2026-01-06'", "3 of 2026-01-06")],
)
def test_a_row_outside_the_intervals_raises_and_is_never_dropped(warehouse: Warehouse, where: str, named: str) -> None:
    publish(warehouse, swap("sold", lines([DAYS[0]]), [DAYS[0]]))
    before = sound(warehouse)
    stray = f"{lines([DAYS[0], DAYS[2]])} union all (select {where}, * exclude (order_date) from ({lines([DAYS[0]], '9.00')}))"
    with pytest.raises(ContractViolation, match=named):
        publish(warehouse, swap("sold", stray, [DAYS[0], DAYS[2]]))
    assert sound(warehouse) == before


def test_a_text_partition_column_is_refused_in_the_contract_and_in_the_rows(warehouse: Warehouse) -> None:
    with pytest.raises(ContractError, match="is VARCHAR, not DATE"):
        TableContract("x", {"order_date": Column("VARCHAR", "day")}, key=())
    text = f"select order_date::varchar as order_date, * exclude (order_date) from ({lines(DAYS)})"
    with pytest.raises(BadQuery, match="arrives as VARCHAR"):
        publish(warehouse, swap("sold", text, DAYS))


def test_a_timestamp_partition_column_is_refused_since_its_time_of_day_would_be_cut_off(warehouse: Warehouse) -> None:
    with pytest.raises(BadQuery, match="arrives as TIMESTAMP"):
        publish(
            warehouse,
            swap(
                "sold", f"select order_date + interval 23 hour as order_date, * exclude (order_date) from ({lines(DAYS)})", DAYS
            ),
        )


def test_an_empty_first_day_is_published_and_its_types_come_from_the_contract(warehouse: Warehouse) -> None:
    [made] = publish(warehouse, swap("sold", f"from ({lines(DAYS)}) where false", [DAYS[0]]))
    assert (made.row_count, made.revision) == (0, 1)
    empty = pd.DataFrame({name: [] for name in COLUMNS})
    publish(warehouse, swap("sold", empty, [DAYS[1]]))
    publish(warehouse, swap("sold", lines([DAYS[2]]), [DAYS[2]]))
    assert rows(
        warehouse, "select column_name, data_type from duckdb_columns() where table_name = 'sold' and schema_name = 'orders'"
    )[3] == (
        "amount",
        "DECIMAL(38,2)",
    )


def test_an_empty_interval_is_refused_where_the_contract_does_not_allow_it(warehouse: Warehouse) -> None:
    strict = TableContract("one line", COLUMNS, key=("line",))
    with pytest.raises(ContractViolation, match="2026-01-06: sold: no rows") as caught:
        publish(warehouse, swap("sold", lines([DAYS[0], DAYS[2]]), DAYS[:3], strict))
    assert caught.value.good == [DAYS[0], DAYS[2]]
    assert "2026-01-05, 2026-01-07" in str(caught.value)


def test_a_column_without_values_on_the_first_day_keeps_its_declared_type(warehouse: Warehouse) -> None:
    nothing = pd.DataFrame(
        {
            "order_date": pd.to_datetime([DAYS[0]]).date,
            "line": ["a"],
            "currency": ["GBP"],
            "amount": [None],
            "note": [float("nan")],
        }
    )
    publish(warehouse, swap("sold", nothing, [DAYS[0]]))
    publish(warehouse, swap("sold", nothing.assign(amount=float("nan")), [DAYS[0]]))
    publish(warehouse, swap("sold", lines([DAYS[1]], "12345678901234567.89"), [DAYS[1]]))
    assert rows(warehouse, "select amount, note from orders.sold order by order_date, line limit 2") == [
        (None, None),
        (Decimal("12345678901234567.89"), None),
    ]


def test_money_is_exact_through_a_frame_and_back(warehouse: Warehouse) -> None:
    amounts = [Decimal("0.10"), Decimal("0.20"), Decimal("12345678901234567.89")]
    frame = pd.DataFrame(
        {
            "order_date": pd.to_datetime([DAYS[0]] * 3).date,
            "line": list("abc"),
            "currency": "GBP",
            "amount": amounts,
            "note": None,
        }
    )
    [made] = publish(warehouse, swap("sold", frame, [DAYS[0]]))
    assert made.measures == {"amount GBP": Decimal("12345678901234568.19")}
    with warehouse.read() as con:
        back = con.sql("select amount from orders.sold order by line").to_arrow_table().to_pandas()["amount"]
        assert publications.current(con, [("sold", DAYS[0])])["sold", DAYS[0]].measures == made.measures
    assert list(back) == amounts
    assert sum(back) == Decimal("12345678901234568.19")


def test_money_as_float_or_with_more_decimals_than_its_column_is_refused(warehouse: Warehouse) -> None:
    with pytest.raises(BadQuery, match="amount arrive as float"):
        publish(warehouse, swap("sold", f"select * replace (amount::double as amount) from ({lines(DAYS)})", DAYS))
    with pytest.raises(BadQuery, match=r"amount as DECIMAL\(38,4\) would lose decimals"):
        publish(warehouse, swap("sold", f"select * replace (0.125::decimal(38,4) as amount) from ({lines(DAYS)})", DAYS))


def test_sums_beyond_the_default_decimal_context_are_exact(warehouse: Warehouse) -> None:
    [made] = publish(warehouse, swap("sold", lines([DAYS[0]], "123456789012345678901234567.89", 2), [DAYS[0]]))
    assert made.measures == {"amount GBP": Decimal("246913578024691357802469136.78")}


def test_a_set_with_a_gap_leaves_the_gap_alone(warehouse: Warehouse) -> None:
    publish(warehouse, swap("sold", lines(DAYS), DAYS))
    before = sound(warehouse)
    publish(warehouse, swap("sold", lines([DAYS[0], DAYS[4]], "7.00"), [DAYS[0], DAYS[4]]))
    after = sound(warehouse)
    assert {day for _, day in before if before["sold", day] != after["sold", day]} == {DAYS[0], DAYS[4]}


def first_load(home: Path, run: str) -> None:
    publish(store(home), swap("sold", lines([DAYS[0]]), [DAYS[0]], run_id=run))


def test_processes_that_publish_a_new_day_at_once_leave_one_copy(tmp_path: Path) -> None:
    assert children(first_load, *((tmp_path, f"run {n}") for n in range(4))) == [0, 0, 0, 0]
    assert rows(store(tmp_path), "select count(*), count(distinct produced_by) from orders.sold") == [(3, 1)]
    assert rows(store(tmp_path), "select revision from platform.publications order by all") == [(1,), (2,), (3,), (4,)]
    sound(store(tmp_path))


def test_threads_that_publish_a_new_day_at_once_leave_one_copy(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: first_load(tmp_path, f"run {n}"), range(8)))
    assert rows(store(tmp_path), "select count(*), count(distinct produced_by) from orders.sold") == [(3, 1)]
    assert rows(store(tmp_path), "select max(revision), count(*) from platform.publications") == [(8, 8)]
    sound(store(tmp_path))


# The audit


@pytest.mark.parametrize(
    ("rows_of_day", "said"),
    [
        (lines([DAYS[0]]) + " union all " + lines([DAYS[0]]), "line = .* stands 2 times"),
        (f"select * replace (null as line) from ({lines([DAYS[0]], count=1)})", "1 rows where line is null"),
        (f"select * replace ('USD' as currency) from ({lines([DAYS[0]])})", "3 rows where currency is none of GBP, EUR"),
    ],
)
def test_rows_that_break_the_contract_are_named_and_the_old_day_stays(
    warehouse: Warehouse, rows_of_day: str, said: str
) -> None:
    strict = contract(currency=Column("VARCHAR", "code", accepted=("GBP", "EUR")))
    publish(warehouse, swap("sold", lines(DAYS), DAYS, strict))
    before = sound(warehouse)
    with pytest.raises(ContractViolation, match=f"2026-01-05: sold: {said}") as caught:
        publish(warehouse, swap("sold", f"{rows_of_day} union all {lines([DAYS[1]])}", DAYS[:2], strict))
    assert caught.value.good == [DAYS[1]]
    assert sound(warehouse) == before


def test_columns_that_are_missing_or_unknown_are_named_before_anything_is_deleted(warehouse: Warehouse) -> None:
    with pytest.raises(BadQuery, match="lacks note and has extra besides"):
        publish(warehouse, swap("sold", f"select * exclude (note), 1 as extra from ({lines(DAYS)})", DAYS))


def test_currencies_are_never_added(warehouse: Warehouse) -> None:
    both = f"select * replace (case line when 'line 0' then 'EUR' else 'GBP' end as currency) from ({lines([DAYS[0]])})"
    [made] = publish(warehouse, swap("sold", both, [DAYS[0]]))
    assert made.measures == {"amount EUR": Decimal("1.10"), "amount GBP": Decimal("5.20")}


def test_a_companion_that_breaks_its_contract_rolls_back_its_owner_too(warehouse: Warehouse) -> None:
    publish(warehouse, swap("sold", lines([DAYS[0]]), [DAYS[0]], companions={"aside": lines([DAYS[0]])}))
    before = sound(warehouse)
    with pytest.raises(ContractViolation, match="aside: 3 rows where currency is null"):
        publish(
            warehouse,
            swap(
                "sold",
                lines([DAYS[0]], "5.00"),
                [DAYS[0]],
                companions={"aside": f"select * replace (null as currency) from ({lines([DAYS[0]])})"},
            ),
        )
    assert sound(warehouse) == before


# Inputs


def test_a_missing_input_is_refused_naming_every_day_and_the_command(warehouse: Warehouse) -> None:
    publish(warehouse, swap("bought", lines([DAYS[0], DAYS[3]]), [DAYS[0], DAYS[3]]))
    with pytest.raises(
        MissingInput, match=r"sold 2026-01-05...2026-01-08 needs bought 2026-01-06...2026-01-07, .*--select bought"
    ):
        publish(warehouse, swap("sold", "from bought", DAYS[:4], reads={"bought": daily(DAYS[:4])}))


def test_each_interval_records_the_inputs_it_mapped_to_and_not_the_union(warehouse: Warehouse) -> None:
    given = {(p.asset, p.interval): p for p in publish(warehouse, swap("bought", lines(DAYS), DAYS))}
    needs = {day: DAYS[max(0, n - 1) : n + 1] for n, day in enumerate(DAYS)}
    made = publish(warehouse, swap("sold", lines(DAYS), DAYS, reads={"bought": needs}))
    for publication in made:
        assert [(i.interval, i.publication_id, i.digest) for i in publication.inputs] == [
            (day, given["bought", day].publication_id, given["bought", day].digest) for day in needs[publication.interval]
        ]


def test_a_view_holds_exactly_the_days_asked_for_and_only_rows_that_a_publication_owns(warehouse: Warehouse) -> None:
    publish(warehouse, swap("bought", lines(DAYS), DAYS))
    with warehouse.write("a hand") as con:
        con.execute(
            f"insert into orders.bought by name select *, null::uuid as produced_by from ({lines([DAYS[0]], '666.00')})"
        )
    wanted = [DAYS[0], DAYS[2]]
    publish(warehouse, swap("sold", "from bought", wanted, reads={"bought": daily(wanted)}))
    assert rows(warehouse, "select distinct order_date::varchar, amount > 600 from orders.sold order by all") == [
        (d, False) for d in wanted
    ]


def test_a_frame_whose_input_was_replaced_meanwhile_is_refused_and_may_be_retried(warehouse: Warehouse) -> None:
    [old] = publish(warehouse, swap("bought", lines([DAYS[0]]), [DAYS[0]]))
    publish(warehouse, swap("bought", lines([DAYS[0]], "2.00"), [DAYS[0]]))
    made = swap("sold", lines([DAYS[0]]), [DAYS[0]], reads={"bought": daily([DAYS[0]])})
    stale = replace(made, inputs=[replace(made.inputs[0], seen={DAYS[0]: old.publication_id})])
    with pytest.raises(InputMoved, match="bought 2026-01-05 was replaced") as caught:
        publish(warehouse, stale)
    assert caught.value.retryable


def test_what_a_failed_swap_prepared_is_gone_for_the_next_one_in_the_same_session(warehouse: Warehouse) -> None:
    publish(warehouse, swap("bought", lines(DAYS), DAYS))
    with warehouse.write("a test") as con:
        with pytest.raises(ContractViolation):
            swap("sold", "from bought", DAYS[:1], reads={"bought": {DAYS[0]: DAYS}}).run(con)
        with pytest.raises(Exception, match="bought does not exist"):
            swap("sold", "from bought", DAYS).run(con)
        swap("sold", "from bought", DAYS, reads={"bought": daily(DAYS)}).run(con)


@lakes.both_engines
@pytest.mark.parametrize("moment", [1, 2])
def test_a_fence_that_falls_before_the_work_or_before_the_commit_leaves_the_old_interval(
    warehouse: Warehouse, moment: int
) -> None:
    asked = []

    def fence() -> None:
        asked.append(1)
        if len(asked) == moment:
            raise RuntimeError("cancelled")

    publish(warehouse, swap("sold", lines(DAYS), DAYS))
    before = sound(warehouse)
    with pytest.raises(RuntimeError, match="cancelled"):
        publish(warehouse, swap("sold", lines(DAYS, "2.00"), DAYS, fence=fence))
    assert sound(warehouse) == before


# Portions

ROWS = pa.record_batch({"line": ["1"]})


def trailing(days: Sequence[str]) -> dict[str, list[str]]:
    """Each day reads itself and the day before it."""
    return {day: list(days[max(0, n - 1) : n + 1]) for n, day in enumerate(days)}


SEEN_TWICE = """
    select w.interval_date as order_date, b.order_date || ' ' || line as line, currency, amount, note
    from bought b join run_intervals w on b.order_date between w.interval_date - 1 and w.interval_date
"""


def made_in(monkeypatch: pytest.MonkeyPatch, rows: int) -> list[list[str]]:
    """Sets how many rows are read at once; what each portion of a swap wrote is added to the list."""
    made: list[list[str]] = []
    monkeypatch.setattr("orders_platform.warehouse.inputs.PORTION_ROWS", rows)
    inserting = swap_module.insert_rows
    monkeypatch.setattr(swap_module, "insert_rows", lambda con, output, ids: made.append([*ids]) or inserting(con, output, ids))
    return made


@lakes.both_engines
@pytest.mark.parametrize("query", ["from bought", SEEN_TWICE])
def test_a_range_made_in_portions_is_the_range_made_at_once(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    days = [f"2026-01-{day:02d}" for day in range(5, 20)]
    needs = daily(days) if query == "from bought" else trailing(days)
    publish(warehouse, swap("bought", lines(days), days))
    read = publish(warehouse, swap("sold", query, days, reads={"bought": needs}))
    whole = sound(warehouse)
    made = made_in(monkeypatch, 3)
    again = publish(warehouse, swap("sold", query, days, reads={"bought": needs}))
    assert len(made) > 2 and [day for portion in made for day in portion] == days
    assert sound(warehouse) == whole
    assert [p.inputs for p in again] == [p.inputs for p in read]


def test_a_portion_reads_four_times_what_the_next_reads_again(monkeypatch: pytest.MonkeyPatch) -> None:
    days = [f"2026-01-{day:02d}" for day in range(1, 29)]
    facts = {("bought", day): Publication("bought", day, "run", "code", "", 10) for day in days}
    monkeypatch.setattr("orders_platform.warehouse.inputs.PORTION_ROWS", 30)
    own, both = (Input("bought", "bought", "order_date", needs) for needs in (daily(days), trailing(days)))
    assert {len(portion) for portion in portions(days, [own], facts)} == {3, 1}
    read_again = [len(portion) for portion in portions(days, [both], facts)]
    assert read_again[0] == 7 and set(read_again[1:-1]) == {6} and sum(read_again) == len(days)


@lakes.both_engines
@pytest.mark.parametrize("strays_to", [DAYS[0], DAYS[4]], ids=["an-earlier-portion", "a-later-one"])
def test_a_row_for_the_day_of_another_portion_raises_and_is_never_dropped(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, strays_to: str
) -> None:
    publish(warehouse, swap("bought", lines(DAYS), DAYS))
    publish(warehouse, swap("sold", lines(DAYS), DAYS))
    before = sound(warehouse)
    made_in(monkeypatch, 3)
    stray = f"from bought union all select '{strays_to}'::date, 'stray', 'GBP', 1.00, null from bought where order_date = '{DAYS[2]}'"
    with pytest.raises(ContractViolation, match=f"3 rows outside the intervals being written .3 of {strays_to}"):
        publish(warehouse, swap("sold", stray, DAYS, contract=replace(contract(), key=()), reads={"bought": daily(DAYS)}))
    assert sound(warehouse) == before


def test_every_landed_file_that_is_gone_is_named_before_anything_is_made(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {day: land(tmp_path, "landed", day, "order_date", [ROWS], ROWS.schema) for day in DAYS[:3]}
    with warehouse.write("a test", ["landed"]) as con:
        for day, file in files.items():
            made = Publication("landed", day, "run", "code", file.digest, file.row_count)
            publications.publish(con, replace(made, location=file.location, sha256=file.sha256), lambda: None)
    published = made_in(monkeypatch, 1)
    reads = {"landed": {day: [day] if day in files else [] for day in DAYS}}  # two portions read none of it
    query = "select order_date, line, 'GBP' as currency, 1.00::decimal(38,2) as amount, null as note from landed"
    reading = replace(swap("sold", query, DAYS, reads=reads), landing_root=tmp_path)
    assert [p.row_count for p in publish(warehouse, reading)] == [1, 1, 1, 0, 0]
    assert len(published) == 4
    for day in DAYS[1:3]:
        (tmp_path / files[day].location).unlink()
    with pytest.raises(LandingCorrupt, match=f"{DAYS[1]}: .* is missing; {DAYS[2]}: .* is missing"):
        publish(warehouse, reading)
    assert len(published) == 4


@pytest.mark.parametrize(
    ("kind", "accepted", "good", "bad"),
    [("INTEGER", ("1", "2"), "2", "3"), ("DATE", ("2026-01-05",), "date '2026-01-05'", "date '2026-01-06'")],
)
def test_values_accepted_in_a_column_of_any_type(
    warehouse: Warehouse, kind: str, accepted: tuple[str, ...], good: str, bad: str
) -> None:
    limited = contract(kind=Column(kind, "one of them", accepted=accepted, max_null_share=1))
    for value in (good, "null"):
        publish(warehouse, swap("sold", f"select *, {value} as kind from ({lines(DAYS[:1])})", DAYS[:1], contract=limited))
    with pytest.raises(ContractViolation, match="3 rows where kind is none of"):
        publish(warehouse, swap("sold", f"select *, {bad} as kind from ({lines(DAYS[:1])})", DAYS[:1], contract=limited))


def test_a_key_that_stands_twice_is_found_in_whichever_portion(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(warehouse, swap("bought", lines(DAYS), DAYS))
    made_in(monkeypatch, 3)
    twice = f"from bought union all from bought where order_date = '{DAYS[3]}' and line = 'line 1'"
    with pytest.raises(ContractViolation, match="line = line 1 stands 2 times") as caught:
        publish(warehouse, swap("sold", twice, DAYS, reads={"bought": daily(DAYS)}))
    assert DAYS[3] in str(caught.value)


# Publications


def test_running_again_publishes_again_with_the_next_revision_and_the_same_digest(warehouse: Warehouse) -> None:
    made = [publish(warehouse, swap("sold", lines([DAYS[0]]), [DAYS[0]], run_id=f"run {n}"))[0] for n in range(3)]
    assert [p.revision for p in made] == [1, 2, 3]
    assert len({p.digest for p in made}) == 1
    with warehouse.read() as con:
        assert [p.run_id for p in publications.history(con, "sold", DAYS[0])] == ["run 2", "run 1", "run 0"]
        assert publications.all_current(con)["sold", DAYS[0]] == publications.history(con, "sold", DAYS[0])[0]


def test_equal_rows_do_not_cancel_in_the_digest(warehouse: Warehouse) -> None:
    twice = TableContract("one line", COLUMNS, key=(), allow_empty=True)
    one, two, three = (
        publish(warehouse, swap("sold", " union all ".join([lines([DAYS[0]])] * n), [DAYS[0]], twice))[0].digest
        for n in (1, 2, 3)
    )
    assert len({one, two, three}) == 3


# Schema


@lakes.both_engines
def test_an_added_column_reads_null_in_old_days_whose_digests_stay_measurable(warehouse: Warehouse) -> None:
    publish(warehouse, swap("sold", lines(DAYS), DAYS))
    before = sound(warehouse)
    wider = contract(weight=Column("INTEGER", "grams", max_null_share=1))
    publish(warehouse, swap("sold", f"select *, 5 as weight from ({lines([DAYS[1]])})", [DAYS[1]], wider))
    after = sound(warehouse)
    assert {day for _, day in before if after["sold", day] != before["sold", day]} == {DAYS[1]}
    assert rows(
        warehouse,
        "select order_date::varchar, max(weight) from published.sold where order_date < '2026-01-07' group by 1 order by 1",
    ) == [
        (DAYS[0], None),
        (DAYS[1], 5),
    ]


@lakes.both_engines
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            contract(amount=Column("DECIMAL(18,2)", "money", max_null_share=1)),
            r"alter table orders.sold (alter column amount type|add column amount_converted) DECIMAL\(18,2\)",
        ),
        (
            TableContract("one line", {k: v for k, v in COLUMNS.items() if k != "note"}, key=("line",)),
            "alter table orders.sold drop column note",
        ),
    ],
)
def test_any_other_difference_is_refused_with_a_statement_that_mends_it(
    warehouse: Warehouse, changed: TableContract, said: str
) -> None:
    publish(warehouse, swap("sold", lines(DAYS), DAYS))
    columns = ", ".join(f"{name}::{column.type} as {name}" for name, column in changed.columns.items())
    narrow = f"select {columns} from ({lines([DAYS[0]])})"
    with pytest.raises(SchemaMismatch, match=said) as caught:
        publish(warehouse, swap("sold", narrow, [DAYS[0]], changed))
    statement = re.search("alter table .*", str(caught.value))
    assert statement
    with warehouse.write("mending") as con:
        con.execute(statement.group())
    publish(warehouse, swap("sold", narrow, [DAYS[0]], changed))
    assert rows(warehouse, "select count(*) from published.sold") == [(15,)]


def test_names_that_could_end_a_statement_are_refused(warehouse: Warehouse) -> None:
    for name in ("sold; drop table x", 'sold"', "Sold", "sold sold", ""):
        with pytest.raises(ContractError, match="cannot name a table or column"):
            publish(warehouse, swap(name, lines(DAYS), DAYS))
        with pytest.raises(ContractError):
            contract(**{name: Column("VARCHAR", "x")})
    with pytest.raises(ContractError):
        contract(extra=Column("VARCHAR default (1)", "x"))
    with pytest.raises(Exception, match="not an interval"):
        publish(warehouse, swap("sold", lines(DAYS), ["2026-01-05') or (1=1"]))


def test_values_that_look_like_sql_stay_values(warehouse: Warehouse) -> None:
    strict = contract(note=Column("VARCHAR", "n", max_null_share=1, accepted=("it's", "x') or ('1'='1")))
    note = "it''s"
    publish(
        warehouse,
        swap("sold", f"select * replace ('{note}' as note) from ({lines(DAYS)})", DAYS, strict, run_id="'; drop table x; --"),
    )
    assert rows(warehouse, "select distinct note, run_id from orders.sold, platform.publications") == [
        ("it's", "'; drop table x; --")
    ]
