"""The command line.

Each command is a module that is imported when it is called, and imports what it needs then.
Everything that comes from data passes `safe_text` on its way to a terminal.

- `app`: the list of commands; turns whatever goes wrong into one message and an exit code.
- `command_groups`: groups of commands: sections in their help, hints about mistyped names.
- `completion`: `penstock completion`.
- `reading`: files, flags and standard input into checked values.
- `python_flows`: workflows in Python: `flow.py:flow`.

On this machine:

- `init`: `penstock init`.
- `run`: `penstock run`.
- `session`: one execution from its start to its end, with the ways to stop it early.
- `progress`: an execution as it is watched: one row per node.
- `screens`: where a run is shown: a live table, lines, or nowhere.
- `live`: the live table.
- `streams`: standard output while handlers run.
- `interrupt`: Ctrl-C, SIGTERM and a closed terminal.
- `ending`: how an execution ended, here or on a server: what the report is made of.
- `report`: what is said at the end: how it went, what failed and what to do about it.
- `validate`: `penstock validate`.
- `graph`: `penstock graph`.
- `schema`: `penstock schema`.
- `diagrams`: a plan as levels, Mermaid or Graphviz.

Processes that serve:

- `serve`: `penstock dev` and `serve`: everything in one process.
- `reloading`: `penstock dev --reload`.
- `roles`: `penstock api`, `orchestrator` and `worker`: one role per process.
- `up`: `penstock up`: a scaled-out Penstock on this machine.
- `detaching`: `penstock up --detach`.
- `down`: `penstock down`.
- `up_folder`: the folder of `penstock up`: its lock, and what runs there.
- `supervising`: the processes that `up` keeps running.
- `migrate`: `penstock migrate`.
- `purge`: `penstock purge`.
- `keys`: `penstock keys`.
- `doctor`: `penstock doctor`.
- `checking`: what `doctor` looks at on a Redis and a PostgreSQL.

Against a server:

- `remote`: the address, the client, and how answers are printed.
- `execution_ids`: executions named by the beginning of their id, or by `@last`.
- `moments`: times that users write, such as `2d`.
- `submit`: `penstock submit`.
- `executions`: `penstock list`, `show`, `results`.
- `why`: `penstock why`.
- `tree`: `penstock tree`.
- `watch`: `penstock watch`.
- `logs`: `penstock logs`.
- `control`: `penstock cancel`, `pause`, `resume`, `retry`.
- `signals`: `penstock signal`, `signals`, `post`, `waits`.
- `approvals`: `penstock approvals`, `approve`, `reject`.
- `dlq`: `penstock dlq`.
- `failures`: `penstock errors`.
- `definitions`: `penstock put`, `versions`, `alias`, `workers`.

- `tables`: tables, fitted to a terminal or as plain columns.
- `styled_text`: text with styles: widths, cutting, wrapping, colours.
- `safe_text`: text from data that can't move the cursor or change colours.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; `arguments` default to those of the process."""
    from penstock.cli.app import call

    return call(arguments)
