"""warehouse_asset. Belongs here: what every table asset has in common, so that an asset module is its contract and its SQL."""

import hashlib
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg

from orders_platform.settings import settings
from orders_platform.warehouse.contract import TableContract
from orders_platform.warehouse.values import COLUMN_LINEAGE, Slice, is_frame

RETRY = dg.RetryPolicy(max_retries=2, delay=1.0, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS)
"""For a lock that stays taken or an input that moved; contract and input errors are raised as not retryable."""

BACKFILL = dg.BackfillPolicy.single_run() if (_n := settings().intervals_per_run) is None else dg.BackfillPolicy.multi_run(_n)
"""One run a contiguous range, or ORDERS_INTERVALS_PER_RUN intervals a run."""


def code_version(function: Callable[..., Any], *contracts: TableContract, more: str = "") -> str:
    """Short SHA-256 of the asset's module and contracts: computed, so that nobody can forget to raise it."""
    source = inspect.getsource(sys.modules[function.__module__])
    return hashlib.sha256("\n".join([source, *(c.fingerprint() for c in contracts), more]).encode()).hexdigest()[:12]


def warehouse_asset(
    contract: TableContract,
    *,
    companions: Mapping[str, TableContract] | None = None,
    version: str = "",
    kinds: frozenset[str] = frozenset({"duckdb", "sql"}),
    **options: Any,
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """An asset whose output is published in the warehouse under a contract.

    Args:
        contract: What the table promises.
        companions: Tables published in the same swap: name -> contract.
        version: Whatever else makes the output what it is, such as a source query.
        kinds: Shown in the UI.
        options: Passed on to dagster.asset.
    """

    def wrap(function: Callable[..., Any]) -> dg.AssetsDefinition:
        others = dict(companions or {})
        version_text = code_version(function, contract, *others.values(), more=version)
        metadata = {
            "contract": contract,
            "companions": others,
            "code_version": version_text,
            "partition_expr": contract.partition,
            "grain": contract.grain,
            "dagster/column_schema": column_schema(contract),
        }
        if lineage := column_lineage(contract, function):
            metadata[COLUMN_LINEAGE] = lineage
        settled = {"retry_policy": RETRY, "backfill_policy": BACKFILL, **options}
        made: dg.AssetsDefinition = dg.asset(metadata=metadata, code_version=version_text, kinds=set(kinds), **settled)(
            function
        )
        return made

    return wrap


def column_lineage(contract: TableContract, function: Callable[..., Any]) -> dg.TableColumnLineage | None:
    """What each column is made of: its `source`, or the columns of the same name in what the asset reads."""
    inputs = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.annotation is Slice or is_frame(parameter.annotation)
    ]
    if not inputs:
        return None
    made_of = {name: column.source or tuple(f"{table}.{name}" for table in inputs) for name, column in contract.columns.items()}
    return dg.TableColumnLineage(
        {
            name: [
                dg.TableColumnDep(dg.AssetKey(table), column) for table, _, column in (text.partition(".") for text in texts)
            ]
            for name, texts in made_of.items()
        }
    )


def column_schema(contract: TableContract) -> dg.TableSchema:
    """The contract as the UI's column table."""
    columns = []
    for name, column in contract.columns.items():
        notes = [f"in {column.unit}"] if column.unit else []
        notes += [f"one of {', '.join(column.accepted)}"] if column.accepted else []
        required = dg.TableColumnConstraints(nullable=column.max_null_share > 0, unique=contract.key == (name,), other=notes)
        columns.append(dg.TableColumn(name, column.type, column.meaning, required))
    return dg.TableSchema(columns, dg.TableConstraints([f"one row is {contract.grain}", f"unique: {', '.join(contract.key)}"]))
