"""A cluster on this machine: the servers, and the units of deploy/systemd as local processes.

Belongs here: starting, killing and stopping them, their environment. Not here: what is run on it (scale_demo.py). It is no part
of the package: it needs the development environment, Debian's Postgres and redis-server.
"""

import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, cast

import psycopg
from dotenv import dotenv_values

from tests.delivery.partners import S3Server
from tests.servers import free_port, postgres_server, wait_for

PROJECT = Path(__file__).resolve().parent.parent
DEPLOY = PROJECT / "deploy"
BIN = Path(sys.executable).parent
BUCKET = "orders-lake"
DATABASES = ("dagster", "lake", "ledger", "shop")


def command_of(unit: str, environ: Mapping[str, str], instance: str = "") -> list[str]:
    """The ExecStart of a unit as systemd would run it, with the programs of this environment.

    Raises:
        KeyError: A variable that the environment does not have.
    """
    text = (DEPLOY / "systemd" / f"{unit}.service").read_text()
    (line,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    words = [word.replace("%i", instance).replace("%%", "%") for word in shlex.split(line)]
    words = [re.sub(r"\$\{(\w+)\}", lambda found: environ[found[1]], word) for word in words]
    return [str(BIN / Path(words[0]).name), *words[1:]]


class Cluster:
    """Processes by name, each the leader of its own group, with its output in a file under home/logs."""

    def __init__(self, home: Path, environ: dict[str, str]) -> None:
        self.home, self.environ = home, environ
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.logs = home / "logs"
        self.logs.mkdir(parents=True)

    def start(self, unit: str, instance: str = "") -> None:
        """Start a unit of deploy/systemd; a template with its instance."""
        self._spawn(unit + instance, command_of(unit, self.environ, instance))

    def _spawn(self, name: str, command: list[str]) -> None:
        with (self.logs / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command, cwd=PROJECT, env=self.environ, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )

    def wait_for_code(self) -> None:
        """Until the code location answers."""
        wait_for(int(self.environ["ORDERS_CODE_PORT"]), self.processes["orders-code"], 60)

    def run(self, *command: str, allowed: tuple[int, ...] = (0,)) -> str:
        """Run a program of this environment to its end; what it printed.

        Raises:
            RuntimeError: It ended with another code than those allowed, or with a traceback; with the end of what it said.
        """
        program = [str(BIN / command[0]), *command[1:]]
        done = subprocess.run(program, cwd=PROJECT, env=self.environ, capture_output=True, text=True, check=False)
        with (self.logs / "commands.log").open("a") as log:
            log.write(done.stdout + done.stderr)
        if done.returncode not in allowed or "Traceback" in done.stderr:
            raise RuntimeError(f"{' '.join(command[:3])} ended with {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout

    def kill(self, name: str) -> list[int]:
        """Kill a process and all its children with -9; their ids."""
        group = self.processes[name].pid
        found = [pid for pid in _pids() if _group(pid) == group]
        with suppress(ProcessLookupError):  # it had ended by itself
            os.killpg(group, signal.SIGKILL)
        self.processes.pop(name).wait()
        return found

    def dead(self) -> list[str]:
        """Names of processes that ended by themselves."""
        return [name for name, process in self.processes.items() if process.poll() is not None]

    def stop(self) -> None:
        """Kill every process: what they were doing is thrown away with the folder."""
        for name in list(self.processes):
            self.kill(name)


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


@contextmanager
def redis_server(folder: Path, password: str) -> Iterator[int]:
    """Port of a Redis on loopback that keeps nothing on disk and asks for the password, which only its standard input saw."""
    port = free_port()
    lines = f"port {port}\nbind 127.0.0.1\nrequirepass {password}\nsave ''\nappendonly no\ndir {folder}\n"
    with (folder / "logs" / "redis.log").open("wb") as log:
        server = subprocess.Popen(["redis-server", "-"], stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True)
    try:
        with cast("IO[bytes]", server.stdin) as stdin:
            stdin.write(lines.encode())
        wait_for(port, server)
        yield port
    finally:
        server.terminate()
        server.wait(10)


@contextmanager
def cluster(home: Path, **settings: str) -> Iterator[Cluster]:
    """The servers, running and empty, and the environment of deploy/orders.env.example pointed at them.

    Their password is PGPASSWORD, or a random one.

    Args:
        home: A folder that is there and empty; everything is under it.
        settings: Variables that differ.
    """
    with ExitStack() as stack:
        password = os.environ.get("PGPASSWORD") or secrets.token_hex(12)
        given = {
            name: value for name, value in dotenv_values(DEPLOY / "orders.env.example", interpolate=False).items() if value
        }
        made = Cluster(home, {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **given})
        port = stack.enter_context(postgres_server(password))
        redis = stack.enter_context(redis_server(home, password))
        store = S3Server()
        stack.callback(store.close)
        store.client().create_bucket(Bucket=BUCKET)
        made.environ |= {
            **store.environ,
            "ORDERS_HOME": str(home),
            "DAGSTER_HOME": str(home / "dagster"),
            "PGHOST": "127.0.0.1",
            "PGPORT": str(port),
            "PGPASSWORD": password,
            "ORDERS_SOURCE_URL": "postgresql+psycopg:///shop",
            "ORDERS_LAKE_DATA_PATH": f"s3://{BUCKET}/tables",
            "ORDERS_CODE_PORT": str(free_port()),
            "CELERY_BROKER_URL": f"redis://:{password}@127.0.0.1:{redis}/0",
            "CELERY_RESULT_BACKEND": f"redis://:{password}@127.0.0.1:{redis}/1",
            **settings,
        }
        with psycopg.connect(
            host="127.0.0.1", port=port, user="orders", password=password, dbname="postgres", autocommit=True
        ) as con:
            for name in DATABASES:
                con.execute(f"create database {name}")
        (home / "dagster").mkdir()
        shutil.copy(DEPLOY / "dagster.yaml", home / "dagster" / "dagster.yaml")
        stack.callback(made.stop)
        yield made
