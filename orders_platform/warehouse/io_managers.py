"""The warehouse as a Dagster I/O manager. Belongs here: turning a step's outputs and inputs into swaps and landed files.

Not here: how a swap works (swap.py). The one place that asks Dagster's private asset layer, checked on 1.13.27.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import dagster as dg
import duckdb
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationTargetMaterializationData
from dagster._core.definitions.partitions.utils.mapping import infer_partition_mapping
from pydantic import Field, PrivateAttr

from orders_platform.calendar import describe
from orders_platform.errors import OrdersError
from orders_platform.lineage.emit import Step, told
from orders_platform.settings import git_commit, settings
from orders_platform.warehouse import gates, landing, publications
from orders_platform.warehouse import inputs as swap_inputs
from orders_platform.warehouse.contract import ContractError, TableContract, identifier
from orders_platform.warehouse.exports import FileExport
from orders_platform.warehouse.inputs import Input
from orders_platform.warehouse.publications import Pair, Publication
from orders_platform.warehouse.session import Warehouse, WarehouseBusy
from orders_platform.warehouse.swap import Swap
from orders_platform.warehouse.tables import Output
from orders_platform.warehouse.values import COLUMN_LINEAGE, Capture, Export, Slice, Tables, contract_of, is_frame, rows_of

if TYPE_CHECKING:
    import pandas as pd

CheckTarget = AssetCheckEvaluationTargetMaterializationData
"""Which materialization a check's evaluation is about; checks/factory.py makes them."""

PASSING = (duckdb.IOException, duckdb.TransactionException, duckdb.FatalException, duckdb.OutOfMemoryException)


class RunNotActive(OrdersError):
    """The run that asks to write has been cancelled or has ended; what was there stays."""


class Interrupted(OrdersError):
    """The disk, the engine or the wait for a lock failed; nothing was published and a retry may do."""

    retryable = True


class SomeFailed(OrdersError):
    """Some intervals of a range could not be captured; the others are landed and published."""

    retryable = True


