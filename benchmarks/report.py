"""What a run leaves: a table on the terminal, a plot and the JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from benchmarks.bars import LARGE, Bar, Result, ratio
from benchmarks.rules import CASES

COLOURS = {"met": "green", "missed": "red", "not measured": "dim"}


def show(console: Console, results: Sequence[Result], postgres: Sequence[dict[str, Any]], bars: Sequence[Bar]) -> None:
    console.print(costs(results))
    if postgres:
        console.print(postgres_table(postgres))
    console.print(bars_table(bars))


def costs(results: Sequence[Result]) -> Table:
    table = Table(title="Microseconds for one row, index upkeep included")
    for name in (
        "rule",
        "rows",
        "batch",
        "insert",
        "delete",
        "plain insert",
        "plain delete",
        "times plain",
        "Java",
        "byte/row",
    ):
        table.add_column(name, justify="left" if name == "rule" else "right", no_wrap=name == "rule")
    for result in results:
        engine, plain = result["engine"], result["plain"]
        for batch, insert in engine["insert_us"].items():
            table.add_row(
                result["case"],
                f"{result['rows']:,}",
                f"{int(batch):,}",
                _number(insert),
                _number(engine["delete_us"][batch]),
                _number(plain and plain["insert_us"]["1"]),
                _number(plain and plain["delete_us"]["1"]),
                _number(ratio(result, batch)),
                _number(CASES[result["case"]].java_us if result["rows"] == LARGE else None),
                f"{engine['bytes_per_row']:.0f}",
            )
    return table


def postgres_table(postgres: Sequence[dict[str, Any]]) -> Table:
    table = Table(title="PostgreSQL: a trigger for each rule, one insert at a time")
    for name in ("rule", "rows", "inserts", "us for one", "violations"):
        table.add_column(name, justify="left" if name == "rule" else "right", no_wrap=name == "rule")
    for line in postgres:
        table.add_row(
            line["case"], f"{line['rows']:,}", str(line["inserts"]), _number(line["us"]), str(line["violations"])
        )
    return table


def bars_table(bars: Sequence[Bar]) -> Table:
    table = Table(title="The bars, at 1M rows in batches of 10,000")
    for name in ("rule", "promise", "wanted", "seen", "verdict"):
        table.add_column(name, no_wrap=name != "promise")
    for bar in bars:
        wanted = f"{'at most' if bar.at_most else 'at least'} {bar.wanted:g}"
        verdict = f"[{COLOURS[bar.verdict]}]{bar.verdict}[/]"
        table.add_row(bar.case, bar.promise, wanted, _number(bar.seen), verdict)
    return table


def save(folder: Path, document: dict[str, Any]) -> None:
    """`results.json` and `results.png`; the JSON goes first, so a plot that fails loses no figures."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(document, indent=1) + "\n")
    if document["results"]:
        plot(folder / "results.png", document["results"])


def plot(path: Path, results: Sequence[Result]) -> None:
    """Cost of an insert over the rows, for each rule: the engine by batch size, and the plain design."""
    names = list(dict.fromkeys(result["case"] for result in results))
    across = min(4, len(names))
    down = -(-len(names) // across)
    figure = Figure(figsize=(4 * across, 3.2 * down), layout="constrained")
    for at, name in enumerate(names):
        axes = figure.add_subplot(down, across, at + 1)
        mine = sorted((result for result in results if result["case"] == name), key=lambda result: int(result["rows"]))
        for label, points in _lines(mine).items():
            style = "k--" if label == "plain" else "-"
            axes.plot([x for x, _ in points], [y for _, y in points], style, marker="o", label=label)
        axes.set(title=name, xscale="log", yscale="log", xlabel="rows", ylabel="µs for one insert")
        axes.legend(fontsize=7)
    figure.savefig(path, dpi=110)


def _lines(results: Sequence[Result]) -> dict[str, list[tuple[int, float]]]:
    lines: dict[str, list[tuple[int, float]]] = {}
    for result in results:
        for batch, us in result["engine"]["insert_us"].items():
            lines.setdefault(f"batches of {int(batch):,}", []).append((result["rows"], us))
        if result["plain"] is not None:
            lines.setdefault("plain", []).append((result["rows"], result["plain"]["insert_us"]["1"]))
    return lines


def _number(value: float | None) -> str:
    """
    >>> _number(1234.5), _number(1.234), _number(None)
    ('1,234', '1.2', '-')
    """
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
