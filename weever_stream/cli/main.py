"""`weever-stream`: the commands, and how their errors are shown."""

from __future__ import annotations

import sys
from importlib.metadata import version

import click

from weever_stream.cli.plan import plan
from weever_stream.cli.rules import rules
from weever_stream.model.errors import WeeverError

NAME = "weever-stream"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("weever-stream"), prog_name=NAME)
def commands() -> None:
    """Finds the rows of a change feed that break a rule, and says when it holds again."""


commands.add_command(plan)
commands.add_command(rules)


def main() -> None:
    """Runs the command line: an error is one line on stderr (a bad rule file: one line a mistake), exit code 2."""
    try:
        commands(prog_name=NAME, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        click.echo(_wrong_call(error), err=True)
        sys.exit(2)
    except click.Abort:
        sys.exit(130)
    except WeeverError as error:
        click.echo(str(error), err=True)
        sys.exit(2)


def _wrong_call(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = context.command_path if context is not None else NAME
    return f"{command}: {error.format_message()} {command} --help says how to call it."