class WarehouseIOManager(dg.ConfigurableIOManager):
    """Publishes a step's intervals in one swap, and pins what it reads.

    Follows dagster-duckdb: `database`, `schema`, `metadata={"partition_expr": …}` (here from the contract), and a parameter's
    type chooses how it is loaded: Slice stays in the warehouse, pandas.DataFrame is loaded, DECIMAL as decimal.Decimal.
    """

    database: str = Field(default="", description="DuckDB file; empty for ORDERS_WAREHOUSE_URL.")
    schema_: str = Field(default="orders", alias="schema", description="Schema of the tables; only orders is supported.")
    _read: dict[tuple[str, str], dict[str, Input]] = PrivateAttr(default_factory=dict)

    @property
    def warehouse(self) -> Warehouse:
        """The warehouse this manager writes to."""
        return Warehouse.from_settings(settings(), self.database)

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Publish the output: Query, Tables or DataFrame as one swap, Capture and Export as files, an interval at a time.

        Raises:
            dg.Failure: The rows or their inputs cannot be published; not retried.
            OrdersError: A condition that may pass (a lock, the source); the asset's retry policy applies.
        """
        step = context.step_context
        intervals = sorted(context.asset_partition_keys) if context.has_asset_partitions else []
        with explained(context.asset_key.to_user_string(), intervals):
            if obj is None and "contract" not in context.definition_metadata:
                return
            self._table(context.asset_key)
            if not context.has_asset_partitions:
                raise ContractError(
                    f"{context.asset_key.to_user_string()} has no partitions.", "Give it partitions_def=DAILY or WEEKLY."
                )
            if not intervals:
                raise ContractError(
                    f"The range asked of {context.asset_key.to_user_string()} is empty.", "Name its earlier end first."
                )
            with told(lambda: speaker(context), intervals) as made:
                if isinstance(obj, Capture):
                    self._land(context, obj, intervals, made)
                elif isinstance(obj, Export):
                    made += self._export(context, obj, intervals)
                else:
                    made += self._swap(context, obj, intervals)
        own = [p for p in made if p.companion_of is None]
        for publication in own:
            metadata = describe_publication(publication)
            for companion in made:
                if companion.companion_of and companion.interval == publication.interval:
                    metadata[f"{companion.asset}/rows"] = companion.row_count
            # The UI draws column lineage from the newest materialization; one an output is enough.
            if publication is own[-1] and (lineage := context.definition_metadata.get(COLUMN_LINEAGE)):
                metadata[COLUMN_LINEAGE] = lineage
            step.add_asset_metadata(metadata, asset_key=context.asset_key, partition_key=publication.interval)
        if len(own) == 1:
            step.set_data_version(context.asset_key, dg.DataVersion(own[0].digest))

    def load_input(self, context: dg.InputContext) -> "Slice | pd.DataFrame":
        """Pin the input: exactly the intervals mapped to this step, as a Slice or loaded.

        Raises:
            dg.Failure: An interval is missing, quarantined or failed a blocking check.
        """
        step: Any = context.step_context
        asset = self._table(context.asset_key)
        needs = mapped_intervals(step, context.name, list(context.asset_partition_keys))
        contract = contract_of(context.upstream_output.definition_metadata if context.upstream_output else {}, asset)
        item = Input(identifier(context.name), identifier(asset), contract.partition, needs)
        frame = None
        if is_frame(context.dagster_type.typing_type):
            with explained(asset, item.intervals):
                item, frame = self._load(item, contract)
        self._read.setdefault((step.run_id, step.step.key), {})[item.name] = item
        return Slice(asset, tuple(item.intervals)) if frame is None else frame

    def _table(self, key: dg.AssetKey) -> str:
        """The table an asset is kept in: its name; a prefix may only repeat the schema.

        Raises:
            ContractError: Two assets could mean one table, or another schema is asked for.
        """
        if self.schema_ != "orders" or key.path[:-1] not in ([], [self.schema_]):
            raise ContractError(
                f"{key.to_user_string()} in schema {self.schema_} would be kept as orders.{key.path[-1]}.",
                'Tables live in schema "orders" and are named as their asset: leave out schema= and key_prefix=.',
            )
        return key.path[-1]

    def _load(self, item: Input, contract: TableContract) -> "tuple[Input, pd.DataFrame]":
        with self.warehouse.read() as con:
            read = swap_inputs.resolve(con, [item], (), f"Loading {item.asset}")
            swap_inputs.create_views(con, [item], read, settings().landing_root)
            table = con.sql(f"from {item.name} order by {contract.row_key}").to_arrow_table()
        seen = {interval: read[item.asset, interval].publication_id for interval in item.intervals}
        return replace(item, seen=seen), table.to_pandas(integer_object_nulls=True)  # a float would lose digits

    def _swap(self, context: dg.OutputContext, obj: Any, intervals: list[str]) -> list[Publication]:
        step: Any = context.step_context
        table = context.asset_key.path[-1]
        metadata = context.definition_metadata
        outputs = [Output(table, contract_of(metadata, table), rows_of(obj.own if isinstance(obj, Tables) else obj, table))]
        companions = obj.companions if isinstance(obj, Tables) else {}
        declared = metadata.get("companions") or {}
        if set(declared) != set(companions):  # one left out would keep the rows of an earlier run
            raise ContractError(
                f"{table} returned the companions {sorted(companions)} and declares {sorted(declared)}.",
                f"Return Tables with every one of them, or change companions= in assets/{table}.py.",
            )
        for name, query in companions.items():
            outputs.append(Output(name, contract_of(declared, name, name), rows_of(query, name), table))
        swap = Swap(
            outputs,
            intervals,
            list(self._read.pop((step.run_id, step.step.key), {}).values()),
            step.run_id,
            str(metadata.get("code_version", "")),
            settings().calendar,
            settings().landing_root,
            git_commit(),
            lambda: require_active(step.instance, step.run_id, table),
        )
        with self.warehouse.write(f"run {step.run_id} publishing {table}", [o.table for o in outputs]) as con:
            return swap.run(con)

    def _export(self, context: dg.OutputContext, export: Export, intervals: list[str]) -> list[Publication]:
        step: Any = context.step_context
        table = context.asset_key.path[-1]
        inputs = list(self._read.pop((step.run_id, step.step.key), {}).values())
        with self.warehouse.read() as con:
            require_made(step.instance, con, inputs, f"{table} {describe(intervals)}")
        files = FileExport(
            table,
            contract_of(context.definition_metadata, table),
            export,
            intervals,
            inputs,
            step.run_id,
            str(context.definition_metadata.get("code_version", "")),
            settings().landing_root,
            settings().exports_root,
            git_commit(),
            lambda: require_active(step.instance, step.run_id, table),
        )
        with self.warehouse.write(f"run {step.run_id} exporting {table}", [table]) as con:
            return files.run(con)

    def _land(self, context: dg.OutputContext, capture: Capture, intervals: list[str], done: list[Publication]) -> None:
        """Land and publish each interval as it arrives, into `done`; one that this run published already is not captured again.

        A source that fails for one interval is asked for the others too; the error at the end names those that failed.
        """
        step: Any = context.step_context
        asset = context.asset_key.path[-1]
        contract = contract_of(context.definition_metadata, asset)
        root = settings().landing_root
        failed: dict[str, OrdersError] = {}
        landing.sign(root, self.warehouse.name)
        with self.warehouse.read() as con:
            known = publications.current(con, [(asset, interval) for interval in intervals])
        for interval in intervals:
            old = known.get((asset, interval))
            if old and old.run_id == step.run_id:
                done.append(old)
                continue
            require_active(step.instance, step.run_id, asset)
            try:
                file = landing.land(
                    root, asset, interval, contract.partition, capture.rows(interval), capture.schema, capture.repeating
                )
            except OrdersError as error:
                if not error.retryable:
                    raise
                failed[interval] = error
                continue
            made = Publication(
                asset,
                interval,
                step.run_id,
                str(context.definition_metadata.get("code_version", "")),
                file.digest,
                file.row_count,
                git_commit(),
                location=file.location,
                sha256=file.sha256,
                digest_columns=tuple(capture.schema.names),
            )
            with self.warehouse.write(f"run {step.run_id} publishing {asset} {interval}", [asset]) as con:
                landing.require(root, file.location)
                done.append(publications.publish(con, made, lambda: require_active(step.instance, step.run_id, asset)))
        if failed:
            reason = next(iter(failed.values()))
            raise SomeFailed(f"{asset} {describe(list(failed))} could not be captured: {reason.message}", reason.remedy)


def require_made(instance: dg.DagsterInstance, con: Any, inputs: Sequence[Input], reader: str) -> None:
    """Refuse inputs that were marked as materialized and not made since: what leaves the house is made of what was made.

    Raises:
        InputRefused: Names the intervals and the command.
    """
    found = marked(instance, con, [(item.asset, i) for item in inputs for i in item.intervals])
    if found:
        days = [i for asset, i in found if asset == found[0][0]]
        raise gates.InputRefused(
            f"{reader} may not read {found[0][0]} {describe(days)}: marked as materialized, and not made since.",
            f"orders repair {found[0][0]} {days[0]} --reason …",
        )


def marked(instance: dg.DagsterInstance, con: Any, pairs: Iterable[Pair]) -> list[Pair]:
    """Those of the pairs whose newest materialization in Dagster was by nobody who published them."""
    wanted: dict[str, set[str]] = {}
    for asset, interval in pairs:
        wanted.setdefault(asset, set()).add(interval)
    found: list[Pair] = []
    storage: Any = instance.event_log_storage
    for asset, intervals in sorted(wanted.items()):
        rows = con.execute('select "interval", run_id from platform.publications where asset = ?', [asset]).fetchall()
        key, kind = dg.AssetKey(asset), dg.DagsterEventType.ASSET_MATERIALIZATION
        newest = list(storage.get_latest_storage_id_by_partition(key, kind, intervals).values())
        chosen = dg.AssetRecordsFilter(key, storage_ids=newest)
        records = instance.fetch_materializations(chosen, limit=len(newest)).records if newest else []
        made = set(rows)
        found += sorted((asset, r.partition_key or "") for r in records if (r.partition_key, r.run_id) not in made)
    return found


def speaker(context: dg.OutputContext) -> Step:
    """Whom lineage events speak of."""
    step: Any = context.step_context
    spec = context.asset_spec
    table = context.asset_key.path[-1]
    companions = context.definition_metadata.get("companions") or {}
    return Step(
        settings().lineage_namespace,
        table,
        step.run_id,
        step.job_name,
        ("Dagster", dg.__version__),
        settings().calendar,
        {table: contract_of(context.definition_metadata, table), **companions},
        spec.description or "",
        tuple(spec.owners),
    )


def require_active(instance: dg.DagsterInstance, run_id: str, asset: str) -> None:
    """The fence: the asking run must still be running (a force-cancelled run goes on and would end SUCCESS).

    Raises:
        RunNotActive: It is not.
    """
    run = instance.get_run_by_id(run_id)
    if run is None or run.status != dg.DagsterRunStatus.STARTED:
        state = run.status.value if run else "deleted"
        raise RunNotActive(f"Run {run_id} is {state}, so {asset} was not published.", "Launch a new run for these intervals.")


@contextmanager
def explained(asset: str, intervals: Sequence[str]) -> Iterator[None]:
    """Turn what went wrong into what Dagster should do: fail for good, or leave it to the retry policy.

    Raises:
        dg.Failure: For everything a retry cannot mend.
    """
    where = f"{asset} {intervals[0]}...{intervals[-1]}" if len(intervals) > 1 else f"{asset} {''.join(intervals)}"
    try:
        yield
    except WarehouseBusy as error:
        raise Interrupted(f"{where}: {error.message}", error.remedy) from error
    except OrdersError as error:
        if error.retryable:
            raise
        raise dg.Failure(str(error), metadata={"remedy": error.remedy or "none"}, allow_retries=False) from error
    except (*PASSING, OSError, MemoryError) as error:
        raise Interrupted(
            f"{where} was not published: {error}", "What was there stays; free disk space or memory, then run it again."
        ) from error
    except duckdb.Error as error:
        found = (
            "find the row this value comes from, or widen its column" if isinstance(error, duckdb.ConversionException) else ""
        )
        text = f"{where} was not published: {error} What was there stays; {found or 'mend the query'} in assets/{asset}.py."
        raise dg.Failure(text, allow_retries=False) from error


def mapped_intervals(step: Any, input_name: str, union: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """For each interval the step writes, the input's intervals mapped to it (in a range run: not the union)."""
    own_def = step.entity_partitions_def
    own = own_def.get_partition_keys_in_range(step.partition_key_range)
    if len(own) == 1:
        return {own[0]: tuple(sorted(union))}
    layer = step.job_def.asset_layer
    upstream_key = layer.get_asset_key_for_node_input(step.node_handle, input_name)
    upstream_def = layer.get(upstream_key).partitions_def
    mapping = infer_partition_mapping(step.assets_def.get_partition_mapping_for_dep(upstream_key), own_def, upstream_def)
    found = {}
    for interval in own:
        subset = own_def.empty_subset().with_partition_keys([interval])
        result = mapping.get_upstream_mapped_partitions_result_for_partitions(subset, own_def, upstream_def)
        found[interval] = tuple(sorted(result.partitions_subset.get_partition_keys()))
    return found


def describe_publication(publication: Publication) -> dict[str, Any]:
    """What the UI shows of a publication; sums as exact text, and in hundredths as integers so that they plot."""
    metadata: dict[str, Any] = {
        "dagster/partition_row_count": publication.row_count,
        "publication_id": publication.publication_id,
        "revision": publication.revision,
        "digest": publication.digest,
        "inputs": dg.MetadataValue.json([f"{i.asset} {i.interval} {i.publication_id}" for i in publication.inputs]),
    }
    for name, value in publication.measures.items():
        metadata[name] = f"{value:f}"
        metadata[f"{name}, hundredths"] = dg.MetadataValue.int(int(publications.EXACT.multiply(value, Decimal(100))))
    if publication.location:
        metadata["location"] = publication.location
        metadata["sha256"] = publication.sha256
    return metadata
