"""`rules validate | import | show`: the rule file's own tools."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from weever_stream.model.errors import Problem, RuleError
from weever_stream.model.rules.constraint import DenialConstraint
from weever_stream.model.rules.holoclean import load_listing
from weever_stream.model.rules.loader import load_file, read_text
from weever_stream.model.rules.ruleset import Rules
from weever_stream.model.rules.sentences import denial, not_evaluated, sentence
from weever_stream.model.rules.writer import write_rules

FILE = click.Path(path_type=Path)


@click.group()
def rules() -> None:
    """Check, import and explain rule files."""


@rules.command()
@click.argument("file", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as one JSON object.")
def validate(file: Path, as_json: bool) -> None:
    """Check a rule FILE: every mistake with its line and column, exit code 2 if there is one."""
    loaded = load_file(file)
    if as_json:
        click.echo(json.dumps({"dataset": loaded.dataset, "rules": len(loaded), "warnings": loaded.warnings}))
        return
    _warn(loaded, file)
    click.echo(f"{file}: {_counted(loaded)}, no mistakes")


@rules.command("import")
@click.argument("file", type=FILE)
@click.option("--dataset", help="Name of the dataset; without it, the file's name.")
@click.option(
    "--key", multiple=True, metavar="COLUMN", help="A key column (repeat for several); without it, row numbers."
)
@click.option("-o", "--output", type=FILE, help="Write the rule file here instead of printing it.")
def import_(file: Path, dataset: str | None, key: tuple[str, ...], output: Path | None) -> None:
    """Turn FILE into a rule file: HoloClean's notation, or denial constraints as papers print them, one a line."""
    text = read_text(file)
    if any(line.startswith("rules:") for line in text.splitlines()):
        raise RuleError((Problem(0, 0, "is a rule file already: there is nothing to import", str(file)),))
    listed = load_listing(text, str(file))
    written = write_rules(dataclasses.replace(listed, dataset=dataset or listed.dataset, key=key))
    _check_written(written, file)
    _warn(listed, output or file)
    if output is None:
        click.echo(written, nl=False)
        return
    try:
        output.write_text(written, encoding="utf-8")
    except OSError as error:
        raise RuleError((Problem(0, 0, f"cannot be written: {error.strerror}", str(output)),)) from None
    click.echo(f"{output}: {_counted(listed)}", err=True)


@rules.command()
@click.argument("file", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print the rules as one JSON object.")
def show(file: Path, as_json: bool) -> None:
    """Say what each rule of FILE means: a plain sentence, its class, and whether it is symmetric."""
    loaded = load_file(file)
    shown = [_described(constraint, loaded.redact) for constraint in loaded]
    if as_json:
        click.echo(json.dumps({"dataset": loaded.dataset, "rules": shown, "warnings": loaded.warnings}))
        return
    headings = ("rule", "what must never be", "class", "symmetric")
    table = Table(*(Column(heading, overflow="fold") for heading in headings))
    for rule in shown:
        told = [rule["sentence"], *(f"not evaluated: {part}" for part in rule["dropped"])]
        symmetric = "yes" if rule["symmetric"] else "no"
        table.add_row(*map(Text, (rule["rule"], "\n".join(told), rule["class"], symmetric)))
    Console().print(table)
    _warn(loaded, file)


def _warn(loaded: Rules, file: Path) -> None:
    for warning in loaded.warnings:
        click.echo(f"{file}: warning: {warning}", err=True)


def _counted(loaded: Rules) -> str:
    return f"{len(loaded)} rule{'s' if len(loaded) != 1 else ''}"


def _check_written(written: str, file: Path) -> None:
    """Raises RuleError where the options do not fit the list. Places in the new text would say nothing: it has none."""
    try:
        Rules.loads(written, file=str(file))
    except RuleError as error:
        raise RuleError(tuple(Problem(0, 0, problem.message, str(file)) for problem in error.problems)) from None


def _described(constraint: DenialConstraint, redact: tuple[str, ...]) -> dict[str, Any]:
    return {
        "rule": constraint.id,
        "sentence": sentence(constraint, redact),
        "deny": denial(constraint, redact),
        "class": constraint.rule_class.value,
        "symmetric": constraint.is_symmetric,
        "dropped": not_evaluated(constraint, redact),
    }
