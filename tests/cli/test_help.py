"""Help and version."""

import pytest

import penstock as package
from tests.cli.commands import penstock


@pytest.mark.parametrize("command", [[], ["run"], ["validate"], ["graph"]])
def test_help_has_an_example(command):
    done = penstock(*command, "-h")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: {' '.join(['penstock', *command])} [OPTIONS]")
    assert f"  penstock {command[0] if command else 'run'} workflow.json" in done.stdout


def test_no_arguments_show_the_help():
    assert penstock().stdout == penstock("--help").stdout


def test_the_version():
    assert penstock("--version").stdout == f"penstock {package.__version__}\n"
