"""Partners and databases of the delivery tests: each a real server on loopback."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from orders_platform.delivery.ledger import Ledger
from tests.delivery.partners import S3Server, free_port, wait_for

POSTGRES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """URL of a real Postgres server on loopback; Debian's binaries, run as an ordinary user."""
    if POSTGRES is None:
        pytest.skip("Postgres is not installed: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="orders-postgres-"))
    user = "postgres" if os.geteuid() == 0 else None
    if user:
        shutil.chown(folder, user)
    port = free_port()
    made = [POSTGRES / "initdb", "-D", folder / "data", "-U", "orders", "-A", "trust", "-E", "UTF8", "--no-sync"]
    subprocess.run(made, check=True, capture_output=True, user=user, cwd=folder)
    started = [
        POSTGRES / "postgres",
        "-D",
        folder / "data",
        "-k",
        folder,
        "-h",
        "127.0.0.1",
        "-p",
        str(port),
        "-c",
        "fsync=off",
    ]
    server = subprocess.Popen(started, user=user, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port, server)
        yield f"postgresql+psycopg://orders@127.0.0.1:{port}/postgres"
    finally:
        server.send_signal(signal.SIGQUIT)  # at once: nothing of it is kept
        server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgres"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty ledger's URL, on each database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    url = sa.make_url(request.getfixturevalue("postgres"))
    name = f"ledger_{os.urandom(6).hex()}"
    with sa.create_engine(url, poolclass=sa.NullPool).begin() as con:
        con.execute(sa.schema.CreateSchema(name))
    return url.update_query_dict({"options": f"-csearch_path={name}"}).render_as_string(hide_password=False)


@pytest.fixture
def ledger(ledger_url: str) -> Ledger:
    return Ledger(ledger_url)


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    made = S3Server()
    yield made
    made.close()
