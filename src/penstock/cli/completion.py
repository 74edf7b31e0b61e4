"""`penstock completion`: a script that completes commands and options in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

VARIABLE = "_PENSTOCK_COMPLETE"
"""The variable by which the script asks `penstock` for completions."""

EPILOG = """Examples, each for every new shell:

\b
  penstock completion bash > ~/.local/share/bash-completion/completions/penstock
  penstock completion zsh > "${fpath[1]}/_penstock"
  penstock completion fish > ~/.config/fish/completions/penstock.fish

For this shell only: eval "$(penstock completion bash)"."""


@click.command(short_help="Print a completion script for a shell.", epilog=EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def completion(shell: str, *, debug: bool) -> None:  # noqa: ARG001 -- the app looks at it
    """Print a script that completes commands, options and their values in a shell."""
    from penstock.cli.app import cli

    completion_class = get_completion_class(shell)
    assert completion_class is not None  # noqa: S101 -- click has these three
    script = completion_class(cli, {}, "penstock", VARIABLE)
    # Not `source`, which also starts a bash to look at its version.
    print(script.source_template % script.source_vars())
