"""Dagster's Celery run launcher, asking the worker. Belongs here: whether a run's worker still has it.

Not here: what follows when it has not: run monitoring and run retries of the daemon (deploy/dagster.yaml).
"""

from typing import Any

import dagster as dg
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus
from dagster_celery.launcher import CeleryRunLauncher
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG

WAIT_SECONDS = 5.0
"""How long a worker has for its answer."""


class WorkerRunLauncher(CeleryRunLauncher):
    """The stock launcher of dagster-celery; a run counts as running only while its worker says so.

    The stock one (0.29.27) asks the result backend, where the task of a worker that was killed with -9 stays STARTED, so that its
    run would be STARTED for ever. A worker that is only slow to answer loses nothing: its run is failed and retried, and what
    it goes on to write is refused by the fence of the swap.
    """

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """The state of the run's task, and where that is running, what its worker says."""
        health: CheckRunHealthResult = super().check_run_worker_health(run)
        if health.status is not WorkerStatus.RUNNING:
            return health
        task = run.tags[DAGSTER_CELERY_TASK_ID_TAG]
        meta: Any = self.celery.AsyncResult(task).info
        if not isinstance(meta, dict) or "hostname" not in meta:  # it ended between the two questions
            return health
        worker = meta["hostname"]
        answers = self.celery.control.inspect([worker], timeout=WAIT_SECONDS, limit=1).query_task(task)
        if task in (answers or {}).get(worker, {}) or self.celery.AsyncResult(task).state != "STARTED":
            return health
        return CheckRunHealthResult(WorkerStatus.FAILED, f"worker {worker} {'no longer has it' if answers else 'is gone'}")
