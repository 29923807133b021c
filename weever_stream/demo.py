"""`python -m weever_stream.demo`: a change feed with errors runs through the engine; violations open and close."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.progress import track

from weever_stream import Monitor, Rules

RULES = """
version: 1
dataset: tax
key: [id]
columns:
  {id: long, zip: string, city: string, area_code: string, phone: string, state: string, salary: long, rate: double}
rules:
  - {id: zip_city, fd: zip -> city, severity: critical}
  - {id: phone_unique, unique: [area_code, phone]}
  - {id: fair_rate, deny: "t.state = t'.state and t.salary > t'.salary and t.rate < t'.rate"}
  - {id: rate_range, deny: t.rate > 60, severity: info}
"""
BATCHES, BATCH, ERRORS = 60, 2_000, 0.0005
SHOWN = 16

Change = dict[str, Any]


class Feed:
    """Inserts, updates that make and repair errors, and deletes, from a fixed seed."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._wrong: list[Change] = []
        self._next = 0

    def batches(self) -> Iterator[list[Change]]:
        for _ in range(BATCHES):
            yield [self._change() for _ in range(BATCH)]

    def _change(self) -> Change:
        draw = self._random.random()
        if draw < ERRORS and self._wrong:
            row = self._wrong.pop(self._random.randrange(len(self._wrong)))
            return {"op": "delete", "key": {"id": row["id"]}} if draw < ERRORS / 4 else {"op": "update", "after": row}
        row = self._row()
        if draw > 1 - ERRORS:
            self._wrong.append(row)
            row = row | self._random.choice([{"city": "Springfeild"}, {"rate": 75.5}, {"salary": 1}])
        return {"op": "insert", "after": row}

    def _row(self) -> Change:
        self._next += 1
        zip_code, state = self._random.randrange(20_000), self._random.randrange(50)
        salary = self._random.randrange(20, 200) * 1_000
        return {
            "id": self._next,
            "zip": f"{zip_code:05}",
            "city": f"City {zip_code % 7_000}",
            "area_code": f"{200 + state}",
            "phone": f"555-{self._next:07}",
            "state": f"S{state:02}",
            "salary": salary,
            "rate": round(1 + state / 100 + salary / 20_000, 2),
        }


def one_of_each(events: list[Change]) -> list[Change]:
    """One opening and one end for each rule."""
    return list({(event["rule"], event["op"]): event for event in events}.values())


def main() -> None:
    console = Console()
    rules = Rules.loads(RULES)
    monitor, sent, shown = Monitor(rules), Counter[str](), 0
    busy = 0.0
    batches = list(Feed().batches())
    for batch in track(batches, description="changes", console=console):
        begin = time.perf_counter()
        events = monitor.apply(batch)
        busy += time.perf_counter() - begin
        sent.update(event["op"] for event in events)
        for event in one_of_each(events)[: SHOWN - shown]:
            shown += 1
            console.print(f"{event['op']:>9}  {event['rule']}: {event['message']}", highlight=False, markup=False)
    changes = sum(len(batch) for batch in batches)
    console.print(f"\n{changes:,} changes, {monitor.rows:,} rows, {changes / busy:,.0f} changes a second")
    console.print(f"{sent['new']:,} violations opened, {sent['retracted']:,} ended; open now:")
    for rule, count in monitor.counts().items():
        console.print(f"  {rule}: {count:,}")
    monitor.check()
    console.print("checked: a recount from scratch finds the same.")


if __name__ == "__main__":
    main()
