"""How far long work has come: a bar on a terminal, a plain line now and then elsewhere. Both go to stderr."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from time import monotonic
from typing import TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Batch = TypeVar("Batch", bound=Sequence[object])
EVERY = 5.0
"""Seconds between two plain lines; work that takes less says nothing."""


def shown(batches: Iterable[Batch], total: int, what: str) -> Iterator[Batch]:
    """The batches as they are; their rows are counted once the caller comes back for the next."""
    console = Console(stderr=True)
    return _with_bar(batches, total, what, console) if console.is_terminal else _with_lines(batches, total, what)


def _with_bar(batches: Iterable[Batch], total: int, what: str, console: Console) -> Iterator[Batch]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=total)
        for batch in batches:
            yield batch
            progress.advance(task, len(batch))


def _with_lines(batches: Iterable[Batch], total: int, what: str) -> Iterator[Batch]:
    done, told = 0, monotonic()
    for batch in batches:
        yield batch
        done += len(batch)
        if monotonic() - told >= EVERY:
            told = monotonic()
            click.echo(f"{what}: {done:,} of {total:,} rows", err=True)
