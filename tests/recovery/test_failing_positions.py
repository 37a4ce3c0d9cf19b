"""Five weeks of every table; one day fails at each position in turn. The closure is the expected set, and the repair just it."""

import itertools
from collections.abc import Iterator

import pytest

from orders_platform.recovery.closure import closure
from orders_platform.recovery.repair import Repair, plan
from orders_platform.warehouse import publications
from orders_platform.warehouse.publications import Pair
from tests.recovery.graphs import days
from tests.recovery.small_platform import Launcher, Platform, graph

DAYS = days(35)
DAY = DAYS[17]
GRAPH = graph(DAYS)
WEEK = DAYS[14]
CHAIN = ("raw", "stg", "daily", "total", "export")


@pytest.fixture
def there() -> Iterator[Platform]:
    made = Platform(GRAPH)
    for n, day in enumerate(DAYS):
        made.model.source[day] = {"o1": f"{n}.00", "o2": "1.50"}
    yield made
    made.close()


def build(there: Platform, without: Pair = ("", "")) -> None:
    """Everything, as far as a failure of that pair lets it come."""
    for asset in CHAIN:
        intervals = GRAPH.nodes[asset].intervals
        cuts = sorted({0, len(intervals), *[n + k for n, i in enumerate(intervals) if i in (DAY, WEEK) for k in (0, 1)]})
        for start, end in itertools.pairwise(cuts):
            run = intervals[start:end]
            if (asset, run[0]) == without:
                there.run(asset, run, at=3)
            elif not there.model.refuses(asset, run):
                there.run(asset, run)


def expected(asset: str, day: str) -> list[Pair]:
    """What lies downstream, written out by hand."""
    below = list(CHAIN[CHAIN.index(asset) :])
    found = [(a, day) for a in below if a in ("raw", "stg", "daily")]
    if asset == "export":
        return [("export", WEEK)]
    week = [] if asset == "total" else [("export", WEEK)]
    return [*found, *week, *[("total", d) for d in DAYS if d >= day]]


def contents(there: Platform) -> dict[Pair, str]:
    return {pair: p.digest for pair, p in publications.all_current(there.base).items()}


def counts(there: Platform) -> dict[Pair, int]:
    return {pair: p.revision for pair, p in publications.all_current(there.base).items()}


def repair(there: Platform, seed: Pair) -> list[Pair]:
    outcome = Repair(GRAPH, plan(GRAPH, *there.look(), [seed]), there.look, Launcher(there)).run()
    assert not outcome.failed and not outcome.waiting and not outcome.held
    return outcome.repaired


@pytest.mark.parametrize("asset", CHAIN)
def test_a_day_that_failed_on_its_first_run(there: Platform, asset: str) -> None:
    never = Platform(GRAPH)
    never.model.source = dict(there.model.source)
    build(never)
    seed = (asset, WEEK if asset == "export" else DAY)
    build(there, without=seed)
    assert closure(GRAPH, [seed]) == GRAPH.sort(expected(asset, DAY))
    _, found = there.look()
    assert [p for p, s in found.items() if s.name != "current"] == GRAPH.sort(expected(asset, DAY))
    before = counts(there)
    assert repair(there, seed) == GRAPH.sort(expected(asset, DAY))
    after = counts(there)
    assert {p for p in after if after[p] != before.get(p)} == set(expected(asset, DAY))
    assert contents(there) == contents(never)
    there.check()
    never.close()


@pytest.mark.parametrize("asset", CHAIN[1:])
def test_a_correction_whose_run_failed(there: Platform, asset: str) -> None:
    build(there)
    before = counts(there)
    there.model.source[DAY] = {"o1": "99.00", "o2": "1.50"}
    for name in CHAIN[: CHAIN.index(asset)]:
        if name != "total":
            there.run(name, [DAY])
    seed = (asset, WEEK if asset == "export" else DAY)
    there.run(asset, [seed[1]], at=3)
    middle = counts(there)
    repaired = repair(there, seed)
    assert repaired == GRAPH.sort(expected(asset, DAY))
    after = counts(there)
    assert {p for p in after if after[p] != middle[p]} == set(repaired)
    assert all(after[p] == before[p] + 1 for p in repaired)
    for beside in (("total", DAY), ("export", WEEK)):
        if there.look()[1][beside].name == "stale":
            repair(there, beside)
    never = Platform(GRAPH)
    never.model.source = dict(there.model.source)
    build(never)
    assert contents(there) == contents(never)
    there.check()
    never.close()
