"""The channels against real partners: whole files, one copy a key, and the right word for everything that goes wrong."""

import hashlib
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import trustme

from orders_platform.delivery.channels import Channel, NotTaken, OutcomeUnknown, Parcel, Refused, channel_of
from orders_platform.delivery.channels_webhook import WebhookChannel
from orders_platform.errors import SettingsError
from orders_platform.settings import Settings
from tests.delivery.partners import SECRET, BucketPartner, FolderPartner, S3Server, SftpPartner, WebhookPartner

WEEK = "2026-01-05"


def parcel(data: bytes = b"week,revenue\n", revision: int = 1, supersedes: str | None = None) -> Parcel:
    digest = hashlib.sha256(data).hexdigest()
    return Parcel(f"finance_export/{WEEK}/r{revision}/{digest}", WEEK, revision, data, {"week": WEEK}, supersedes)


def channel_to(url: str, home: Path, **environ: str) -> Channel:
    given = {"ORDERS_HOME": str(home), "ORDERS_DELIVERY_URL": url, "ORDERS_DELIVERY_TIMEOUT_SECONDS": "5"}
    return channel_of(Settings.read({**given, **environ}))


@pytest.fixture
def bucket(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> BucketPartner:
    for name, value in s3.environ.items():
        monkeypatch.setenv(name, value)
    return BucketPartner(s3, f"partner-{os.urandom(4).hex()}")


@pytest.fixture
def sftp(tmp_path: Path) -> Iterator[SftpPartner]:
    made = SftpPartner(tmp_path)
    yield made
    made.close()


@pytest.fixture
def webhook() -> Iterator[WebhookPartner]:
    made = WebhookPartner()
    yield made
    made.close()


@pytest.fixture(params=["file", "s3", "sftp"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Channel, FolderPartner | BucketPartner]:
    """A channel that leaves files, and its partner."""
    if request.param == "file":
        partner = FolderPartner(tmp_path / "outbox")
        return channel_to(partner.url, tmp_path), partner
    made = request.getfixturevalue("bucket" if request.param == "s3" else "sftp")
    return channel_to(made.url, tmp_path, **made.environ), made


Files = tuple[Channel, FolderPartner | BucketPartner]


def test_a_parcel_becomes_a_csv_and_a_manifest_and_sending_it_again_changes_nothing(files: Files) -> None:
    channel, partner = files
    sent = parcel(supersedes="finance_export/2026-01-05/r0/x")
    assert channel.send(sent)["was_there_already"] is False
    assert channel.send(sent)["was_there_already"] is True
    assert partner.copies() == {sent.name: 1}
    assert channel.may_repeat and sent.manifest["supersedes"] == "finance_export/2026-01-05/r0/x"


def test_a_name_that_holds_other_content_is_never_overwritten(files: Files) -> None:
    channel, partner = files
    sent = parcel()
    channel.send(sent)
    other = Parcel(sent.key, WEEK, 1, b"other content\n", {"week": WEEK})
    with pytest.raises(Refused, match=r"already holds finance_export_2026-01-05_r1_.* with other content"):
        channel.send(other)
    assert partner.copies() == {sent.name: 1}


def test_a_manifest_that_was_not_written_any_more_is_written_the_next_time(files: Files) -> None:
    channel, partner = files
    sent = parcel()
    channel.send(sent)
    partner.remove(f"{sent.name}.manifest.json")
    assert channel.send(sent)["was_there_already"] is False
    assert partner.copies() == {sent.name: 1} and partner.names() == list(sent.files)


def test_a_bucket_or_folder_that_is_not_there_is_refused(bucket: BucketPartner, sftp: SftpPartner, tmp_path: Path) -> None:
    for url, environ in (("s3://no-such-bucket/x", bucket.environ), (f"{sftp.url}no/such/folder", sftp.environ)):
        with pytest.raises(Refused, match="cannot be written"):
            channel_to(url, tmp_path, **environ).send(parcel())


def test_a_store_that_cannot_be_reached_leaves_the_outcome_unknown_and_a_server_not_taken(
    tmp_path: Path, bucket: BucketPartner, monkeypatch: pytest.MonkeyPatch, sftp: SftpPartner
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(OutcomeUnknown):
        channel_to("s3://partner/x", tmp_path).send(parcel())
    with pytest.raises(NotTaken, match="could not be reached"):
        channel_to("sftp://orders@127.0.0.1:1/", tmp_path, **sftp.environ).send(parcel())


def test_a_full_disk_leaves_no_file_under_a_final_name_and_a_later_send_completes(tmp_path: Path) -> None:
    code = f"""
import resource, signal
from pathlib import Path
from orders_platform.delivery.channels import OutcomeUnknown
from tests.delivery.test_channels import channel_to, parcel
channel = channel_to({(tmp_path / "outbox").as_uri()!r}, Path({str(tmp_path)!r}))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
try:
    channel.send(parcel(b"x" * 100_000))
except OutcomeUnknown as error:
    print(error.message)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "failed while it was written: File too large." in done.stdout
    assert list((tmp_path / "outbox").iterdir()) == []
    channel_to((tmp_path / "outbox").as_uri(), tmp_path).send(parcel(b"x" * 100_000))
    assert FolderPartner(tmp_path / "outbox").copies().total() == 1


def test_two_workers_uploading_the_same_key_at_once_leave_one_whole_file(files: Files) -> None:
    channel, partner = files
    sent = parcel(b"x" * 300_000)

    def work(_: int) -> Exception | None:
        try:
            channel.send(sent)
        except OutcomeUnknown as error:  # its part file was taken away by another: the same key is sent again
            return error
        return None

    with ThreadPoolExecutor(4) as pool:
        assert None in list(pool.map(work, range(4)))
    channel.send(sent)
    assert partner.copies() == {sent.name: 1}


def test_sftp_needs_the_known_host_key_and_the_password_outside_the_url(sftp: SftpPartner, tmp_path: Path) -> None:
    stranger = tmp_path / "others"
    stranger.write_text("")
    with pytest.raises(Refused, match="not in the known-hosts file"):
        channel_to(sftp.url, tmp_path, **{**sftp.environ, "ORDERS_SFTP_KNOWN_HOSTS": str(stranger)}).send(parcel())
    with pytest.raises(Refused, match="does not accept our sign-in") as caught:
        channel_to(sftp.url, tmp_path, **{**sftp.environ, "ORDERS_SFTP_PASSWORD": "hunter2"}).send(parcel())
    assert "hunter2" not in str(caught.value)
    with pytest.raises(SettingsError, match="holds a password") as found:
        channel_to("sftp://orders:hunter2@127.0.0.1/", tmp_path)
    assert "hunter2" not in str(found.value)


def test_what_an_ended_upload_left_behind_is_removed(sftp: SftpPartner, tmp_path: Path) -> None:
    sent = parcel()
    (sftp.folder / f".{sent.name}.csv.0123.part").write_bytes(b"half")
    channel_to(sftp.url, tmp_path, **sftp.environ).send(sent)
    assert sorted(p.name for p in sftp.folder.iterdir()) == [f"{sent.name}.csv", f"{sent.name}.manifest.json"]


@pytest.mark.parametrize(
    ("script", "error", "text"),
    [
        (401, Refused, "does not accept the signature"),
        (404, Refused, "answered 404"),
        (409, Refused, "knows this key with other content"),
        (422, Refused, "knows this key with other content"),
        ((302, {"Location": "http://127.0.0.1:1/"}), Refused, "answered 302"),
        (408, NotTaken, "answered 408"),
        ((429, {"Retry-After": "7"}), NotTaken, "answered 429"),
        (503, NotTaken, "answered 503"),
        (500, OutcomeUnknown, "answered 500"),
        ("cut before", OutcomeUnknown, "did not answer"),
        ("cut after", OutcomeUnknown, "did not answer"),
        ("hang", OutcomeUnknown, "ReadTimeout"),
    ],
)
def test_what_a_webhook_answers_decides(webhook: WebhookPartner, script: object, error: type[Exception], text: str) -> None:
    webhook.script = [script]
    with pytest.raises(error, match=text) as caught:
        WebhookChannel(webhook.url, SECRET, timeout=0.5).send(parcel())
    assert type(caught.value) is error
    assert "in-the-url" not in str(caught.value) and SECRET not in str(caught.value)
    if isinstance(script, tuple) and script[0] == 429:
        assert isinstance(caught.value, NotTaken) and caught.value.retry_after == 7.0


def test_a_webhook_that_is_down_did_not_take_it() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(NotTaken, match="could not be reached") as caught:
            WebhookChannel(f"http://127.0.0.1:{taken.getsockname()[1]}/x", SECRET, timeout=1).send(parcel())
    assert type(caught.value) is NotTaken


def test_a_wrong_signing_key_is_refused_by_the_partner(webhook: WebhookPartner) -> None:
    with pytest.raises(Refused, match="compare ORDERS_WEBHOOK_SECRET"):
        WebhookChannel(webhook.url, "another-secret", timeout=5).send(parcel())
    assert not webhook.effects


def test_a_partner_that_has_the_key_with_other_content_is_left_to_a_person(webhook: WebhookPartner) -> None:
    sent = parcel()
    webhook.effects[sent.key] = "something else"
    with pytest.raises(Refused, match="answered 422: it knows this key with other content"):
        WebhookChannel(webhook.url, SECRET, timeout=5).send(sent)


def test_an_https_partner_is_verified(webhook: WebhookPartner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    webhook.server.socket = context.wrap_socket(webhook.server.socket, server_side=True)
    url = webhook.url.replace("http://", "https://")
    with pytest.raises(NotTaken, match=r"could not be reached.*CERTIFICATE_VERIFY_FAILED"):
        channel_to(url, tmp_path, ORDERS_WEBHOOK_SECRET=SECRET).send(parcel())
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    assert channel_to(url, tmp_path, ORDERS_WEBHOOK_SECRET=SECRET).send(parcel())["status"] == 200


def test_settings_that_cannot_be_sent_with_are_named_without_their_secrets(tmp_path: Path) -> None:
    for url, text in (
        ("ftp://partner/x", "names no channel: ftp"),
        ("outbox", "names no channel: no scheme"),
        ("http://partner.example/hook?token=hunter2", "unencrypted"),
        ("https://partner.example/hook?token=hunter2", "ORDERS_WEBHOOK_SECRET is not set"),
        ("sftp://partner.example/x", "lacks a host or a user"),
        ("sftp://orders@partner.example/x", "no known-hosts file"),
        ("file://outbox", "names no folder"),
    ):
        with pytest.raises(SettingsError, match=text) as caught:
            channel_to(url, tmp_path, ORDERS_SFTP_KNOWN_HOSTS=str(tmp_path / "none"))
        assert "hunter2" not in str(caught.value)


def test_by_default_files_go_into_the_outbox_and_a_partner_that_takes_them_away_can_be_declared(tmp_path: Path) -> None:
    found = channel_of(Settings.read({"ORDERS_HOME": str(tmp_path)}))
    assert (found.name, found.may_repeat) == (f"file://{tmp_path}/outbox", True)
    assert channel_of(Settings.read({"ORDERS_HOME": str(tmp_path), "ORDERS_DELIVERY_MAY_REPEAT": "no"})).may_repeat is False
