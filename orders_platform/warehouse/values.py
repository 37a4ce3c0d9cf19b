"""What assets return and receive. Belongs here: Query, Tables, Capture, Export, Slice. Not here: what becomes of them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from orders_platform.warehouse.contract import ContractError, TableContract

COLUMN_LINEAGE = "dagster/column_lineage"
"""Where Dagster's UI looks for what each column is made of: in the newest materialization."""


@dataclass(frozen=True)
class Query:
    """SQL over the asset's inputs, each a view under its parameter's name.

    Every query may also join run_intervals (interval_date, start_at, end_at): the intervals being written, windows in UTC. Of a
    large range it is run several times, each for some of the intervals with the inputs of just those.
    """

    sql: str


@dataclass(frozen=True)
class Tables:
    """The asset's own rows and those of its companion tables, published in one swap.

    Attributes:
        own: Rows of the table named as the asset.
        companions: table -> rows; each needs a contract in `companions=` of warehouse_asset.
    """

    own: Query
    companions: Mapping[str, Query]


@dataclass(frozen=True)
class Capture:
    """Rows to land, an interval at a time: `rows(interval)` opens the source and yields record batches of `schema`.

    Attributes:
        repeating: Columns of few values, which are stored as a dictionary.
    """

    rows: Callable[[str], Iterable[pa.RecordBatch]]
    schema: pa.Schema
    repeating: tuple[str, ...] = ()


@dataclass(frozen=True)
class Export:
    """Rows to write as one immutable CSV file an interval: SQL over the asset's inputs, with the contract's columns.

    Attributes:
        schema_version: Raised when a reader of the file has to change; written into the manifest.
    """

    sql: str
    schema_version: int = 1


@dataclass(frozen=True)
class Slice:
    """An input that stays in the warehouse: the annotation under which a parameter becomes a view of exactly its intervals."""

    asset: str
    intervals: tuple[str, ...]


def contract_of(metadata: Mapping[str, Any], asset: str, key: str = "contract") -> TableContract:
    """The contract an asset carries in its metadata.

    Raises:
        ContractError: There is none.
    """
    found = getattr(metadata.get(key), "value", metadata.get(key))
    if not isinstance(found, TableContract):
        raise ContractError(
            f"{asset} has no contract, so its types would be guessed from its first day.",
            f'Define it with @warehouse_asset(CONTRACT) or metadata={{"contract": TableContract(…)}} in assets/{asset}.py.',
        )
    return found


def is_frame(kind: Any) -> bool:
    """Whether a type is pandas.DataFrame, without importing pandas, which costs 0.2 s a process."""
    return getattr(kind, "__name__", "") == "DataFrame" and kind.__module__.startswith("pandas")


def rows_of(obj: Any, table: str) -> str | pa.Table:
    """What an asset returned, as SQL or Arrow.

    Raises:
        ContractError: Neither a Query nor a DataFrame, or a DataFrame of mixed types.
    """
    if isinstance(obj, Query):
        return obj.sql
    if is_frame(type(obj)):
        try:
            made = pa.Table.from_pandas(obj, preserve_index=False)
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise ContractError(f"The DataFrame for {table} cannot be read: {error}.", "Give each column one type.") from error
        # A column without any value has no type worth judging: pandas makes it float where it joins nothing.
        for position, column in enumerate(made.columns):
            if column.null_count == made.num_rows:
                made = made.set_column(position, made.column_names[position], pa.nulls(made.num_rows))
        return made
    raise ContractError(f"{table} returned a {type(obj).__name__}.", "Return Query, Tables, Export or pandas.DataFrame.")
