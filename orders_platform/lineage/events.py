"""OpenLineage events. Belongs here: what is said of a publication or a failure, in the standard's own words, as pure functions.

Not here: sending (emit.py). One event pair a publication: its run id is the publication id, its nominal time the interval.
"""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from importlib.metadata import version

import attr
from openlineage.client import event_v2 as ol
from openlineage.client.facet_v2 import (
    DatasetFacet,
    InputDatasetFacet,
    JobFacet,
    OutputDatasetFacet,
    RunFacet,
    column_lineage_dataset,
    dataset_version_dataset,
    documentation_job,
    error_message_run,
    job_type_job,
    nominal_time_run,
    output_statistics_output_dataset,
    ownership_job,
    parent_run,
    processing_engine_run,
    schema_dataset,
)

from orders_platform.lineage.emit import Step
from orders_platform.warehouse.publications import Publication, Read

PRODUCER = f"urn:orders-platform:{version('orders-platform')}"
FAILURES = uuid.UUID("6f1f1d52-6a3e-5d0b-9d0e-5c7a0c2b7a11")
"""Namespace of the run ids of failures, which have no publication: derived from run, asset and interval."""


@attr.define(kw_only=True)
class PublicationsInputDatasetFacet(InputDatasetFacet):
    """The publications of this dataset that were read: a window of days is one dataset and many versions."""

    publications: list[dict[str, str]]

    @staticmethod
    def _get_schema() -> str:
        return "urn:orders-platform:facet:1:PublicationsInputDatasetFacet"


@attr.define(kw_only=True)
class PublicationOutputDatasetFacet(OutputDatasetFacet):
    """The publication as recorded; sums as text, since a JSON number would round money."""

    publicationId: str  # noqa: N815
    interval: str
    revision: int
    digest: str
    codeVersion: str  # noqa: N815
    measures: dict[str, str]

    @staticmethod
    def _get_schema() -> str:
        return "urn:orders-platform:facet:1:PublicationOutputDatasetFacet"


def completed(step: Step, publication: Publication, companions: Sequence[Publication] = ()) -> list[ol.RunEvent]:
    """START and COMPLETE of one publication, and the tables published with it."""
    ended = publication.published_at
    started = ended - timedelta(seconds=publication.duration_seconds)
    run = ol.Run(publication.publication_id, _run_facets(step, publication.interval, publication.step_days))
    inputs = _inputs(step, publication.inputs)
    outputs = [_output(step, p) for p in (publication, *companions)]
    return [
        _event(ol.RunState.START, started, run, step, [], []),
        _event(ol.RunState.COMPLETE, ended, run, step, inputs, outputs),
    ]


def failed(step: Step, interval: str, error: str, at: datetime) -> list[ol.RunEvent]:
    """START and FAIL of one interval that was not published.

    Args:
        step: Who speaks.
        interval: The interval.
        error: The message a person would read.
        at: When, UTC.
    """
    run_id = str(uuid.uuid5(FAILURES, f"{step.run_id} {step.asset} {interval} {at.isoformat()}"))
    facets = _run_facets(step, interval, step.contracts[step.asset].step_days)
    run = ol.Run(run_id, facets)
    told = ol.Run(
        run_id, {**facets, "errorMessage": error_message_run.ErrorMessageRunFacet(error, "PYTHON", producer=PRODUCER)}
    )
    outputs = [ol.OutputDataset(step.namespace, _name(table)) for table in step.contracts]
    return [_event(ol.RunState.START, at, run, step, [], []), _event(ol.RunState.FAIL, at, told, step, [], outputs)]


def _event(
    state: ol.RunState, at: datetime, run: ol.Run, step: Step, inputs: list[ol.InputDataset], outputs: list[ol.OutputDataset]
) -> ol.RunEvent:
    facets: dict[str, JobFacet] = {
        "jobType": job_type_job.JobTypeJobFacet("BATCH", "DAGSTER", jobType="ASSET", producer=PRODUCER),
    }
    if step.description:
        facets["documentation"] = documentation_job.DocumentationJobFacet(step.description, producer=PRODUCER)
    if step.owners:
        owners = [ownership_job.Owner(owner) for owner in step.owners]
        facets["ownership"] = ownership_job.OwnershipJobFacet(owners, producer=PRODUCER)
    job = ol.Job(step.namespace, step.asset, facets)
    return ol.RunEvent(
        eventTime=_time(at), eventType=state, run=run, job=job, inputs=inputs, outputs=outputs, producer=PRODUCER
    )


