"""One case at one size, in a process of its own: load, then timed inserts and deletes, for engine and plain design.

Both get the same rows in the same order. Decoding and index upkeep are inside the measured time; making the input and
the first load are not. A round inserts a few batches of one size and then deletes them again, so every round starts
from the same rows. The plain design knows no batches and is slow: its indexes are loaded in bulk and it is timed on a
sample of single rows. The engine then takes the same sample, and both must find as many violations; since clean rows
break few rules, both also take some spoiled rows, outside of the clock.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from benchmarks.generate import Table
from benchmarks.plain import Plain
from benchmarks.rules import CASES, Case
from weever_stream import Monitor

Row = tuple[Any, ...]
LOAD_BATCH = 50_000
SPOILED = 20
CHANGES = {1: 200, 100: 20, 10_000: 7}
"""Batch size -> batches that are timed; other sizes get as many as make some 10,000 changes."""


@dataclass(frozen=True)
class Job:
    """What one process measures."""

    case: str
    rows: int
    batches: tuple[int, ...]
    sample: int
    plain: bool
    seed: int


@dataclass
class Side:
    """What one contestant did: microseconds for one row, by batch size; what it found on the sample, by rule."""

    load_seconds: float = 0.0
    bytes_per_row: float | None = None  # the engine's alone: it comes first, the other reuses its memory
    insert_us: dict[str, float] = field(default_factory=dict)
    delete_us: dict[str, float] = field(default_factory=dict)
    found: list[int] = field(default_factory=list)
    found_spoiled: list[int] = field(default_factory=list)


def run(job: Job) -> dict[str, Any]:
    """The plain design's figures stand under the batch size "1"."""
    case = CASES[job.case]
    rounds = {size: _batches(size, job.rows) for size in job.batches}
    table = case.table(job.rows + max(job.sample, *(size * count for size, count in rounds.items())), job.seed)
    bad = spoiled(table, job)
    engine = measure_engine(case, table, job, rounds, bad)
    plain = measure_plain(case, table, job, bad) if job.plain else None
    if plain is not None and (plain.found, plain.found_spoiled) != (engine.found, engine.found_spoiled):
        raise RuntimeError(f"{job.case}: different violations\n  engine {engine}\n  plain {plain}")
    return {
        "case": case.name,
        "title": case.title,
        "rows": job.rows,
        "engine": asdict(engine),
        "plain": plain and asdict(plain),
    }


def _batches(size: int, rows: int) -> int:
    """At most as many changes as there are rows, but one batch at least."""
    return min(CHANGES.get(size, max(1, 10_000 // size)), max(1, rows // size))


def measure_engine(case: Case, table: Table, job: Job, rounds: dict[int, int], bad: list[Row]) -> Side:
    rows = job.rows
    before = resident()
    monitor, side = Monitor(case.load()), Side()
    begin = time.perf_counter()
    for start in range(0, rows, LOAD_BATCH):
        monitor.apply(inserts(table, start, min(start + LOAD_BATCH, rows)))
    side.load_seconds = time.perf_counter() - begin
    side.bytes_per_row = (resident() - before) / rows
    open_before = counts(monitor)
    for size, batches in rounds.items():
        spans = [(rows + n * size, rows + (n + 1) * size) for n in range(batches)]
        side.insert_us[str(size)] = timed(monitor.apply, [inserts(table, *span) for span in spans])
        side.delete_us[str(size)] = timed(monitor.apply, [deletes(*span) for span in spans])
        if counts(monitor) != open_before:
            raise RuntimeError(f"{case.name}: deletes did not take back what the inserts opened")
    side.found = opened(monitor, inserts(table, rows, rows + job.sample))
    monitor.apply(deletes(rows, rows + job.sample))
    names = ("id", *table.columns)
    side.found_spoiled = opened(monitor, [{"op": "insert", "after": dict(zip(names, row, strict=True))} for row in bad])
    return side


def opened(monitor: Monitor, changes: list[dict[str, Any]]) -> list[int]:
    before = counts(monitor)
    monitor.apply(changes)
    return [now - then for now, then in zip(counts(monitor), before, strict=True)]


def spoiled(table: Table, job: Job) -> list[Row]:
    """Copies of loaded rows, each with one cell of another row: they break keys, dependencies and orders."""
    rng = np.random.default_rng([job.seed, 5])
    rows = []
    for n in range(SPOILED):
        copied, other = (next(table.tuples(at, at + 1)) for at in rng.integers(0, job.rows, 2).tolist())
        row = [job.rows + n, *copied[1:]]
        column = int(rng.integers(0, len(row)))  # 0 leaves the copy as it is
        row[column] = other[column] if column else row[column]
        rows.append(tuple(row))
    return rows


def counts(monitor: Monitor) -> list[int]:
    return list(monitor.counts().values())


def measure_plain(case: Case, table: Table, job: Job, bad: list[Row]) -> Side:
    side = Side()
    begin = time.perf_counter()
    plain = Plain(case.load(), list(table.columns))
    plain.load(row[1:] for row in table.tuples(0, job.rows))
    side.load_seconds = time.perf_counter() - begin
    new = [(row[0], row[1:]) for row in table.tuples(job.rows, job.rows + job.sample)]
    side.found, side.insert_us["1"] = timed_rows(plain.insert, new)
    ended, side.delete_us["1"] = timed_rows(plain.delete, [(row_id,) for row_id, _ in reversed(new)])
    if ended != side.found:
        raise RuntimeError(f"{case.name}: the plain design's deletes did not take back what its inserts opened")
    side.found_spoiled, _ = timed_rows(plain.insert, [(row[0], row[1:]) for row in bad])
    return side


def inserts(table: Table, start: int, stop: int) -> list[dict[str, Any]]:
    return [{"op": "insert", "after": row} for row in table.rows(start, stop)]


def deletes(start: int, stop: int) -> list[dict[str, Any]]:
    return [{"op": "delete", "key": {"id": row_id}} for row_id in range(start, stop)]


def timed(apply: Callable[[list[dict[str, Any]]], Any], batches: list[list[dict[str, Any]]]) -> float:
    """Microseconds for one change."""
    costs: list[float] = []
    with quiet():
        for share in shares(batches):
            begin = time.perf_counter()
            for batch in share:
                apply(batch)
            costs.append((time.perf_counter() - begin) / sum(map(len, share)) * 1e6)
    return statistics.median(costs)


def timed_rows(apply: Callable[..., list[int]], rows: list[tuple[Any, ...]]) -> tuple[list[int], float]:
    found: list[list[int]] = []
    costs: list[float] = []
    with quiet():
        for share in shares(rows):
            begin = time.perf_counter()
            found += [apply(*row) for row in share]
            costs.append((time.perf_counter() - begin) / len(share) * 1e6)
    return [sum(column) for column in zip(*found, strict=True)], statistics.median(costs)


def shares(work: list[Any]) -> Iterator[list[Any]]:
    """Ten shares at most: their median forgets what another process did to one, a mean of each keeps rare costs in."""
    size = -(-len(work) // 10)
    return (work[start : start + size] for start in range(0, len(work), size))


@contextmanager
def quiet() -> Iterator[None]:
    """Collects garbage before, not during, a measurement; the same for both contestants."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def resident() -> int:
    """Bytes of this process in memory now."""
    gc.collect()
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * 4096


def main() -> None:
    """`python -m benchmarks.measure JOB` (a Job as JSON) prints one JSON object."""
    fields = json.loads(sys.argv[1])
    print(json.dumps(run(Job(**fields | {"batches": tuple(fields["batches"])}))))


if __name__ == "__main__":
    main()
