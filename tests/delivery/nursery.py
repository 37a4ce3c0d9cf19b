"""Workers to be killed: real processes, forked from one that has the imports done, so that hundreds of kills stay cheap.

`python -m tests.delivery.nursery` reads one JSON job a line, forks a worker for it, and prints its pid, then its exit status.
"""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import orders_platform.delivery.channels_files
import orders_platform.delivery.channels_sftp
import orders_platform.delivery.channels_webhook  # noqa: F401
from orders_platform.delivery.channels import Channel, channel_of
from orders_platform.delivery.deliver import Patience, deliver
from orders_platform.delivery.ledger import Ledger
from orders_platform.delivery.states import Content, Delivery
from orders_platform.errors import OrdersError
from orders_platform.settings import PROJECT, Settings
from orders_platform.warehouse import files

POINTS = ("before claim", "after claim", "during send", "after send", "after record")


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


class DoomedLedger(Ledger):
    """A ledger whose worker is killed at one point."""

    point = ""

    def claim(self, *args: Any, **kwargs: Any) -> Delivery:
        if self.point == "before claim":
            die()
        row = super().claim(*args, **kwargs)
        if self.point == "after claim":
            die()
        return row

    def record(self, *args: Any, **kwargs: Any) -> Delivery:
        if self.point == "after send":
            die()
        row = super().record(*args, **kwargs)
        if self.point == "after record":
            die()
        return row


def doom(channel: Channel) -> None:
    """Kill the worker in the middle of a send: a folder before the file has its name, a bucket between its two files.

    The webhook and the SFTP partner kill it from their own side.
    """
    if channel.name.startswith("file:"):
        os.link = lambda *_: die()  # type: ignore[assignment]
    elif channel.name.startswith("s3:"):
        write, written = channel._write, []  # type: ignore[attr-defined]

        def once(path: Any, data: bytes) -> bool:
            if written:
                die()
            written.append(path)
            return bool(write(path, data))

        channel._write = once  # type: ignore[attr-defined]


def work(job: Mapping[str, Any]) -> None:
    """Deliver the current content of each week, as a delivery run does."""
    values = Settings.read(job["environ"])
    os.environ.update(job["environ"])
    ledger = DoomedLedger(values.ledger_url)
    ledger.point = job["point"]
    channel = channel_of(values)
    if ledger.point == "during send":
        doom(channel)
    for week in job["weeks"]:
        content = Content(**json.loads((values.home / f"{week}.json").read_text()))
        try:
            deliver(ledger, channel, ledger.open(content), values.exports_root, Patience(1, lease_seconds=job["lease"]))
        except OrdersError as error:
            print(error, file=sys.stderr)


def main() -> None:
    """Fork a worker for each line; report each end. One thread only, because it forks."""
    assert files.os is os
    text, running, is_open = b"", set(), True
    while is_open or running:
        if is_open and select.select([0], [], [], 0.005)[0]:
            read = os.read(0, 65536)
            is_open = bool(read)
            *lines, text = (text + read).split(b"\n")
            for line in lines:
                running.add(fork(json.loads(line)))
        for pid in list(running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                running.discard(pid)
                print(f"{pid} {status}", flush=True)


def fork(job: Mapping[str, Any]) -> int:
    pid = os.fork()
    if pid:
        print(pid, flush=True)
        return pid
    code = 1
    try:
        work(job)
        code = 0
    finally:
        os._exit(code)


class Nursery:
    """The test's side: starts workers and waits for them."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.delivery.nursery"]
        self.process = subprocess.Popen(
            command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1
        )
        self.ended: dict[int, int] = {}

    def start(self, home: Path, weeks: Sequence[str], environ: Mapping[str, str], point: str = "", lease: float = 0.2) -> int:
        """Fork a worker; returns its pid."""
        assert self.process.stdin and self.process.stdout
        job = {"point": point, "weeks": list(weeks), "environ": {"ORDERS_HOME": str(home), **environ}, "lease": lease}
        self.process.stdin.write(json.dumps(job) + "\n")
        while True:
            words = self.process.stdout.readline().split()
            if len(words) == 1:
                return int(words[0])
            self.ended[int(words[0])] = int(words[1])

    def wait(self, pid: int) -> int:
        """The worker's wait status: 0, or 9 when it was killed."""
        assert self.process.stdout
        while pid not in self.ended:
            ended, status = self.process.stdout.readline().split()
            self.ended[int(ended)] = int(status)
        return self.ended.pop(pid)

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


if __name__ == "__main__":
    main()
