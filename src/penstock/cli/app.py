"""The list of commands, and what becomes of their errors: one message on stderr and an exit code, never a traceback."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

import click

from penstock import __version__
from penstock.cli.safe_text import clean
from penstock.errors import PenstockError

COMMANDS = {
    "run": "penstock.cli.run:run",
    "validate": "penstock.cli.validate:validate",
    "graph": "penstock.cli.graph:graph",
    "dev": "penstock.cli.serve:dev",
    "serve": "penstock.cli.serve:serve",
    "up": "penstock.cli.up:up",
    "api": "penstock.cli.roles:api",
    "orchestrator": "penstock.cli.roles:orchestrator",
    "worker": "penstock.cli.roles:worker",
    "submit": "penstock.cli.submit:submit",
    "list": "penstock.cli.executions:list_executions",
    "show": "penstock.cli.executions:show",
    "watch": "penstock.cli.watch:watch",
    "results": "penstock.cli.executions:results",
    "cancel": "penstock.cli.control:cancel",
    "pause": "penstock.cli.control:pause",
    "resume": "penstock.cli.control:resume",
    "retry": "penstock.cli.control:retry",
    "dlq": "penstock.cli.dlq:dlq",
    "errors": "penstock.cli.failures:errors",
    "workers": "penstock.cli.definitions:workers",
    "put": "penstock.cli.definitions:put",
    "versions": "penstock.cli.definitions:versions",
    "alias": "penstock.cli.definitions:alias",
    "doctor": "penstock.cli.doctor:doctor",
    "keys": "penstock.cli.keys:keys",
    "migrate": "penstock.cli.migrate:migrate",
    "purge": "penstock.cli.purge:purge",
}
"""In the order of the help."""

BAD_INPUT, INTERNAL_ERROR, INTERRUPTED, BROKEN_PIPE = 2, 70, 130, 141


class ReaderGone(Exception):
    """Nobody reads standard output any more."""


class LazyGroup(click.Group):
    """Imports only the command that is called."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (
            BrokenPipeError
        ) as error:  # click would end the process, with a code that means something else
            raise ReaderGone from error

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example:\n\n\b\n  penstock run workflow.json --input '{\"user_id\": 7}'",
)
@click.version_option(__version__, prog_name="penstock", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Run workflows: DAGs of API calls, LLM calls and your own Python, written as JSON or YAML.

    `penstock COMMAND --help` tells more about a command.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def call(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = cli.main(given, prog_name="penstock", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        return _usage(error)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (BrokenPipeError, ReaderGone):
        # Python would complain about it again when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 -- told to the user, one way or the other
        if "--debug" in given:
            traceback.print_exc()
        return _failed(given, error)
    return code if isinstance(code, int) else 0


def _usage(error: click.ClickException) -> int:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "penstock"
    say(path, error.format_message(), f"'{path} --help' shows what it takes.")
    return BAD_INPUT


def _failed(given: list[str], error: Exception) -> int:
    path = f"penstock {given[0]}" if given and given[0] in COMMANDS else "penstock"
    if isinstance(error, PenstockError):
        say(path, str(error))
        return BAD_INPUT
    say(
        path,
        f"internal error: {type(error).__name__}: {error}",
        "Please report it, with what --debug shows.",
    )
    return INTERNAL_ERROR


def say(path: str, message: str, *more: str) -> None:
    lines = [f"{path}: {message}", *more]
    with suppress(OSError):  # a closed terminal
        print("\n".join(clean(line) for line in lines), file=sys.stderr)
