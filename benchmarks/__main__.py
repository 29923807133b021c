"""`python -m benchmarks`: the engine against the plain design and PostgreSQL. `--help` names the options."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from benchmarks import bars, postgres, report
from benchmarks.measure import Job
from benchmarks.rules import CASES

SIZES = (10_000, 100_000, 1_000_000)
BATCHES = (1, 100, 10_000)
SAMPLE, SET_SAMPLE = 1_000, 300
QUICK: dict[str, Any] = {"sizes": (2_000, 10_000), "batches": (1, 100, 1_000), "sample": 100, "postgres_rows": 2_000}


@click.command(help=__doc__)
@click.option("--rule", "rules", multiple=True, type=click.Choice(list(CASES)), help="Only these; default: all.")
@click.option("--size", "sizes", multiple=True, type=click.IntRange(1), default=SIZES, show_default=True)
@click.option("--batch", "batches", multiple=True, type=click.IntRange(1), default=BATCHES, show_default=True)
@click.option("--baseline", "baselines", multiple=True, type=click.Choice(["plain", "postgres", "none"]),
              default=("plain", "postgres"), show_default=True)  # fmt: skip
@click.option(
    "--sample", type=click.IntRange(1), help="Rows that time a baseline; default 1000, 300 for sets of rules."
)
@click.option("--postgres-rows", type=click.IntRange(1), default=10_000, show_default=True)
@click.option("--seed", type=int, default=7, show_default=True)
@click.option("--output", type=click.Path(path_type=Path), default=Path("benchmarks/results"), show_default=True)
@click.option("--quick", is_flag=True, help="Small sizes: a run of about a minute. No bar can be judged from it.")
def main(rules: Sequence[str], baselines: Sequence[str], seed: int, output: Path, quick: bool, **limits: Any) -> None:
    context = click.get_current_context()
    if quick:
        chosen = {name for name in QUICK if context.get_parameter_source(name) is click.core.ParameterSource.DEFAULT}
        limits |= {name: QUICK[name] for name in chosen}
    console = Console()
    names, failed = list(rules or CASES), list[str]()
    with Progress(console=console) as progress:
        results = list(_engine(progress, names, limits, "plain" in baselines, seed, failed))
        server = list(_postgres(progress, names, limits, seed)) if "postgres" in baselines else []
    verdicts = list(bars.check(results))
    document = {
        "machine": {"python": platform.python_version(), "processor": platform.machine()},
        "seed": seed,
        "failed": failed,
        "results": results,
        "postgres": server,
        "bars": [asdict(bar) | {"verdict": bar.verdict} for bar in verdicts],
    }
    report.show(console, results, server, verdicts)
    report.save(output, document)
    console.print(f"results are in {output}")
    if failed:
        raise click.ClickException(f"failed, see above: {', '.join(failed)}")


def _engine(
    progress: Progress, names: Sequence[str], limits: dict[str, Any], plain: bool, seed: int, failed: list[str]
) -> Iterator[dict[str, Any]]:
    """A process for each case and size: its memory is its own, and one that fails does not end the run."""
    work = list(product(names, limits["sizes"]))
    task = progress.add_task("engine and plain design", total=len(work))
    for name, rows in work:
        progress.update(task, description=f"{name}, {rows:,} rows")
        job = Job(name, rows, tuple(limits["batches"]), _sample(name, limits), plain, seed)
        command = [sys.executable, "-m", "benchmarks.measure", json.dumps(asdict(job))]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        progress.advance(task)
        if done.returncode:
            failed.append(f"{name} with {rows:,} rows")
        else:
            yield json.loads(done.stdout)


def _postgres(progress: Progress, names: Sequence[str], limits: dict[str, Any], seed: int) -> Iterator[dict[str, Any]]:
    if postgres.find_binaries() is None:
        progress.console.print("PostgreSQL: not installed on this machine, so it is not measured")
        return
    task = progress.add_task("PostgreSQL", total=len(names))
    with postgres.server() as connection:
        for name in names:
            progress.update(task, description=f"PostgreSQL, {name}")
            rows, inserts = limits["postgres_rows"], _sample(name, limits)
            yield {"case": name} | postgres.measure(connection, CASES[name], rows, inserts, seed)
            progress.advance(task)


def _sample(name: str, limits: dict[str, Any]) -> int:
    return int(limits["sample"] or (SET_SAMPLE if CASES[name].is_set else SAMPLE))


if __name__ == "__main__":
    main()
