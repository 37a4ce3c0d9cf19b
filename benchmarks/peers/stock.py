"""Stock dagster-duckdb-pandas: pandas assets behind DuckDBPandasIOManager, one process, in-process executor.

    python stock.py WAREHOUSE LANDING FIRST LAST ASSETS one-run|run-a-day

Amounts are float64, as pandas users hold them; everything else follows the same rules.
"""

import datetime as dt
import sys
from pathlib import Path

import pandas as pd
from dagster import (
    AssetExecutionContext,
    AssetIn,
    BackfillPolicy,
    DagsterInstance,
    DailyPartitionsDefinition,
    TimeWindowPartitionMapping,
    asset,
    materialize,
)
from dagster_duckdb_pandas import DuckDBPandasIOManager

WAREHOUSE, LANDING, FIRST, LAST, ASSETS, MODE = sys.argv[1:]
DAILY = DailyPartitionsDefinition("2021-01-04")
POLICY = BackfillPolicy.single_run()
BY_DAY = {"partitions_def": DAILY, "backfill_policy": POLICY, "metadata": {"partition_expr": "order_date"}}
STATUSES = ["placed", "paid", "shipped", "delivered", "cancelled", "refunded"]
KEYS = ["order_date", "order_id"]


def typed(day: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The landed rows of a day, and the same rows typed."""
    received = pd.concat(
        [
            pd.read_parquet(file, partitioning=None)
            for file in sorted(Path(LANDING).glob(f"raw_orders/order_date={day}/*.parquet"))
        ]
    )
    received = received.reset_index(drop=True)
    rows = pd.DataFrame({"order_date": pd.Timestamp(day)}, index=received.index)
    for name in ("order_id", "customer_id", "country"):
        rows[name] = received[name].str.strip().replace("", None)
    for name in ("ordered_at", "updated_at"):
        rows[name] = pd.to_datetime(received[name], format="%Y-%m-%d %H:%M:%S", errors="coerce")
    rows["currency"] = received["currency"].str.strip().str.upper()
    rows["status"] = received["status"].str.strip().str.lower()
    for name in ("gross_amount", "discount_amount"):
        rows[name] = pd.to_numeric(received[name], errors="coerce")
    return received, rows


def reasons(received: pd.DataFrame, rows: pd.DataFrame) -> dict[str, pd.Series]:
    """Reason -> which rows have it."""
    at, day = rows["ordered_at"], rows["order_date"]
    found = {
        "order_id is missing": rows["order_id"].isna(),
        "ordered_at is missing or unreadable": at.isna(),
        "ordered_at lies outside the interval": (at < day) | (at >= day + pd.Timedelta(days=1)),
        "updated_at is missing or unreadable": rows["updated_at"].isna(),
        "country is missing": rows["country"].isna(),
        "currency is not a code of three letters": ~rows["currency"].str.fullmatch("[A-Z]{3}").fillna(False).astype(bool),
        "status is missing or unknown": ~rows["status"].isin(STATUSES),
    }
    for name in ("gross_amount", "discount_amount"):
        found[f"{name} is missing or unreadable"] = rows[name].isna()
        found[f"{name} is below zero"] = rows[name] < 0
        decimals = received[name].str.rstrip("0").str.partition(".")[2].str.len().fillna(0)
        found[f"{name} has more than two decimals"] = decimals > 2
    return found


@asset(**BY_DAY)
def stg_orders(context: AssetExecutionContext) -> pd.DataFrame:
    parts = []
    for day in context.partition_keys:
        received, rows = typed(day)
        refused = pd.concat(reasons(received, rows), axis=1).any(axis=1)
        parts.append(rows[~refused])
    rows = pd.concat(parts).sort_values("updated_at", kind="stable")
    rows["superseded_rows"] = rows.groupby(KEYS)["order_id"].transform("size") - 1
    return rows.drop_duplicates(KEYS, keep="last")


@asset(**BY_DAY)
def stg_orders_rejected(context: AssetExecutionContext) -> pd.DataFrame:
    parts = []
    for day in context.partition_keys:
        received, rows = typed(day)
        table = pd.concat(reasons(received, rows), axis=1)
        refused = table.any(axis=1)
        listed = ["; ".join(table.columns[row]) for row in table[refused].to_numpy(dtype=bool)]
        parts.append(received[refused].assign(order_date=pd.Timestamp(day), reasons=listed))
    return pd.concat(parts)


@asset(**BY_DAY)
def fct_orders(stg_orders: pd.DataFrame) -> pd.DataFrame:
    columns = ["order_date", "order_id", "customer_id", "country", "currency", "status", "gross_amount", "discount_amount"]
    return stg_orders[columns].assign(
        net_amount=(stg_orders["gross_amount"] - stg_orders["discount_amount"]).round(2),
        is_revenue=stg_orders["status"].isin(["paid", "shipped", "delivered"]),
    )


def counted(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(
        revenue=rows["net_amount"].where(rows["is_revenue"], 0.0),
        revenue_orders=rows["is_revenue"].astype("int64"),
        cancelled_orders=(rows["status"] == "cancelled").astype("int64"),
    )


SUMS = {
    "orders": ("order_id", "size"), "revenue_orders": ("revenue_orders", "sum"),
    "cancelled_orders": ("cancelled_orders", "sum"), "revenue": ("revenue", "sum"),
}  # fmt: skip


@asset(**BY_DAY)
def revenue_daily(fct_orders: pd.DataFrame) -> pd.DataFrame:
    return counted(fct_orders).groupby(["order_date", "country", "currency"], as_index=False).agg(**SUMS)


@asset(
    partitions_def=DAILY,
    backfill_policy=POLICY,
    metadata={"partition_expr": "feature_date"},
    ins={
        "fct_orders": AssetIn(
            partition_mapping=TimeWindowPartitionMapping(
                start_offset=-27, end_offset=0, allow_nonexistent_upstream_partitions=True
            )
        )
    },
)
def customer_features(context: AssetExecutionContext, fct_orders: pd.DataFrame) -> pd.DataFrame:
    rows = counted(fct_orders[fct_orders["customer_id"].notna()])
    parts = []
    for day in map(pd.Timestamp, context.partition_keys):
        window = rows[(rows["order_date"] > day - pd.Timedelta(days=28)) & (rows["order_date"] <= day)]
        made = window.groupby(["customer_id", "currency"], as_index=False).agg(
            **SUMS, last_order_date=("order_date", "max"), countries=("country", "nunique")
        )
        made["average_order_value"] = (made["revenue"] / made["revenue_orders"]).round(2)
        made["cancelled_share"] = (made["cancelled_orders"] / made["orders"]).round(4)
        made["days_since_last_order"] = (day - made.pop("last_order_date")).dt.days
        parts.append(made.assign(feature_date=day))
    return pd.concat(parts)


def main() -> None:
    every = (stg_orders, stg_orders_rejected, fct_orders, revenue_daily, customer_features)
    chosen = ASSETS.split(",")
    options = {"resources": {"io_manager": DuckDBPandasIOManager(database=WAREHOUSE, schema="orders")}}
    start, stop = dt.date.fromisoformat(FIRST), dt.date.fromisoformat(LAST)
    days = [str(start + dt.timedelta(n)) for n in range((stop - start).days + 1)]
    with DagsterInstance.get() as instance:
        if MODE == "one-run":
            tags = {"dagster/asset_partition_range_start": days[0], "dagster/asset_partition_range_end": days[-1]}
            materialize(every, selection=chosen, tags=tags, instance=instance, **options)
        else:
            for day in days:
                materialize(every, selection=chosen, partition_key=day, instance=instance, **options)


if __name__ == "__main__":
    main()
