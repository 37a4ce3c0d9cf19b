"""A partner: the other side of the webhook channel, a real server on loopback that counts what it holds.

Not here: the channel itself (delivery/). Imports nothing heavy.
"""

import csv
import hashlib
import hmac
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "a-secret-of-the-tests"  # noqa: S105


class WebhookPartner:
    """An HTTP partner that honours Idempotency-Key and can be told to misbehave.

    Attributes:
        effects: key -> what it did for that key: the body's SHA-256, once a key.
        requests: key -> POSTs that arrived whole and carried a good signature.
        script: What to do with the next requests: a status, "hang", "cut before", "cut after", or (status, headers).
        honours: Whether it remembers keys; if not, every request is an effect.
    """

    def __init__(self, secret: str = SECRET, *, honours: bool = True, choose: Callable[[], Any] | None = None) -> None:
        self.secret, self.honours = secret.encode(), honours
        self.effects: dict[str, str] = {}
        self.done: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.bodies: dict[str, dict[str, Any]] = {}
        self.script: list[Any] = []
        self.choose = choose
        self.environ = {"ORDERS_WEBHOOK_SECRET": secret}
        self.before_answer: Callable[[], None] | None = None
        self.before_effect: Callable[[], None] | None = None
        self.released = threading.Event()
        self.lock = threading.Lock()
        partner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                partner.handle(self)

            def log_message(self, *_: Any) -> None:
                return

        class Server(ThreadingHTTPServer):
            request_queue_size = 128
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                return

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hooks/finance?token=in-the-url"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        """Take one POST, as the script says."""
        body = request.rfile.read(int(request.headers["Content-Length"]))
        if len(body) < int(request.headers["Content-Length"]):
            return None
        digest = hashlib.sha256(body).hexdigest()
        key = request.headers["Idempotency-Key"] or f"without a key, number {sum(self.requests.values()) + 1}"
        if self.secret and not self.is_signed(request.headers["Orders-Signature"] or "", body):
            return self.answer(request, 401)
        with self.lock:
            self.requests[key] += 1
            act = self.script.pop(0) if self.script else self.choose() if self.choose else 200
        status, headers = act if isinstance(act, tuple) else (act, {})
        if status == "cut before":
            return self.cut(request)
        if isinstance(status, int) and status >= 300:
            return self.answer(request, status, headers)
        if self.before_effect:
            self.before_effect()
        with self.lock:
            known = self.effects.get(key) if self.honours else None
            if known is None:
                self.effects[key] = digest
                self.done[key] += 1
                self.bodies[key] = json.loads(body)
        if self.before_answer:
            self.before_answer()
        if status == "hang":
            self.released.wait(60)
            return self.cut(request)
        if status == "cut after":
            return self.cut(request)
        return self.answer(request, 200 if known in (None, digest) else 422)

    def is_signed(self, signature: str, body: bytes) -> bool:
        """Whether the signature is ours, and of the last five minutes."""
        at, _, mac = signature.removeprefix("t=").partition(",v1=")
        wanted = hmac.new(self.secret, f"{at}.".encode() + body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(mac, wanted) and abs(time.time() - int(at)) <= 300

    def books(self, currency: str) -> Decimal:
        """Revenue of everything it was sent and that nothing it was sent supersedes."""
        replaced = {body.get("supersedes") for body in self.bodies.values()}
        counted = [body["csv"].splitlines() for key, body in self.bodies.items() if key not in replaced]
        lines = [line for text in counted for line in csv.DictReader(text)]
        return sum((Decimal(line["revenue"]) for line in lines if line["currency"] == currency), Decimal(0))

    def answer(self, request: BaseHTTPRequestHandler, status: int, headers: dict[str, str] | None = None) -> None:
        """Answer with this status."""
        request.send_response(status)
        for name, value in (headers or {}).items():
            request.send_header(name, value)
        request.send_header("Content-Length", "2")
        request.end_headers()
        request.wfile.write(b"{}")

    def cut(self, request: BaseHTTPRequestHandler) -> None:
        """Close the connection without an answer."""
        request.close_connection = True
        request.connection.close()

    def copies(self) -> Counter[str]:
        """Key (as a file name) -> effects."""
        return Counter({key.replace("/", "_"): count for key, count in self.done.items()})

    def close(self) -> None:
        """Stop serving."""
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)
