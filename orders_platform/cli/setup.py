"""orders setup. Belongs here: making a workspace: .env, Dagster's home, the warehouse. Not here: data."""

import os
import sys
import sysconfig
from pathlib import Path

import click

from orders_platform.settings import PROJECT, Settings, settings

DAGSTER_YAML = """\
# Written by `orders setup`; edit freely, it is not overwritten.
telemetry:
  enabled: false
nux:
  enabled: false
concurrency:
  runs:
    max_concurrent_runs: 4
run_monitoring:
  enabled: true
  free_slots_after_run_end_seconds: 60
# Dagster's own storage with its connections kept open; remove these lines for the stock one, which reads the same files.
event_log_storage:
  module: orders_platform.automation.event_log
  class: WorkspaceEventLog
run_storage:
  module: orders_platform.automation.event_log
  class: WorkspaceRuns
# Assets print nothing, and capturing what they print costs each run four processes (0.3 s). Remove these lines to capture it.
compute_logs:
  module: dagster._core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
"""

ENV = """\
# Written by `orders setup`; edit freely, it is not overwritten. A variable set in the shell wins.
ORDERS_HOME=${{ORDERS_HOME:-{home}}}
DAGSTER_HOME=${{ORDERS_HOME}}/dagster
DAGSTER_DISABLE_TELEMETRY=yes
# The calendar of the sample: four ISO weeks. Leave the end empty for a calendar that goes on.
ORDERS_START_DATE=${{ORDERS_START_DATE:-2026-01-05}}
ORDERS_END_DATE=${{ORDERS_END_DATE:-2026-02-01}}
"""

POINTER = "import orders_platform.dagster_module\n"


@click.command()
def setup() -> None:
    """Create the workspace: .env, Dagster's home and the warehouse, all under ORDERS_HOME.

    Safe to run again, also after it was interrupted: what is there stays, what is missing is made.
    """
    values = settings()
    write_once(PROJECT / ".env", ENV.format(home=PROJECT / "data"))
    if sys.prefix != sys.base_prefix:
        write_once(Path(sysconfig.get_path("purelib")) / "orders_platform_dagster.pth", POINTER)
    prepare(values)
    click.echo(f"Workspace ready in {values.home}")


def prepare(values: Settings) -> None:
    """Create Dagster's home and the warehouse, and open the instance once before anything runs in parallel.

    Four first processes on a fresh Dagster home can break its schema for good, so the schema is made here, by one.
    """
    home = values.home / "dagster"
    home.mkdir(parents=True, exist_ok=True)
    write_once(home / "dagster.yaml", DAGSTER_YAML)
    from dagster import DagsterInstance

    from orders_platform.warehouse.session import Warehouse

    with DagsterInstance.from_config(str(home)) as instance:
        instance.get_runs(limit=1)
        instance.all_instigator_state()
    with Warehouse.from_settings(values).write("orders setup"):
        pass


def write_once(path: Path, text: str) -> None:
    """Create the file with this text unless it is there; whole or not at all."""
    if path.exists():
        return
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_text(text)
    part.rename(path)
