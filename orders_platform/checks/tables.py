"""Tables as reconciliation sees them. Belongs here: reading contract, inputs and SQL off an asset definition.

Not here: comparing anything (recovery/reconciliation.py).
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import dagster as dg

from orders_platform.checks.identities import IDENTITIES
from orders_platform.recovery.reconciliation import Table
from orders_platform.warehouse.values import Export, Query, Slice, Tables, contract_of


def tables_of(assets: Iterable[dg.AssetsDefinition]) -> dict[str, Table]:
    """Every table that these assets publish, companions included, in order. Assets without a contract are left out."""
    found: dict[str, Table] = {}
    for asset in assets:
        name = asset.key.path[-1]
        metadata = asset.metadata_by_key[asset.key]
        if "contract" not in metadata:
            continue
        contract = contract_of(metadata, name)
        inputs = {view: key.path[-1] for view, key in asset.keys_by_input_name.items()}
        version = str(metadata.get("code_version", ""))
        is_export = asset.op.output_dict["result"].dagster_type.typing_type is Export
        found[name] = Table(name, contract, None, inputs, partial(queries_of, asset), version, IDENTITIES.get(name), is_export)
        for companion, other in metadata.get("companions", {}).items():
            found[companion] = Table(companion, other, companion_of=name)
    return found


def queries_of(asset: dg.AssetsDefinition) -> Mapping[str, str]:
    """The SQL of the asset and its companions, by table; empty where its rows do not come from SQL alone."""
    inputs = asset.op.input_defs
    if asset.op.required_resource_keys or any(item.dagster_type.typing_type is not Slice for item in inputs):
        return {}
    name = asset.key.path[-1]
    made: Any = asset(**{item.name: Slice(item.name, ()) for item in inputs})
    if isinstance(made, Tables):
        return {name: made.own.sql, **{companion: query.sql for companion, query in made.companions.items()}}
    return {name: made.sql} if isinstance(made, Query | Export) else {}
