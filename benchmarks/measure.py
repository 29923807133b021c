"""One case at one size, in a process of its own: load, then timed inserts and deletes, for engine and plain design.

Both get the same rows in the same order. Decoding and index upkeep are inside the measured time; making the input is
not. A round inserts a few batches of one size and then deletes them again, so every round starts from the same rows.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.generate import Table
from benchmarks.plain import Plain
from benchmarks.rules import SETS, SINGLE, Case
from weever_stream import Monitor

LOAD_BATCH = 50_000
ROUNDS = {1: 200, 100: 20, 10_000: 3}
"""Batch size -> batches. Sets of rules and quick runs take fewer, see `rounds_for`."""


@dataclass
class Side:
    """What one contestant did: microseconds for one row, by batch size, and what it found."""

    load_seconds: float = 0.0
    bytes_per_row: float = 0.0
    insert_us: dict[int, float] = field(default_factory=dict)
    delete_us: dict[int, float] = field(default_factory=dict)
    found: dict[int, list[int]] = field(default_factory=dict)


def rounds_for(case: Case, quick: bool) -> dict[int, int]:
    if quick:
        return {1: 20, 100: 2, 1_000: 1}
    return {1: 50, 100: 5, 10_000: 1} if case.is_set else ROUNDS


def run(case: Case, rows: int, quick: bool) -> dict[str, Any]:
    rounds = rounds_for(case, quick)
    table = case.table(rows + max(size * batches for size, batches in rounds.items()))
    engine = measure_engine(case, table, rows, rounds)
    plain = measure_plain(case, table, rows, rounds)
    return {"case": case.name, "rows": rows, "engine": asdict(engine), "plain": asdict(plain)}


def measure_engine(case: Case, table: Table, rows: int, rounds: dict[int, int]) -> Side:
    monitor, side = Monitor(case.load()), Side()
    before = resident()
    begin = time.perf_counter()
    for start in range(0, rows, LOAD_BATCH):
        monitor.apply(inserts(table, start, min(start + LOAD_BATCH, rows)))
    side.load_seconds = time.perf_counter() - begin
    side.bytes_per_row = (resident() - before) / rows
    for size, batches in rounds.items():
        open_before = counts(monitor)
        spans = [(rows + n * size, rows + (n + 1) * size) for n in range(batches)]
        side.insert_us[size] = timed(monitor.apply, [inserts(table, *span) for span in spans])
        side.found[size] = [now - then for now, then in zip(counts(monitor), open_before, strict=True)]
        side.delete_us[size] = timed(monitor.apply, [deletes(*span) for span in spans])
        assert counts(monitor) == open_before, "deletes must take back what the inserts opened"
    return side


def counts(monitor: Monitor) -> list[int]:
    return list(monitor.counts().values())


def measure_plain(case: Case, table: Table, rows: int, rounds: dict[int, int]) -> Side:
    """The plain design knows no batches: all sizes are the same single-row calls."""
    side = Side()
    before = resident()
    begin = time.perf_counter()
    plain = Plain(case.load(), list(table.columns))
    plain.load(row[1:] for row in table.tuples(0, rows))
    side.load_seconds = time.perf_counter() - begin
    side.bytes_per_row = (resident() - before) / rows
    for size, batches in rounds.items():
        new = [(row[0], row[1:]) for row in table.tuples(rows, rows + size * batches)]
        opened, side.insert_us[size] = timed_rows(plain.insert, new)
        closed, side.delete_us[size] = timed_rows(plain.delete, [(row_id,) for row_id, _ in new])
        assert opened == closed, "deletes must take back what the inserts opened"
        side.found[size] = opened
    return side


def inserts(table: Table, start: int, stop: int) -> list[dict[str, Any]]:
    return [{"op": "insert", "after": row} for row in table.rows(start, stop)]


def deletes(start: int, stop: int) -> list[dict[str, Any]]:
    return [{"op": "delete", "key": {"id": row_id}} for row_id in range(start, stop)]


def timed(apply: Callable[[list[dict[str, Any]]], Any], batches: list[list[dict[str, Any]]]) -> float:
    """Microseconds for one change."""
    with quiet():
        begin = time.perf_counter()
        for batch in batches:
            apply(batch)
        return (time.perf_counter() - begin) / sum(map(len, batches)) * 1e6


def timed_rows(apply: Callable[..., list[int]], rows: list[tuple[Any, ...]]) -> tuple[list[int], float]:
    with quiet():
        begin = time.perf_counter()
        found = [apply(*row) for row in rows]
        us = (time.perf_counter() - begin) / len(rows) * 1e6
    return [sum(column) for column in zip(*found, strict=True)], us


class quiet:  # noqa: N801
    """Collects garbage before, not during, a measurement; the same for both contestants."""

    def __enter__(self) -> None:
        gc.collect()
        gc.freeze()

    def __exit__(self, *_: object) -> None:
        gc.unfreeze()


def resident() -> int:
    """Bytes of this process in memory now."""
    gc.collect()
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * 4096


def cases() -> Iterator[Case]:
    yield from SINGLE
    yield from SETS


def main() -> None:
    """`python -m benchmarks.measure NAME ROWS [quick]` prints one JSON object."""
    name, rows, *rest = sys.argv[1:]
    case = next(case for case in cases() if case.name == name)
    print(json.dumps(run(case, int(rows), "quick" in rest)))


if __name__ == "__main__":
    main()
