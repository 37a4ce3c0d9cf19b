"""The moment of failure: said once, with what it reaches, and nothing waits for whoever listens."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from orders_platform.recovery import alarms, states
from orders_platform.recovery.alarms import post, record, record_post, recorded, unposted
from orders_platform.recovery.audit import Attempt
from orders_platform.recovery.closure import closure
from tests.recovery.graphs import days, platform_graph, publish, tables, warehouse

DAYS = days(14)
GRAPH = platform_graph(DAYS)
DAY = DAYS[1]


class Receiver:
    """A chat's webhook on loopback."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.answer = 200
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(outer.answer)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()


def failed_day() -> tuple[Any, dict[Any, Any]]:
    """fct_orders of one day failed on its first run; what reads it was planned and never ran."""
    con = warehouse()
    publish(con, GRAPH, [p for p in tables(GRAPH) if p[1] < DAY or (p[1] == DAY and p[0] in ("raw_orders", "stg_orders"))])
    return con, states.compute(con, GRAPH, {})


def test_a_failure_is_recorded_with_its_closure_as_it_was_then_and_only_once() -> None:
    con, now = failed_day()
    made = alarms.failed(GRAPH, now, "fct_orders", [DAY], "discount above gross", "run 7")
    assert record(con, [made]) == [made]
    assert record(con, [alarms.failed(GRAPH, now, "fct_orders", [DAY], "discount above gross", "run 7")]) == []
    publish(con, GRAPH, [("fct_orders", DAY), ("revenue_daily", DAY)])
    (kept,) = recorded(con)
    assert kept == made
    assert ("revenue_daily", DAY, "missing") in kept.closure
    assert ("fct_orders", DAY, "missing") not in kept.closure


def test_the_message_names_asset_interval_error_closure_size_and_command() -> None:
    _, now = failed_day()
    message = alarms.failed(GRAPH, now, "fct_orders", [DAY], "discount above gross", "run 7").message()
    size = message["closure_size"]
    command = f"orders repair fct_orders {DAY} --reason …"
    assert message["text"] == (f"fct_orders {DAY} failed: discount above gross. {size} intervals downstream. Run: {command}")
    assert size == len(closure(GRAPH, [("fct_orders", DAY)])) - 1


def test_intervals_that_never_ran_raise_their_own_alarm_naming_what_they_wait_for() -> None:
    _, now = failed_day()
    tried = {(a, DAY): Attempt(1, "run 7", "blocked") for a in ("revenue_daily", "revenue_to_date", "stg_orders")}
    found = alarms.blocked(GRAPH, now, {**tried, ("fct_orders", DAY): Attempt(1, "run 7", "failed")})
    assert [(a.asset, a.intervals) for a in found] == [("revenue_daily", (DAY,)), ("revenue_to_date", (DAY,))]
    assert all(f"fct_orders {DAY} (missing)" in a.detail for a in found)
    assert {a.remedy for a in found} == {f"orders repair fct_orders {DAY} --reason …"}


def test_a_message_is_posted_until_it_is_taken_and_then_never_again(receiver: Receiver) -> None:
    con, now = failed_day()
    (made,) = record(con, [alarms.failed(GRAPH, now, "fct_orders", [DAY], "broken", "run 7")])
    receiver.answer = 503
    trouble = post(receiver.url, made.message())
    assert trouble == "the alert URL answered 503"
    record_post(con, made, trouble)
    assert unposted(con, made.recorded_at) == [made]
    receiver.answer = 200
    assert post(receiver.url, made.message()) == ""
    record_post(con, made, "")
    assert unposted(con, made.recorded_at) == []
    assert receiver.got[-1]["command"] == f"orders repair fct_orders {DAY} --reason …"


def test_a_url_that_cannot_be_reached_is_reported_without_being_shown() -> None:
    trouble = post("http://127.0.0.1:9/secret", {"text": "x"})
    assert trouble.startswith("the alert URL could not be reached")
    assert "secret" not in trouble
