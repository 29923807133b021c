"""`weever-stream plan RULES [DATA]`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click

from weever_stream.cli.progress import shown
from weever_stream.model.errors import ChangeError, WeeverError
from weever_stream.model.rules.constraint import Emit
from weever_stream.model.rules.resolve import typed
from weever_stream.model.rules.ruleset import Rules
from weever_stream.monitor import Monitor
from weever_stream.plan import Plan, plan_of, text_of
from weever_stream.tables import Table, read_table

ROW_NUMBER = "row number"


@click.command()
@click.argument("rules", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path), required=False)
@click.option("--json", "as_json", is_flag=True, help="The plan as data.")
def plan(rules: Path, data: Path | None, as_json: bool) -> None:
    """How the rules will run: routes, indexes, predicate order, shared prefixes, and what was dropped and why.

    With DATA (CSV, JSON lines, both also gzipped, or Parquet) the order follows the cardinalities of that table;
    without it, all are 0.
    """
    loaded = Rules.load(rules)
    found = _plan(loaded, None) if data is None else _plan_over(loaded, data)
    click.echo(json.dumps(found, indent=2) if as_json else text_of(found), nl=as_json)


def _plan_over(rules: Rules, data: Path) -> Plan:
    table = read_table(data, rules.used_columns, rules.columns)
    try:
        return _plan(typed(rules, table.columns), table)
    except ValueError as error:
        raise WeeverError(f"{data}: {error}") from error


def _plan(rules: Rules, table: Table | None) -> Plan:
    """Violations are counted only: a plan needs no events, and no secret for the values in them."""
    counting = tuple(replace(constraint, emit=Emit.COUNTS) for constraint in rules)
    monitor = Monitor(replace(rules, key=(ROW_NUMBER,), constraints=counting, redact=()))
    if table is not None:
        _load(monitor, table)
    return plan_of(monitor, rules)


def _load(monitor: Monitor, table: Table) -> None:
    first = 0
    for rows in shown(table.batches(), table.rows, f"reading {table.path}"):
        changes = [{"op": "insert", "after": row | {ROW_NUMBER: first + at}} for at, row in enumerate(rows)]
        try:
            monitor.apply(changes)
        except ChangeError as error:
            number = first + error.index
            raise WeeverError(f"{table.path}: row {number} (counted from 0): {error.reason}") from error
        first += len(rows)
