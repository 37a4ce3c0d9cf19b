"""orders_platform: an orders pipeline in which re-running anything is always safe.

The rooms, in dependency order (each may import those below it, never those above):

cli/, drills/     commands a person types; failures replayed
definitions.py    the composition root: every asset, check, job, schedule, sensor, resource
automation/       jobs, schedules, sensors
checks/, assets/  one module a check family; one module an asset, named as the asset
recovery/         states, closure, repair, reconcile, interventions, audit
delivery/         the ledger of external effects and the channels they leave by
warehouse/        contract, session, publications, gates, swap, landing, I/O managers
source/           the source database and its deterministic sample
partitions.py     the calendar as Dagster partitions
calendar.py, settings.py, errors.py   days and weeks; environment; errors a person reads
"""
