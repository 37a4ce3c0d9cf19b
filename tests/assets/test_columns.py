"""Columns as the UI shows them: schema, and what each column is made of."""

import dagster as dg

from orders_platform.checks.tables import tables_of
from orders_platform.definitions import ASSETS
from orders_platform.warehouse.values import COLUMN_LINEAGE
from tests.conftest import Workspace

TABLES = tables_of(ASSETS)


def test_every_column_is_made_of_columns_that_exist() -> None:
    for asset in ASSETS:
        lineage = asset.metadata_by_key[asset.key].get(COLUMN_LINEAGE)
        if not asset.keys_by_input_name:
            assert lineage is None
            continue
        reads = {key.path[-1] for key in asset.keys_by_input_name.values()}
        assert list(lineage.deps_by_column) == list(TABLES[asset.key.path[-1]].contract.columns)
        for column, deps in lineage.deps_by_column.items():
            assert deps, (asset.key, column)
            for dep in deps:
                table = dep.asset_key.path[-1]
                assert table in reads and dep.column_name in TABLES[table].contract.columns, (asset.key, column, dep)


def test_the_newest_materialization_carries_the_lineage_that_the_ui_draws(workspace: Workspace) -> None:
    workspace.put_days("2026-01-05", "2026-01-06")
    assert workspace.materialize("2026-01-05", "2026-01-06").success
    record = workspace.instance.fetch_materializations(dg.AssetKey("fct_orders"), limit=1).records[0]
    lineage = record.asset_materialization.metadata[COLUMN_LINEAGE].value
    made_of = lineage.deps_by_column["net_amount"]
    assert {(d.asset_key.path[-1], d.column_name) for d in made_of} == {
        ("stg_orders", "gross_amount"), ("stg_orders", "discount_amount"),
    }  # fmt: skip
    plotted = record.asset_materialization.metadata
    assert plotted["dagster/partition_row_count"].value == 5 and "net_amount EUR, hundredths" in plotted
