"""deploy/: what a cluster is made of, read by the programs that will read it there."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.workspace.load import location_origins_from_yaml_paths
from dotenv import dotenv_values

from orders_platform.assets.raw_orders import SOURCE_POOL
from orders_platform.assets.raw_orders import raw_orders as asset
from orders_platform.settings import Settings
from tests.conftest import Workspace
from tests.servers import new_database

pytest.importorskip("dagster_celery", reason="the extra scale is not installed: pip install -e '.[scale]'")

from orders_platform.automation.run_launcher import WorkerRunLauncher
from scripts.cluster import DEPLOY, command_of

UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
EXAMPLE = {name: value or "" for name, value in dotenv_values(DEPLOY / "orders.env.example", interpolate=False).items()}
SECRETS = ("PGPASSWORD", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@pytest.fixture
def environ(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example's variables, pointed at an empty database of a real Postgres."""
    url = new_database(postgres)
    more = {"PGHOST": url.host, "PGPORT": url.port, "PGUSER": url.username, "ORDERS_DAGSTER_DATABASE": url.database}
    for name, value in {**EXAMPLE, **more}.items():
        monkeypatch.setenv(name, str(value))


def test_dagster_takes_the_instance_and_keeps_runs_events_and_schedules_in_postgres(environ: None, tmp_path: Path) -> None:
    shutil.copy(DEPLOY / "dagster.yaml", tmp_path)
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        instance.report_runless_asset_event(dg.AssetMaterialization("fct_orders", partition="2026-01-05"))
        assert instance.get_runs() == [] and instance.all_instigator_state() == []
        storages = (instance.run_storage, instance.event_log_storage, instance.schedule_storage)
        assert {type(storage).__module__.split(".")[0] for storage in storages} == {"dagster_postgres"}
        assert isinstance(instance.run_launcher, WorkerRunLauncher)
        assert instance.run_monitoring_enabled and instance.run_retries_enabled
        assert not instance.telemetry_enabled
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert instance.get_materialized_partitions(dg.AssetKey("fct_orders")) == {"2026-01-05"}
        instance.event_log_storage.initialize_concurrency_limit_to_default(SOURCE_POOL)
        assert instance.event_log_storage.get_concurrency_info(SOURCE_POOL).slot_count == 2
    assert not list(tmp_path.rglob("*.db")), "something is kept on this host"


def test_the_pool_of_the_source_binds_nothing_on_a_laptop(workspace: Workspace) -> None:
    assert asset.op.pool == SOURCE_POOL
    workspace.put_days("2026-01-05")
    assert workspace.materialize("2026-01-05", assets=("raw_orders",)).success
    assert workspace.instance.event_log_storage.get_pool_limits() == []


def test_the_workspace_is_the_code_location_that_its_unit_serves(environ: None, monkeypatch: pytest.MonkeyPatch) -> None:
    (origin,) = location_origins_from_yaml_paths([str(DEPLOY / "workspace.yaml")])
    served = command_of("orders-code", os.environ)
    assert [origin.host, str(origin.port)] == [served[served.index("--host") + 1], served[served.index("--port") + 1]]
    assert origin.location_name == served[served.index("--location-name") + 1]


def test_every_variable_that_units_and_yaml_name_is_in_the_example_and_every_setting_there_can_be_read() -> None:
    used = {name for unit in UNITS for name in re.findall(r"\$\{(\w+)\}", unit.read_text())}
    for file in ("dagster.yaml", "workspace.yaml"):
        text = (DEPLOY / file).read_text()
        assert yaml.safe_load(text)
        used |= set(re.findall(r"env: (\w+)", text))
    assert used and used <= set(EXAMPLE)
    assert Settings.read(EXAMPLE).warehouse_url.startswith("ducklake:postgres:")
    known = {item.metadata["name"] for item in Settings.__dataclass_fields__.values()}
    own = {name for name in EXAMPLE if name.startswith("ORDERS_")} - used
    assert own <= known, own - known


def test_no_file_of_the_deployment_holds_a_secret() -> None:
    assert {name: EXAMPLE[name] for name in SECRETS} == dict.fromkeys(SECRETS, "")
    for path in DEPLOY.rglob("*"):
        found = re.findall(r"://[^/\s@]*:([^@\s]*)@", path.read_text()) if path.is_file() else []
        assert set(found) <= {"PASSWORD"}, path


def test_systemd_takes_the_units_and_their_programs_are_those_of_the_environment(tmp_path: Path) -> None:
    assert len(UNITS) == 4
    for unit in UNITS:
        program = command_of(unit.stem, EXAMPLE, "1")[0]
        assert Path(program).exists(), program
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed: apt-get install systemd")
    names = []
    for unit in UNITS:
        text = unit.read_text().replace("/opt/orders_platform/.venv/bin/", f"{Path(command_of(unit.stem, EXAMPLE)[0]).parent}/")
        names.append(tmp_path / unit.name.replace("@.", "@1."))
        names[-1].write_text(text.replace("User=orders", "User=root"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *names], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "orders-" not in done.stderr, done.stderr
