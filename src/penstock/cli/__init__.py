"""The command line.

Each command is a module that is imported when it is called, and imports what it needs then.

    app          the list of commands; turns whatever goes wrong into one message and an exit code
    reading      files, flags and standard input into checked values
    run          `penstock run`: a `session` runs one execution and tells a `screens` screen about its `progress`
    report       what is said at the end; `hints` has what to do about it
    validate, graph, diagrams
    remote       what the commands that talk to a server share: submit, executions (list, show, results), watch,
                 control (cancel, pause, resume, retry), dlq, definitions (versions, alias, workers), doctor
    remote_ending  an execution on a server in the shapes of `progress` and `report`; `tables` prints listings

Everything that comes from data passes `safe_text` on its way to a terminal.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and answer its exit code; `arguments` are the process's own unless given."""
    from penstock.cli.app import call

    return call(arguments)
