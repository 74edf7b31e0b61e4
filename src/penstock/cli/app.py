"""The list of commands, and how their errors are reported.

An error is one message on stderr and an exit code, never a traceback.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

import click

from penstock import __version__
from penstock.cli.command_groups import CommandGroup, no_such_option
from penstock.cli.safe_text import clean
from penstock.errors import PenstockError

COMMAND_GROUPS: dict[str, dict[str, str]] = {
    "Write": {
        "init": "penstock.cli.init:init",
        "validate": "penstock.cli.validate:validate",
        "graph": "penstock.cli.graph:graph",
        "schema": "penstock.cli.schema:schema",
    },
    "Run": {
        "run": "penstock.cli.run:run",
        "dev": "penstock.cli.serve:dev",
        "up": "penstock.cli.up:up",
        "down": "penstock.cli.down:down",
    },
    "Start executions on a server": {
        "submit": "penstock.cli.submit:submit",
        "put": "penstock.cli.definitions:put",
        "versions": "penstock.cli.definitions:versions",
        "alias": "penstock.cli.definitions:alias",
    },
    "Look at executions": {
        "list": "penstock.cli.executions:list_executions",
        "show": "penstock.cli.executions:show",
        "why": "penstock.cli.why:why",
        "tree": "penstock.cli.tree:tree",
        "watch": "penstock.cli.watch:watch",
        "logs": "penstock.cli.logs:logs",
        "results": "penstock.cli.executions:results",
        "errors": "penstock.cli.failures:errors",
        "dlq": "penstock.cli.dlq:dlq",
    },
    "Control executions": {
        "cancel": "penstock.cli.control:cancel",
        "pause": "penstock.cli.control:pause",
        "resume": "penstock.cli.control:resume",
        "retry": "penstock.cli.control:retry",
    },
    "Signals and approvals": {
        "signal": "penstock.cli.signals:signal",
        "signals": "penstock.cli.signals:signals",
        "post": "penstock.cli.signals:post",
        "waits": "penstock.cli.signals:waits",
        "approvals": "penstock.cli.approvals:approvals",
        "approve": "penstock.cli.approvals:approve",
        "reject": "penstock.cli.approvals:reject",
    },
    "Serve": {
        "serve": "penstock.cli.serve:serve",
        "api": "penstock.cli.roles:api",
        "orchestrator": "penstock.cli.roles:orchestrator",
        "worker": "penstock.cli.roles:worker",
    },
    "Operate": {
        "workers": "penstock.cli.definitions:workers",
        "doctor": "penstock.cli.doctor:doctor",
        "keys": "penstock.cli.keys:keys",
        "migrate": "penstock.cli.migrate:migrate",
        "purge": "penstock.cli.purge:purge",
        "completion": "penstock.cli.completion:completion",
    },
}
"""The commands by what they are for, in the order of the help."""

COMMANDS: dict[str, str] = {
    name: address for group in COMMAND_GROUPS.values() for name, address in group.items()
}

BAD_INPUT = 2
INTERNAL_ERROR = 70
INTERRUPTED = 130
BROKEN_PIPE = 141


class ReaderGone(Exception):
    """Nobody reads standard output any more."""


class LazyGroup(CommandGroup):
    """The group of all commands, which imports only the one that is called."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            # click would end the process with an exit code that means something else.
            raise ReaderGone from error

    def list_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 -- click's signature
    ) -> list[str]:
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 -- click's signature
        cmd_name: str,
    ) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        name_width = max(map(len, COMMANDS))
        text_width = formatter.width - name_width - 6
        for title, names in COMMAND_GROUPS.items():
            rows: list[tuple[str, str]] = []
            for name in names:
                command = self.get_command(ctx, name)
                if command is not None:
                    # Padded, so that the texts of all groups stand below each other.
                    rows.append((name.ljust(name_width), command.get_short_help_str(text_width)))
            with formatter.section(title):
                formatter.write_dl(rows)


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

    `penstock COMMAND --help` describes a command. Where a command takes the ID of an execution,
    its beginning will do, and @last is the newest one.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def call(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = cli.main(words, prog_name="penstock", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        return _report_usage_error(error)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (BrokenPipeError, ReaderGone):
        # Python would report it again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 -- reported to the user
        if "--debug" in words:
            traceback.print_exc()
        return _report_failure(words, error)
    return code if isinstance(code, int) else 0


def _report_usage_error(error: click.ClickException) -> int:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "penstock"
    message = error.format_message()
    if isinstance(error, click.NoSuchOption):
        message = no_such_option(error)
    is_group = context is not None and isinstance(context.command, click.Group)
    subject = "commands" if is_group else "arguments and options"
    say(path, message, f"'{path} --help' shows the {subject}.")
    return BAD_INPUT


def _report_failure(words: list[str], error: Exception) -> int:
    path = "penstock"
    if words and words[0] in COMMANDS:
        path = f"penstock {words[0]}"

    if isinstance(error, PenstockError):
        say(path, str(error))
        return BAD_INPUT

    message = f"internal error: {type(error).__name__}: {error}"
    say(path, message, "Please report it, with the output of --debug.")
    return INTERNAL_ERROR


def say(path: str, message: str, *hints: str) -> None:
    """Print an error message, and lines that say what to do about it."""
    lines = [f"{path}: {message}", *hints]
    with suppress(OSError):  # a closed terminal
        print("\n".join(clean(line) for line in lines), file=sys.stderr)
