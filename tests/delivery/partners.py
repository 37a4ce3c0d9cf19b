"""Partners: the other side of each channel, real servers on loopback that count what they hold. Imports nothing heavy."""

import asyncio
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from orders_platform.delivery.states import Content
from orders_platform.drills.partner import SECRET, WebhookPartner
from tests.servers import free_port, wait_for

__all__ = ["SECRET", "WebhookPartner"]

KEY = re.compile(r"(finance_export_\d{4}-\d\d-\d\d_r\d+_[0-9a-f]{64})\.csv")


def content(digest: str = "a" * 64, week: str = "2026-01-05") -> Content:
    location = f"finance_export/week={week}/{digest}.csv"
    return Content("finance_export", week, digest, location, "b2f6a6f4-0000-4000-8000-000000000000")


def exported(root: Path, week: str, text: str) -> Content:
    """A file as finance_export leaves it, with its manifest."""
    data = f"week,revenue\n{week},{text}\n".encode()
    made = content(hashlib.sha256(data).hexdigest(), week)
    path = root / made.location
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.with_suffix(".json").write_text(json.dumps({"export": "finance_export", "week": week, "sha256": made.digest}))
    return made


class FolderPartner:
    """A folder, also the one behind the SFTP server; every file under a final name has to be whole."""

    environ: Mapping[str, str] = {}

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.url = folder.as_uri()

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir() if not path.name.startswith("."))

    def copies(self) -> Counter[str]:
        return count({name: (self.folder / name).read_bytes() for name in self.names()})

    def remove(self, name: str) -> None:
        (self.folder / name).unlink()

    def close(self) -> None:
        return


def count(files: dict[str, bytes]) -> Counter[str]:
    """Files under final names, by key; each has the bytes its key names."""
    found: Counter[str] = Counter()
    for name, data in files.items():
        match = KEY.fullmatch(name)
        if match:
            assert hashlib.sha256(data).hexdigest() == name.removesuffix(".csv")[-64:], f"{name} is not whole"
            found[match[1]] += 1
        else:
            assert json.loads(data)["idempotency_key"].replace("/", "_") == name.removesuffix(".manifest.json")
    return found


class SftpPartner(FolderPartner):
    """A real SSH server (asyncssh) over a folder, with password sign-in; `before_rename` is called in the middle of a send."""

    def __init__(self, folder: Path, user: str = "orders", password: str = SECRET) -> None:
        import asyncssh

        super().__init__(folder / "files")
        self.before_rename: Callable[[], None] | None = None
        self.port = free_port()
        key = asyncssh.generate_private_key("ssh-ed25519")
        self.known_hosts = folder / "known_hosts"
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {key.export_public_key().decode()}")
        self.url = f"sftp://{user}@127.0.0.1:{self.port}/"
        self.environ = {"ORDERS_SFTP_PASSWORD": password, "ORDERS_SFTP_KNOWN_HOSTS": str(self.known_hosts)}
        partner = self

        class Server(asyncssh.SSHServer):
            def password_auth_supported(self) -> bool:
                return True

            def validate_password(self, username: str, given: str) -> bool:
                return (username, given) == (user, password)

        class Files(asyncssh.SFTPServer):
            def __init__(self, chan: Any) -> None:
                super().__init__(chan, chroot=os.fsencode(partner.folder))

            def rename(self, old: bytes, new: bytes) -> Any:
                if partner.before_rename:
                    partner.before_rename()
                return super().rename(old, new)

        self.loop = asyncio.new_event_loop()
        ready = threading.Event()

        def serve() -> None:
            async def start() -> None:
                await asyncssh.create_server(
                    Server, "127.0.0.1", self.port, server_host_keys=[key], sftp_factory=Files, allow_scp=False
                )
                ready.set()

            asyncio.set_event_loop(self.loop)
            self.loop.run_until_complete(start())
            self.loop.run_forever()

        self.thread = threading.Thread(target=serve, daemon=True)
        self.thread.start()
        assert ready.wait(10)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)


class S3Server:
    """moto's S3 server in a process of its own."""

    def __init__(self) -> None:
        self.port = free_port()
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self.port, self.process)

    @property
    def environ(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def client(self) -> Any:
        import boto3

        return boto3.client(
            "s3", endpoint_url=self.environ["AWS_ENDPOINT_URL"], aws_access_key_id="test",
            aws_secret_access_key=SECRET, region_name="us-east-1",
        )  # fmt: skip

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(10)


class BucketPartner:
    """One bucket of the server."""

    def __init__(self, server: S3Server, bucket: str) -> None:
        self.client, self.bucket, self.environ = server.client(), bucket, server.environ
        self.client.create_bucket(Bucket=bucket)
        self.url = f"s3://{bucket}/finance"

    def names(self) -> list[str]:
        listed = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        return sorted(o["Key"].removeprefix("finance/") for page in listed for o in page.get("Contents", []))

    def copies(self) -> Counter[str]:
        read = self.client.get_object
        return count({name: read(Bucket=self.bucket, Key=f"finance/{name}")["Body"].read() for name in self.names()})

    def remove(self, name: str) -> None:
        self.client.delete_object(Bucket=self.bucket, Key=f"finance/{name}")

    def close(self) -> None:
        return
