"""Servers that tests start: real ones, on loopback, stopped with their data."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

POSTGRES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, server: subprocess.Popen[bytes], seconds: float = 30) -> None:
    """Until the port answers."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert server.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.05)
        else:
            return


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """URL of a real Postgres server on loopback; Debian's binaries, run as an ordinary user."""
    if POSTGRES is None:
        pytest.skip("Postgres is not installed: apt-get install postgresql")
    with postgres_server() as port:
        yield f"postgresql+psycopg://orders@127.0.0.1:{port}/postgres"


@contextmanager
def postgres_server(password: str = "") -> Iterator[int]:
    """Port of a Postgres whose superuser is orders; with a password it asks for it."""
    assert POSTGRES
    folder = Path(tempfile.mkdtemp(prefix="orders-postgres-"))
    user = "postgres" if os.geteuid() == 0 else None
    if user:
        shutil.chown(folder, user)
    port = free_port()
    made = [POSTGRES / "initdb", "-D", folder / "data", "-U", "orders", "-E", "UTF8", "--no-sync"]
    (folder / "password").write_text(password)
    made += ["-A", "scram-sha-256", "--pwfile", folder / "password"] if password else ["-A", "trust"]
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
        ready = [POSTGRES / "pg_isready", "-h", "127.0.0.1", "-p", str(port)]
        while subprocess.run(ready, capture_output=True, check=False).returncode != 0:
            assert server.poll() is None, "the server ended"
            time.sleep(0.05)
        yield port
    finally:
        server.send_signal(signal.SIGINT)  # fast shutdown: does not wait for clients
        server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def new_database(postgres: str) -> sa.URL:
    """A fresh, empty database of that server."""
    url = sa.make_url(postgres)
    name = f"test_{os.urandom(6).hex()}"
    with sa.create_engine(url, isolation_level="AUTOCOMMIT").connect() as con:
        con.execute(sa.text(f"create database {name}"))
    return url.set(database=name)
