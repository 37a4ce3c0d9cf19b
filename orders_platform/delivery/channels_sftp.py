"""The SFTP channel. Belongs here: uploading under a hidden name, then renaming, so that a file appears whole.

Not here: other schemes. Repeating a key is harmless as long as the partner leaves the files where they are.
"""

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from orders_platform.delivery.channels import NotTaken, OutcomeUnknown, Parcel, Refused
from orders_platform.errors import SettingsError

try:
    import paramiko
except ImportError:
    raise SettingsError("sftp:// needs paramiko, which is not installed.", "pip install 'orders-platform[sftp]'") from None

PORT = 22


class SftpChannel:
    """Files named by the key in a folder of an SFTP server, whose host key must be in the known-hosts file.

    Signs in with the password, the key file, or the keys of the SSH agent, in that order of preference.
    """

    may_repeat = True

    def __init__(self, url: str, *, known_hosts: Path | None, password: str, key_file: Path | None, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.password:
            raise SettingsError("ORDERS_DELIVERY_URL holds a password.", "Put it into ORDERS_SFTP_PASSWORD.")
        if not parts.hostname or not parts.username:
            raise SettingsError("ORDERS_DELIVERY_URL lacks a host or a user.", "Use sftp://user@host/folder.")
        self._host, self._port, self._user = parts.hostname, parts.port or PORT, parts.username
        self.folder = PurePosixPath(unquote(parts.path) or "/")
        self.name = f"sftp://{self._user}@{self._host}:{self._port}{self.folder}"
        self._known_hosts = known_hosts or Path("~/.ssh/known_hosts").expanduser()
        if not self._known_hosts.is_file():
            raise SettingsError("There is no known-hosts file.", "Set ORDERS_SFTP_KNOWN_HOSTS to the partner's.")
        self._password, self._key_file, self._timeout = password, key_file, timeout

    def send(self, parcel: Parcel) -> dict[str, Any]:
        """Create the files that are not there yet.

        Raises:
            Refused: The host key or the sign-in is wrong, the folder cannot be written, or a file has other bytes.
            NotTaken: The server could not be reached.
            OutcomeUnknown: The connection or the server failed on the way.
        """
        created = {}
        with self._connected() as sftp:
            try:
                found = self._listed(sftp)
                for name, data in parcel.files.items():
                    created[name] = self._put_once(sftp, name, data, found)
            except PermissionError as error:
                raise Refused(f"{self.name} cannot be written: {error.strerror or error}.") from None
            except (OSError, EOFError, paramiko.SSHException) as error:
                raise OutcomeUnknown(f"{self.name} failed on the way: {str(error) or type(error).__name__}.") from None
        return {"files": list(created), "was_there_already": not any(created.values())}

    @contextlib.contextmanager
    def _connected(self) -> Iterator[paramiko.SFTPClient]:
        client = paramiko.SSHClient()
        client.set_missing_host_key_policy(paramiko.RejectPolicy())
        with client:
            try:
                client.load_host_keys(str(self._known_hosts))
                client.connect(
                    self._host,
                    self._port,
                    self._user,
                    password=self._password or None,
                    key_filename=str(self._key_file) if self._key_file else None,
                    allow_agent=not (self._password or self._key_file),
                    look_for_keys=False,
                    timeout=self._timeout,
                    banner_timeout=self._timeout,
                    auth_timeout=self._timeout,
                )
                sftp = client.open_sftp()
            except paramiko.BadHostKeyException:
                raise Refused(f"{self.name} shows another host key than the known one.") from None
            except paramiko.AuthenticationException:
                raise Refused(
                    f"{self.name} does not accept our sign-in; see ORDERS_SFTP_PASSWORD, ORDERS_SFTP_KEY_FILE."
                ) from None
            except paramiko.SSHException as error:
                if "not found in known_hosts" in str(error):
                    raise Refused(f"{self.name} is not in the known-hosts file; see ORDERS_SFTP_KNOWN_HOSTS.") from None
                raise NotTaken(f"{self.name} could not be reached: {error}.") from None
            except (OSError, EOFError) as error:
                raise NotTaken(f"{self.name} could not be reached: {str(error) or type(error).__name__}.") from None
            channel = sftp.get_channel()
            if channel is not None:
                channel.settimeout(self._timeout)
            yield sftp

    def _listed(self, sftp: paramiko.SFTPClient) -> list[str]:
        try:
            return sftp.listdir(str(self.folder))
        except FileNotFoundError:
            raise Refused(f"{self.name} cannot be written: there is no such folder.") from None

    def _put_once(self, sftp: paramiko.SFTPClient, name: str, data: bytes, found: list[str]) -> bool:
        """Upload and rename; standard SFTP rename refuses a name that is taken. Leftovers of ended workers are removed."""
        final = str(self.folder / name)
        if self._is_there(sftp, final, data):
            return False
        for leftover in found:
            if leftover.startswith(f".{name}.") and leftover.endswith(".part"):
                with contextlib.suppress(FileNotFoundError):
                    sftp.remove(str(self.folder / leftover))
        part = str(self.folder / f".{name}.{uuid.uuid4().hex}.part")
        with sftp.open(part, "wb") as file:
            file.write(data)
        try:
            sftp.rename(part, final)
        except OSError:
            if not self._is_there(sftp, final, data):
                raise
            sftp.remove(part)
            return False
        return True

    def _is_there(self, sftp: paramiko.SFTPClient, path: str, data: bytes) -> bool:
        try:
            with sftp.open(path, "rb") as file:
                found = file.read()
        except FileNotFoundError:
            return False
        if found != data:
            raise Refused(f"{self.name} already holds {PurePosixPath(path).name} with other content.")
        return True
