"""Channels: the ways out. Belongs here: what a channel is given, what it may answer, and which one a URL names.

Not here: the channels themselves (channels_*.py), when to send (deliver.py) or whether to (ledger.py).
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol
from urllib.parse import urlsplit

from orders_platform.errors import OrdersError, SettingsError
from orders_platform.settings import Settings

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Parcel:
    """What is sent: the same bytes for the same key, however often it is sent.

    Attributes:
        key: Idempotency key.
        data: The CSV file.
        export_manifest: Control totals and origin, as written when the content was first built.
        supersedes: Key of what the partner received before.
    """

    key: str
    week: str
    revision: int
    data: bytes
    export_manifest: Mapping[str, Any]
    supersedes: str | None = None

    @property
    def name(self) -> str:
        """A file name that holds the key."""
        return self.key.replace("/", "_")

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The export's manifest, with the key and what it supersedes."""
        own = {"idempotency_key": self.key, "revision": self.revision, "supersedes": self.supersedes}
        return {**own, **self.export_manifest}

    @property
    def files(self) -> dict[str, bytes]:
        """The files in the order in which they have to appear: who sees the manifest may rely on the CSV."""
        text = json.dumps(self.manifest, indent=2, ensure_ascii=False) + "\n"
        return {f"{self.name}.csv": self.data, f"{self.name}.manifest.json": text.encode()}


class Channel(Protocol):
    """One way out.

    Attributes:
        name: Shown and recorded; never holds a credential.
        may_repeat: Whether sending the same key again is harmless. Where it is not, an unknown outcome waits for a person.
    """

    name: str
    may_repeat: bool

    def send(self, parcel: Parcel) -> dict[str, Any]:
        """Send the parcel once; returns the partner's receipt.

        Raises:
            Refused: The partner will not take it; a person has to look.
            NotTaken: It certainly was not taken; the same key may be tried again.
            OutcomeUnknown: It may have been taken.
        """
        ...


class Refused(OrdersError):
    """The partner said no, for good: a wrong signature, or the key with other content."""


class NotTaken(OrdersError):
    """The partner did not take it this time.

    Attributes:
        retry_after: Seconds the partner asked to wait; 0 when it did not ask.
    """

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class OutcomeUnknown(NotTaken):
    """The partner may have taken it: the connection was lost, it did not answer in time, or it failed while working."""


def channel_of(settings: Settings) -> Channel:
    """The channel that ORDERS_DELIVERY_URL names.

    Raises:
        SettingsError: No such channel, or it lacks a setting; the message never holds the URL's secrets.
    """
    url = settings.delivery_url or (settings.home / "outbox").as_uri()
    scheme = urlsplit(url).scheme
    if scheme not in MAKERS:
        raise SettingsError(f"ORDERS_DELIVERY_URL names no channel: {scheme or 'no scheme'}.", f"Use {', '.join(MAKERS)}.")
    channel = MAKERS[scheme](url, settings)
    if settings.delivery_may_repeat is not None:
        channel.may_repeat = settings.delivery_may_repeat
    return channel


def _files(url: str, settings: Settings) -> Channel:
    from orders_platform.delivery.channels_files import FilesChannel

    return FilesChannel(url, settings.delivery_timeout_seconds)


def _webhook(url: str, settings: Settings) -> Channel:
    from orders_platform.delivery.channels_webhook import WebhookChannel

    parts = urlsplit(url)
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise SettingsError(f"ORDERS_DELIVERY_URL would send to {parts.hostname} unencrypted.", "Use https://.")
    if not settings.webhook_secret:
        raise SettingsError("A webhook delivery is signed, and ORDERS_WEBHOOK_SECRET is not set.", "Set it in the environment.")
    return WebhookChannel(url, settings.webhook_secret, settings.delivery_timeout_seconds)


def _sftp(url: str, settings: Settings) -> Channel:
    from orders_platform.delivery.channels_sftp import SftpChannel

    return SftpChannel(
        url,
        known_hosts=settings.sftp_known_hosts,
        password=settings.sftp_password,
        key_file=settings.sftp_key_file,
        timeout=settings.delivery_timeout_seconds,
    )


MAKERS: dict[str, Callable[[str, Settings], Channel]] = {
    "file": _files,
    "s3": _files,
    "https": _webhook,
    "http": _webhook,
    "sftp": _sftp,
}
