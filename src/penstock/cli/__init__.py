"""The command line.

Each command is a module that is imported when it is called, and imports what it needs then.

    app          the list of commands; turns every error into one message and an exit code
    reading      turns files, flags and standard input into checked values
    run          `penstock run`: a `session` runs one execution and shows its `progress`
                 on a screen (`screens`, `live`)
    report       what is printed at the end, with advice from `hints`
    validate, graph, diagrams
    remote       what the commands that talk to a server share: submit, watch,
                 executions (list, show, results), control (cancel, pause, resume, retry),
                 dlq, failures, definitions (put, versions, alias, workers), doctor
    remote_ending  an execution on a server in the shapes of `progress` and `report`
    tables       prints listings
    serve, roles, up  start servers; `supervising` keeps the processes of `up` running
    keys, migrate, purge  work on the store itself

Everything that comes from data passes `safe_text` on its way to a terminal.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; `arguments` default to those of the process."""
    from penstock.cli.app import call

    return call(arguments)
