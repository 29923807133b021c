"""`python -m benchmarks.lt_tree`: the engine's flat LT-tree against the paper's red-black tree, one value for each id.

Each design and size has a process of its own. Small trees are grown by single inserts, large ones are loaded in bulk.
A round inserts fresh ids, asks for the smaller ones of random values and deletes ids that are held, so the size stays.
Both designs get the same steps and must find as many ids. A process over the limit of memory or time is ended and
its cells say so. Memory is what the process grew by, without the values themselves. Linux only.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import click
from pyroaring import BitMap
from rich.console import Console
from rich.table import Table

from benchmarks.paper_lt_tree import PaperLTTree
from weever_stream.engine.lt_tree import LTTree

SIZES = (100, 10_000, 1_000_000)
DESIGNS = ("paper", "flat")
MEASURES = {
    "insert": "insert, \u00b5s",
    "delete": "delete, \u00b5s",
    "smaller": "smaller than, \u00b5s",
    "memory": "memory, bytes per value",
    "build": "build, \u00b5s per value",
}
BULK_FROM = 1_000_000
HELD = 200_000  # so many values at least, in several trees, or their memory drowns in pages
STEPS = 2_000  # of each kind in a round, over some of the trees
POLL_SECONDS = 0.1

Tree = LTTree | PaperLTTree
Item = tuple[int, int]
Result = dict[str, Any]


@click.command(help=__doc__)
@click.option("--size", "sizes", multiple=True, type=click.IntRange(10), default=SIZES, show_default=True)
@click.option("--rounds", type=click.IntRange(1, 10), default=7, show_default=True, help="The median of these counts.")
@click.option("--seed", type=int, default=7, show_default=True)
@click.option("--max-gigabytes", type=click.FloatRange(0, min_open=True), default=6.0, show_default=True)
@click.option("--max-minutes", type=click.FloatRange(0, min_open=True), default=4.0, show_default=True)
def main(sizes: Sequence[int], rounds: int, seed: int, max_gigabytes: float, max_minutes: float) -> None:
    console = Console()
    table = Table("values", "measure", *DESIGNS, "paper / flat", title="LT-tree, distinct values")
    for column in table.columns[2:]:
        column.justify = "right"
    for size in sizes:
        results = {}
        for design in DESIGNS:
            with console.status(f"{design}, {size:,} values"):
                results[design] = _limited(design, size, rounds, seed, max_gigabytes, max_minutes)
        if len({result["found"] for result in results.values() if "found" in result}) > 1:
            raise click.ClickException(f"the designs differ in what they find at {size:,} values: {results}")
        for row in _rows(size, results):
            table.add_row(*row)
        table.add_section()
    console.print(table)


def _rows(size: int, results: dict[str, Result]) -> Iterator[tuple[str, ...]]:
    """
    >>> seen = dict.fromkeys(MEASURES, 3.0)
    >>> next(_rows(1000, {"paper": {"over": "over 6 GB"}, "flat": seen}))
    ('1,000', 'insert, µs', 'over 6 GB', '3.00', '-')
    """
    for at, (key, label) in enumerate(MEASURES.items()):
        seen = [results[design].get(key) for design in DESIGNS]
        cells = [results[d]["over"] if x is None else _number(x) for d, x in zip(DESIGNS, seen, strict=True)]
        ratio = "-" if None in seen or not seen[1] else _number(seen[0] / seen[1])
        yield "" if at else f"{size:,}", label, *cells, ratio


def _number(x: float) -> str:
    return f"{x:,.0f}" if x >= 100 else f"{x:.3g}" if x >= 10 else f"{x:.2f}"


def _limited(design: str, size: int, rounds: int, seed: int, gigabytes: float, minutes: float) -> Result:
    """Measure in a process of its own, and end it at a limit: then "over" says which."""
    job = json.dumps([design, size, rounds, seed])
    command = [sys.executable, "-c", "from benchmarks.lt_tree import child; child()", job]
    deadline = time.monotonic() + 60 * minutes
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        over = None
        while process.poll() is None and over is None:
            if time.monotonic() > deadline:
                over = f"over {minutes:g} min"
            elif _resident(process.pid) > gigabytes * 1e9:
                over = f"over {gigabytes:g} GB"
            else:
                time.sleep(POLL_SECONDS)
        if over is not None:
            process.kill()
            return {"over": over}
        output = process.communicate()[0]
    if process.returncode:
        raise click.ClickException(f"{design} at {size:,} values failed, see above")
    return dict(json.loads(output))


def _resident(pid: int | str = "self") -> int:
    """Bytes of memory in use; 0 for a process that has just ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


# -- the measuring process --------------------------------------------------------------------------------------------


def child() -> None:
    """Measure what the command line says and print the result."""
    print(json.dumps(measure(*json.loads(sys.argv[1]))))


def measure(design: str, size: int, rounds: int, seed: int) -> Result:
    """Medians over the rounds. The garbage collector is off: it would cost most where most objects are.

    >>> flat, paper = (measure(design, 100, 1, 7) for design in ("flat", "paper"))
    >>> flat["found"] == paper["found"] > 0
    True
    """
    gc.disable()
    rng = random.Random(seed)
    steps = max(10, min(STEPS, size // 10))
    copies = -(-HELD // size)
    timed = min(copies, max(1, STEPS // steps))
    held = list(enumerate(rng.sample(range(0, 20 * size, 2), size)))  # even values; fresh ones are odd
    fresh = list(enumerate(rng.sample(range(1, 20 * size, 2), rounds * steps), size))
    before, start = _settled(), time.perf_counter()
    trees = [build(design, held) for _ in range(copies)]
    result: Result = {"build": (time.perf_counter() - start) * 1e6 / (copies * size)}
    result["memory"] = (_settled() - before) / (copies * size)
    times: dict[str, list[float]] = {"insert": [], "smaller": [], "delete": []}
    found = 0
    for now in range(rounds):
        new = fresh[now * steps : (now + 1) * steps]
        asked = [(rng.randrange(20 * size),) for _ in range(steps)]
        held += new
        rng.shuffle(held)
        held, gone = held[steps:], held[:steps]
        for name, calls in (("insert", new), ("smaller", asked), ("delete", gone)):
            taken = [_clock(getattr(tree, name), calls) for tree in trees[:timed]]
            times[name].append(sum(taken) * 1e6 / (timed * steps))
        found += sum(len(trees[0].smaller(value)) for (value,) in asked)
    trees[0].check()
    return result | {name: median(taken) for name, taken in times.items()} | {"found": found}


def build(design: str, items: list[Item]) -> Tree:
    """Grow a small tree one by one, load a large one in bulk."""
    if len(items) >= BULK_FROM:
        return LTTree(items) if design == "flat" else PaperLTTree.bulk({value: BitMap([id_]) for id_, value in items})
    tree: Tree = LTTree() if design == "flat" else PaperLTTree()
    for id_, value in items:
        tree.insert(id_, value)
    return tree


def _clock(call: Callable[..., object], arguments: Sequence[tuple[int, ...]]) -> float:
    start = time.perf_counter()
    for each in arguments:
        call(*each)
    return time.perf_counter() - start


def _settled() -> int:
    """Bytes in use after garbage is collected and given back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return _resident()


if __name__ == "__main__":
    main()
