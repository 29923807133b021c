"""The project's promises to itself, checked against the results of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.rules import CASES

Result = dict[str, Any]
BATCH = "10000"
LARGE, SMALL = 1_000_000, 10_000
GROWTH = 2.0
EVENTS_PER_SECOND = 300_000
ONE_RULE = ("key", "zip_city", "exemption")


@dataclass(frozen=True)
class Bar:
    """One promise: what was wanted, what was seen; None stands for not measured in this run."""

    case: str
    promise: str
    wanted: float
    seen: float | None
    at_most: bool = False

    @property
    def verdict(self) -> str:
        """
        >>> Bar("key", "times plain", 3.0, 3.5).verdict, Bar("key", "growth", 2.0, 3.5, at_most=True).verdict
        ('met', 'missed')
        """
        if self.seen is None:
            return "not measured"
        return "met" if (self.seen <= self.wanted if self.at_most else self.seen >= self.wanted) else "missed"


def ratio(result: Result, batch: str) -> float | None:
    """How many times faster the engine inserts a row than the plain design."""
    if result["plain"] is None or batch not in result["engine"]["insert_us"]:
        return None
    return float(result["plain"]["insert_us"]["1"] / result["engine"]["insert_us"][batch])


def check(results: Sequence[Result]) -> Iterator[Bar]:
    """Every bar of every measured rule, at 1M rows in batches of 10,000."""
    by_size = {(result["case"], result["rows"]): result for result in results}
    for name in dict.fromkeys(result["case"] for result in results):
        large, small = by_size.get((name, LARGE)), by_size.get((name, SMALL))
        yield Bar(name, "times the plain design", CASES[name].bar, ratio(large, BATCH) if large else None)
        now, then = _insert_us(large), _insert_us(small)
        if CASES[name].has_equality:
            growth = now / then if now and then else None
            yield Bar(name, "insert at 1M rows against 10k", GROWTH, growth, at_most=True)
        if name in ONE_RULE:
            yield Bar(name, "events/s", EVENTS_PER_SECOND, 1e6 / now if now else None)


def _insert_us(result: Result | None) -> float | None:
    return None if result is None else result["engine"]["insert_us"].get(BATCH)
