"""The webhook channel. Belongs here: one signed POST and what its answer means.

Not here: whether and when it is repeated (deliver.py). The secret and the URL's path never leave this module.
"""

import hashlib
import hmac
import json
import logging
import math
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import httpx

from orders_platform.delivery.channels import NotTaken, OutcomeUnknown, Parcel, Refused

# httpx logs whole URLs at INFO, and a webhook's path is often its secret.
logging.getLogger("httpx").setLevel(logging.WARNING)

LATER = (408, 425, 429, 503)
SHOWN = 200


class WebhookChannel:
    """POST with `Idempotency-Key` and `Orders-Signature: t=<unix seconds>,v1=<HMAC-SHA256 of "t.body", hex>`.

    2xx is delivered. 408, 425, 429 and 503 were not taken; any other 5xx, no answer, or a connection lost after it was made
    leaves the outcome unknown. Everything else, 409 and 422 (key with other content) among it, is refused. No redirects.
    """

    may_repeat = True

    def __init__(self, url: str, secret: str, timeout: float) -> None:
        parts = urlsplit(url)
        self.name = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
        self._url, self._secret = url, secret.encode()
        self._timeout = timeout

    def send(self, parcel: Parcel) -> dict[str, Any]:
        """Post the parcel as one JSON document.

        Raises:
            Refused, NotTaken, OutcomeUnknown: See the class.
        """
        body = body_of(parcel)
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": parcel.key,
            "Orders-Signature": signature(self._secret, int(time.time()), body),
        }
        try:
            answer = httpx.post(self._url, content=body, headers=headers, timeout=self._timeout, follow_redirects=False)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
            raise NotTaken(f"{self.name} could not be reached: {_reason(error)}.") from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise Refused(f"ORDERS_DELIVERY_URL cannot be posted to: {type(error).__name__}.") from None
        except httpx.HTTPError as error:
            raise OutcomeUnknown(f"{self.name} did not answer: {_reason(error)}.") from None
        return self._receipt(answer)

    def _receipt(self, answer: httpx.Response) -> dict[str, Any]:
        status = answer.status_code
        if answer.is_success:
            return {"status": status, "answer": answer.text[:SHOWN]}
        said = f"{self.name} answered {status}"
        wait = retry_after(answer.headers.get("Retry-After", ""), datetime.now(UTC))
        if status in LATER:
            raise NotTaken(f"{said}.", wait)
        if answer.is_server_error:
            raise OutcomeUnknown(f"{said}.", wait)
        if status in (409, 422):
            raise Refused(f"{said}: it knows this key with other content.")
        if status in (401, 403):
            raise Refused(f"{said}: it does not accept the signature; compare ORDERS_WEBHOOK_SECRET with the partner's.")
        raise Refused(f"{said}.")


def body_of(parcel: Parcel) -> bytes:
    """The document that is posted: the manifest with the file under `csv`; equal bytes for an equal key."""
    document = {**parcel.manifest, "csv": parcel.data.decode()}
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def signature(secret: bytes, at: int, body: bytes) -> str:
    """The signature header; a receiver recomputes it and refuses a time far from its own.

    >>> signature(b"secret", 1767571200, b"{}")[:29]
    't=1767571200,v1=17c65568683cf'
    """
    return f"t={at},v1={hmac.new(secret, f'{at}.'.encode() + body, hashlib.sha256).hexdigest()}"


def retry_after(header: str, now: datetime) -> float:
    """Seconds that a Retry-After header asks to wait: a number or an HTTP date; 0 when there is none or it cannot be read.

    >>> retry_after("120", datetime(2026, 1, 5, tzinfo=UTC))
    120.0
    >>> retry_after("Mon, 05 Jan 2026 00:01:00 GMT", datetime(2026, 1, 5, tzinfo=UTC))
    60.0
    """
    try:
        seconds = float(header) if header.strip().isdigit() else (parsedate_to_datetime(header) - now).total_seconds()
    except (TypeError, ValueError):
        return 0.0
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0


def _reason(error: httpx.HTTPError) -> str:
    return f"{type(error).__name__} {error}".strip().rstrip(".")