def _run_facets(step: Step, interval: str, step_days: int) -> dict[str, RunFacet]:
    last = step.calendar.days_of(interval)[-1] if step_days > 1 else interval
    start, end = step.calendar.window(interval)[0], step.calendar.window(last)[1]
    name, number = step.engine
    return {
        "nominalTime": nominal_time_run.NominalTimeRunFacet(_time(start), _time(end), producer=PRODUCER),
        "parent": parent_run.ParentRunFacet(
            parent_run.Run(step.run_id), parent_run.Job(step.namespace, step.run_job), producer=PRODUCER
        ),
        "processing_engine": processing_engine_run.ProcessingEngineRunFacet(number, name, producer=PRODUCER),
    }


def _inputs(step: Step, reads: Sequence[Read]) -> list[ol.InputDataset]:
    """One dataset an asset read; its version where one publication was read, and always the list of them."""
    found: dict[str, list[Read]] = {}
    for read in reads:
        found.setdefault(read.asset, []).append(read)
    datasets = []
    for asset, listed in found.items():
        facets: dict[str, DatasetFacet] = {}
        if len(listed) == 1:
            facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(listed[0].publication_id, producer=PRODUCER)
        shown = [{"publicationId": r.publication_id, "interval": r.interval, "digest": r.digest} for r in listed]
        read_facets: dict[str, InputDatasetFacet] = {
            "orders_publications": PublicationsInputDatasetFacet(publications=shown, producer=PRODUCER)
        }
        datasets.append(ol.InputDataset(step.namespace, _name(asset), facets=facets, inputFacets=read_facets))
    return datasets


def _output(step: Step, publication: Publication) -> ol.OutputDataset:
    contract = step.contracts[publication.asset]
    facets: dict[str, DatasetFacet] = {
        "version": dataset_version_dataset.DatasetVersionDatasetFacet(publication.publication_id, producer=PRODUCER),
        "schema": schema_dataset.SchemaDatasetFacet(
            [
                schema_dataset.SchemaDatasetFacetFields(name, column.type, column.meaning, ordinal_position=place)
                for place, (name, column) in enumerate(contract.columns.items(), 1)
            ],
            producer=PRODUCER,
        ),
    }
    lineage = {name: _fields(step, column.source) for name, column in contract.columns.items() if column.source}
    if lineage:
        facets["columnLineage"] = column_lineage_dataset.ColumnLineageDatasetFacet(lineage, producer=PRODUCER)
    written: dict[str, OutputDatasetFacet] = {
        "outputStatistics": output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            publication.row_count, producer=PRODUCER
        ),
        "orders_publication": PublicationOutputDatasetFacet(
            publicationId=publication.publication_id,
            interval=publication.interval,
            revision=publication.revision,
            digest=publication.digest,
            codeVersion=publication.code_version,
            measures={name: f"{value:f}" for name, value in publication.measures.items()},
            producer=PRODUCER,
        ),
    }
    return ol.OutputDataset(step.namespace, _name(publication.asset), facets=facets, outputFacets=written)


def _fields(step: Step, sources: Sequence[str]) -> column_lineage_dataset.Fields:
    pairs = [source.split(".", 1) for source in sources]
    inputs = [column_lineage_dataset.InputField(step.namespace, _name(table), column) for table, column in pairs]
    return column_lineage_dataset.Fields(inputs)


def _name(table: str) -> str:
    return f"orders.{table}"


def _time(moment: datetime) -> str:
    """A UTC moment as the standard writes it.

    >>> _time(datetime(2026, 1, 5, 2, tzinfo=UTC))
    '2026-01-05T02:00:00+00:00'
    """
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat()
