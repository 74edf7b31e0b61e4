"""Help, version, and hints about mistyped names."""

import click
import pytest

import penstock as package
from penstock.cli.app import COMMAND_GROUPS, COMMANDS, cli
from tests.cli.commands import penstock

WITHOUT_JSON = {
    "schema": "prints JSON anyway",
    "completion": "prints a script",
    "serve": "serves",
    "dev": "serves",
    "api": "serves",
    "orchestrator": "serves",
    "worker": "serves",
}
"""Commands without --json, and why."""


def loaded() -> dict[str, click.Command]:
    """All commands by their path, such as `dlq list`."""
    commands: dict[str, click.Command] = {}
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        if isinstance(command, click.Group):
            for inner, subcommand in command.commands.items():
                commands[f"{name} {inner}"] = subcommand
        else:
            commands[name] = command
    return commands


@pytest.mark.parametrize("command", [[], ["run"], ["validate"], ["graph"]])
def test_help_has_an_example(command):
    done = penstock(*command, "-h")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: {' '.join(['penstock', *command])} [OPTIONS]")
    assert f"  penstock {command[0] if command else 'run'} workflow.json" in done.stdout


def test_no_arguments_show_the_help():
    assert penstock().stdout == penstock("--help").stdout


def test_the_help_lists_all_commands_in_groups_each_on_a_line():
    lines = penstock("--help", env={"COLUMNS": "80"}).stdout.splitlines()
    for title, names in COMMAND_GROUPS.items():
        first = lines.index(f"{title}:") + 1
        group = lines[first : first + len(names)]
        assert [line.split()[0] for line in group] == list(names)
        assert not [line for line in group if line.endswith("...")]


def test_the_version():
    assert penstock("--version").stdout == f"penstock {package.__version__}\n"


def test_every_command_that_prints_something_can_print_json():
    without = {
        path
        for path, command in loaded().items()
        if not any("--json" in parameter.opts for parameter in command.params)
    }
    assert without == set(WITHOUT_JSON)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lst"], "penstock: there is no command 'lst'; did you mean 'list'?"),
        (
            ["validat", "x.json"],
            "penstock: there is no command 'validat'; did you mean 'validate'?",
        ),
        (["qqq"], "penstock: there is no command 'qqq'"),
        (["dlq", "lits"], "penstock dlq: there is no command 'lits'; did you mean 'list'?"),
        (
            ["list", "--sicne", "1h"],
            "penstock list: there is no option '--sicne'; did you mean '--since'?",
        ),
        (
            ["run", "--hanlders"],
            "penstock run: there is no option '--hanlders'; did you mean '--handlers'?",
        ),
        (["run", "-q"], "penstock run: there is no option '-q'"),
        (["--verison"], "penstock: there is no option '--verison'; did you mean '--version'?"),
    ],
)
def test_a_mistyped_name_gets_a_hint(arguments, message):
    done = penstock(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0] == message
    assert "--help' shows the " in done.stderr.splitlines()[1]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_for_the_named_shell(shell):
    done = penstock("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"_PENSTOCK_COMPLETE={shell}_complete" in done.stdout


def completed(words: str, position: int) -> set[str]:
    done = penstock(
        env={
            "_PENSTOCK_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(position),
        }
    )
    return {line.partition(",")[2] for line in done.stdout.splitlines()}


def test_commands_and_options_are_completed():
    assert completed("penstock re", 1) == {"results", "retry", "resume", "reject"}
    assert completed("penstock graph --fo", 2) == {"--format"}
    assert completed("penstock graph --format ", 3) == {"text", "mermaid", "dot"}
