"""The file channel: a folder or a bucket. Belongs here: making the parcel's files appear there whole, once, never overwritten.

Not here: other schemes. Repeating a key is harmless as long as the partner leaves the files where they are.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from orders_platform.delivery.channels import OutcomeUnknown, Parcel, Refused
from orders_platform.errors import SettingsError
from orders_platform.warehouse.files import write_once


class FilesChannel:
    """Files named by the key under a `file://` folder or an `s3://` prefix (credentials and endpoint: AWS_* variables)."""

    may_repeat = True

    def __init__(self, url: str, timeout: float) -> None:
        parts = urlsplit(url)
        self.name = f"{parts.scheme}://{parts.hostname or ''}{parts.path}".rstrip("/")
        self.folder: Any
        self._write: Callable[[Any, bytes], bool]
        if parts.scheme == "file":
            if parts.netloc not in ("", "localhost") or not parts.path:
                raise SettingsError("ORDERS_DELIVERY_URL names no folder.", "Use file:///an/absolute/path.")
            self.folder = Path(unquote(parts.path))
            self._write = write_once
        else:
            self.folder = _bucket(f"{parts.scheme}://{parts.netloc}{parts.path}", timeout)
            self._write = _put_once

    def send(self, parcel: Parcel) -> dict[str, Any]:
        """Create the files that are not there yet.

        Raises:
            Refused: A file of that name is there with other bytes, or we may not write there.
            OutcomeUnknown: The disk or the store failed.
        """
        created = {}
        try:
            for name, data in parcel.files.items():
                path = self.folder / name
                created[name] = self._write(path, data)
                if not created[name] and path.read_bytes() != data:
                    raise Refused(f"{self.name} already holds {name} with other content.")
        except (PermissionError, FileNotFoundError, NotADirectoryError) as error:
            raise Refused(f"{self.name} cannot be written: {_reason(error)}.") from None
        except OSError as error:
            raise OutcomeUnknown(f"{self.name} failed while it was written: {_reason(error)}.") from None
        return {"files": list(created), "was_there_already": not any(created.values())}


def _bucket(url: str, timeout: float) -> Any:
    try:
        from upath import UPath

        config = {"connect_timeout": timeout, "read_timeout": timeout, "retries": {"max_attempts": 1}}
        return UPath(url, config_kwargs=config, skip_instance_cache=True)
    except ImportError:
        raise SettingsError("s3:// needs s3fs, which is not installed.", "pip install 'orders-platform[s3]'") from None


def _put_once(path: Any, data: bytes) -> bool:
    """Create the object by a conditional write (If-None-Match), which a store makes visible whole; False when it exists."""
    from botocore.exceptions import BotoCoreError, NoCredentialsError

    try:
        path.fs.pipe_file(path.path, data, mode="create")
    except FileExistsError:
        return False
    except NoCredentialsError as error:
        raise PermissionError(str(error)) from None
    except BotoCoreError as error:
        raise OSError(str(error)) from None
    return True


def _reason(error: OSError) -> str:
    return str(error.strerror or error).rstrip(".") or type(error).__name__
