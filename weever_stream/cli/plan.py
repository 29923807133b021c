"""`weever-stream plan RULES [DATA]`."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from pathlib import Path

import click

from weever_stream.model.rules.ruleset import Rules
from weever_stream.monitor import Monitor
from weever_stream.plan import plan_of, text_of
from weever_stream.tables import read_rows

ROW_NUMBER = "row number"


@click.command()
@click.argument("rules", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path), required=False)
@click.option("--json", "as_json", is_flag=True, help="The plan as data.")
def plan(rules: Path, data: Path | None, as_json: bool) -> None:
    """How the rules will run: routes, indexes, predicate order, shared prefixes, and what was dropped and why.

    With DATA (CSV, Parquet, JSON lines) the order follows the cardinalities of that table; without it, all are 0.
    """
    loaded = Rules.load(rules)
    monitor = Monitor(replace(loaded, key=(ROW_NUMBER,), redact=()))
    if data is not None:
        _load(monitor, data)
    found = plan_of(monitor)
    click.echo(json.dumps(found, indent=2) if as_json else text_of(found), nl=as_json)


def _load(monitor: Monitor, data: Path) -> None:
    numbers = count()
    for rows in read_rows(data, monitor.rules.used_columns, monitor.rules.columns):
        changes = [{"op": "insert", "after": row | {ROW_NUMBER: next(numbers)}} for row in rows]
        monitor.apply(changes)
