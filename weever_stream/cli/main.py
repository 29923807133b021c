"""`weever-stream`: the commands, and how their errors are shown."""

from __future__ import annotations

import sys
from importlib.metadata import version

import click

from weever_stream.cli.plan import plan
from weever_stream.cli.rules import rules
from weever_stream.model.errors import WeeverError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("weever-stream"), prog_name="weever-stream")
def commands() -> None:
    """Finds the rows of a change feed that break a rule, and says when it holds again."""


commands.add_command(plan)
commands.add_command(rules)


def main() -> None:
    """Runs the command line: an error is one line on stderr (a bad rule file: one line a mistake), exit code 2."""
    try:
        commands()
    except WeeverError as error:
        click.echo(str(error), err=True)
        sys.exit(2)
