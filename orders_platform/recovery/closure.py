"""The graph of (asset, interval) pairs and what lies downstream of some of them. Belongs here: pure walks over edges.

Not here: where the edges come from (dagster_facts.py), or which pairs are wrong (states.py).
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from orders_platform.errors import OrdersError
from orders_platform.warehouse.publications import Pair


class UnknownPair(OrdersError):
    """An asset or interval that the graph does not have."""


@dataclass(frozen=True)
class Node:
    """One asset of the graph.

    Attributes:
        intervals: Every interval that has ended by now, in order; ("",) where the asset has no partitions.
        step_days: 1 for days, 7 for weeks, 0 without partitions.
        is_table: Published in the warehouse under a contract, so that its pairs have states.
        is_source: Reads the outside world; running it again captures anew.
        is_effect: Acts on the outside world (a delivery); no repair runs it.
        companions: Tables published in the same swap.
    """

    asset: str
    intervals: tuple[str, ...]
    step_days: int = 1
    owners: tuple[str, ...] = ()
    is_table: bool = True
    is_source: bool = False
    is_effect: bool = False
    companions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Graph:
    """Assets and the intervals they read.

    Attributes:
        nodes: By name, every asset after its inputs.
        needs: (reader, read) -> reader's interval -> the intervals it reads; an asset may read its own past.
        pinned: The (reader, read) whose reads are recorded with each publication (a parameter, not a bare dependency).
    """

    nodes: Mapping[str, Node]
    needs: Mapping[tuple[str, str], Mapping[str, tuple[str, ...]]]
    pinned: Collection[tuple[str, str]] = field(default_factory=frozenset)

    @cached_property
    def parents(self) -> dict[Pair, list[Pair]]:
        """Pair -> the pairs it reads."""
        found: dict[Pair, list[Pair]] = {}
        for (reader, read), mapping in self.needs.items():
            for interval, needed in mapping.items():
                found.setdefault((reader, interval), []).extend((read, i) for i in needed)
        return found

    @cached_property
    def children(self) -> dict[Pair, list[Pair]]:
        """Pair -> the pairs that read it."""
        found: dict[Pair, list[Pair]] = {}
        for (reader, read), mapping in self.needs.items():
            for interval, needed in mapping.items():
                pair = (reader, interval)
                for i in needed:
                    found.setdefault((read, i), []).append(pair)
        return found

    @cached_property
    def order(self) -> dict[str, int]:
        """Asset -> its place: every asset after its inputs."""
        return {asset: place for place, asset in enumerate(self.nodes)}

    @cached_property
    def owner_of(self) -> dict[str, str]:
        """Table -> the asset that publishes it (itself, or the one it is a companion of)."""
        return {name: node.asset for node in self.nodes.values() for name in (node.asset, *node.companions)}

    def sort(self, pairs: Iterable[Pair]) -> list[Pair]:
        """The pairs, each after everything it reads."""
        return sorted(pairs, key=lambda pair: (self.order[pair[0]], pair[1]))

    def reads_itself(self, asset: str) -> bool:
        """Whether the asset depends on its own past, so that its intervals run in order."""
        return (asset, asset) in self.needs

    def require(self, asset: str, intervals: Iterable[str]) -> list[Pair]:
        """The pairs, checked to exist; an interval may be a range such as 2026-01-05...2026-01-09.

        Raises:
            UnknownPair: No such asset, or it has no such interval (yet).
        """
        if asset not in self.nodes:
            owner = self.owner_of.get(asset)
            hint = f"It is published with {owner}: name that." if owner else f"Assets: {', '.join(self.nodes)}."
            raise UnknownPair(f"{asset} is not an asset of the graph.", hint)
        node, known = self.nodes[asset], set(self.nodes[asset].intervals)
        found = []
        for text in intervals:
            first, dots, last = text.partition("...")
            interval = next((i for i in (first, last or first) if i not in known), "")
            if interval:
                kind = {0: "no intervals", 1: "days", 7: "weeks named by their Monday"}.get(node.step_days, "other intervals")
                span = f" from {node.intervals[0]} to {node.intervals[-1]}" if node.step_days and node.intervals else ""
                raise UnknownPair(f"{asset} has no interval {interval}.", f"It has {kind}{span}.")
            found += [(asset, i) for i in (node.intervals if dots else (first,)) if first <= i <= (last or first)]
        return self.sort(set(found))


def closure(graph: Graph, seeds: Iterable[Pair]) -> list[Pair]:
    """The seeds and everything downstream of them, each pair after what it reads.

    An upper bound: the states say which of them are really affected.

    >>> graph = Graph({"a": Node("a", ("1", "2")), "b": Node("b", ("1", "2"))}, {("b", "a"): {"1": ("1",), "2": ("1", "2")}})
    >>> closure(graph, [("a", "2")])
    [('a', '2'), ('b', '2')]
    """
    return graph.sort(walk(graph.children, seeds))


def upstream(graph: Graph, pairs: Iterable[Pair]) -> list[Pair]:
    """The pairs and everything they are made from, each pair after what it reads."""
    return graph.sort(walk(graph.parents, pairs))


def walk(edges: Mapping[Pair, Sequence[Pair]], starts: Iterable[Pair]) -> set[Pair]:
    """The starts and everything that the edges lead to from them."""
    seen = set(starts)
    waiting = deque(seen)
    while waiting:
        for pair in edges.get(waiting.popleft(), ()):
            if pair not in seen:
                seen.add(pair)
                waiting.append(pair)
    return seen
